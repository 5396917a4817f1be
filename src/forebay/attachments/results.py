"""What became of one attachment, as results and tables of every domain say it."""

from typing import Literal, TypeAlias

Status: TypeAlias = Literal["completed", "failed", "failed_permanent"]

COMPLETED: Status = "completed"
FAILED: Status = "failed"
FAILED_PERMANENT: Status = "failed_permanent"
REFUSED = "refused"
"""The category of a link that a rule of ours refused before anything was tried."""

_OLD_NAMES: dict[str, Status] = {"success": COMPLETED, "failed_transient": FAILED}
ERROR_LENGTH_MAX = 500


def status_of(written: str) -> str:
    """Today's word for a status; what older messages call it is accepted."""
    return _OLD_NAMES.get(written, written)
