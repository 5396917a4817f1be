"""A redirect is a new link, judged from the beginning. The client follows none by itself."""

from typing import NamedTuple
from urllib.parse import urljoin

from forebay.outbound.errors import Answer, DownloadFailed, UrlRefused, ending
from forebay.outbound.rules import HostRules, Target, check_text, check_url

REDIRECTS = frozenset({301, 302, 303, 307, 308})

_TO_A_LOGIN = frozenset({302, 303})


def kind_of_refused(http_status: int) -> str:
    """A server that has lost its trust in who asks sends them to its login."""
    return "login_redirect" if http_status in _TO_A_LOGIN else "redirect_refused"


class Hop(NamedTuple):
    url: str
    target: Target


class Redirect(NamedTuple):
    http_status: int
    location: str | None


def next_hop(original: str, hop: Hop, redirect: Redirect, rules: HostRules) -> Hop:
    """Raises DownloadFailed where it may not be followed."""
    host, status = hop.target.host, redirect.http_status
    if not redirect.location:
        raise _refused("redirect_refused", f"{host} redirects without saying where", status)
    check_text(redirect.location)
    try:
        url = urljoin(hop.url, redirect.location)
    except ValueError:
        raise _refused("redirect_refused", f"{host} redirects to what is no link", status) from None
    target = check_url(url, rules)
    if hop.target.scheme == "https" and target.scheme == "http":
        raise UrlRefused(
            "downgrade",
            f"{host} redirects to an unencrypted link, which is not followed. "
            f"{ending('downgrade')}",
        )
    if not rules.follow_redirect(original, url):
        what = f"{host} redirects to {target.host}, which is not followed"
        raise _refused(kind_of_refused(status), what, status)
    return Hop(url, target)


def too_many(host: str, redirects_max: int) -> DownloadFailed:
    kind = "too_many_redirects"
    return DownloadFailed(
        kind, f"{host} redirects for more than {redirects_max} times. {ending(kind)}"
    )


def _refused(kind: str, what: str, status: int) -> DownloadFailed:
    return DownloadFailed(kind, f"{what} (HTTP {status}). {ending(kind)}", Answer(status))
