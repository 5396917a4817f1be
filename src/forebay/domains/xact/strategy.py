"""How xact's links and files behave."""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from forebay.core.failures import category_of
from forebay.domains.xact.settings import DOMAIN, XactSettings
from forebay.outbound.rules import HostRules

_TRANSIENT_CODES = frozenset({429, 500, 502, 503, 504})


class XactStrategy:
    """Its links are signed by the sender and cannot be renewed: expired is for good."""

    domain_name = DOMAIN

    def __init__(self, settings: XactSettings) -> None:
        self._settings = settings
        self.rules = HostRules(
            allowed=settings.allowed_hosts,
            allow_loopback=settings.development,
            follow_redirect=self.should_follow_redirect,
            allowed_types=settings.file_types,
        )

    def can_refresh_expired_url(self) -> bool:
        return False

    async def refresh_url(self, expired_url: str, context: Mapping[str, Any]) -> str | None:  # noqa: ARG002  the answer is the same for every link
        return None

    def classify_error(self, error: Exception) -> str:
        return category_of(error)

    def is_transient(self, status_code: int) -> bool:
        return status_code in _TRANSIENT_CODES

    def should_follow_redirect(self, original_url: str, redirect_url: str) -> bool:
        """Never from one host to another: a signature is for the host it was made for."""
        if not self._settings.follow_redirects:
            return False
        return urlsplit(original_url).hostname == urlsplit(redirect_url).hostname

    def allowed_file_types(self) -> Sequence[str]:
        return self._settings.file_types

    def validate_file(self, filename: str, content_type: str) -> bool:  # noqa: ARG002  the plan's signature; what a server calls a file is checked with its content
        return PurePosixPath(filename).suffix[1:].lower() in self._settings.file_types
