"""How one domain's links and files behave; everything else about attachments is the same."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from forebay.outbound.rules import HostRules


class DomainStrategy(Protocol):
    """Stateless. May be used from any thread and event loop."""

    domain_name: str
    rules: HostRules
    """Where its links may lead and which files may come; built from the answers below."""

    def can_refresh_expired_url(self) -> bool: ...

    async def refresh_url(self, expired_url: str, context: Mapping[str, Any]) -> str | None:
        """A new link to the same file, None where there is none. Raises what may pass."""
        ...

    def classify_error(self, error: Exception) -> str:
        """The category that decides whether it is tried again."""
        ...

    def is_transient(self, status_code: int) -> bool: ...

    def should_follow_redirect(self, original_url: str, redirect_url: str) -> bool: ...

    def allowed_file_types(self) -> Sequence[str]:
        """Extensions without their dot; none allows all."""
        ...

    def validate_file(self, filename: str, content_type: str) -> bool: ...
