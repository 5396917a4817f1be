"""Where an attachment goes: by the rule that wrote the existing data."""

import hashlib
import re
import unicodedata
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from forebay.domains.xact.messages import Event

# What a folder or store could take otherwise; then lines, halves, and marks of direction.
_UNSAFE = re.compile(
    r'[<>:"/\\|?*\x00-\x1f\x7f-\x9f]'
    r"|[\u2028\u2029\ud800-\udfff\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_BYTES_MAX = 255
UNKNOWN_TYPE = "UNKNOWN"


class BlobPath(NamedTuple):
    """`file_type` is the extension in upper case."""

    path: str
    file_type: str


def generate_blob_path(
    *,
    status_subtype: str,
    assignment_id: str,
    trace_id: str,
    attachment_url: str,
    estimate_version: str | None = None,
) -> BlobPath:
    """Relative to the domain's folder."""
    name = _file_name(attachment_url)
    prefix = _prefix(status_subtype, assignment_id, estimate_version)
    folders = [_part(status_subtype), _part(assignment_id), _part(trace_id)]
    path = "/".join([*folders, _bounded(_clean(f"{prefix}_{name}"))])
    _, dot, extension = name.rpartition(".")
    return BlobPath(path, extension.upper() if dot and extension else UNKNOWN_TYPE)


def apart(path: str, attachment_url: str) -> str:
    """For another link of one event with the same name."""
    mark = hashlib.sha256(attachment_url.encode("utf-8", "backslashreplace")).hexdigest()[:8]
    folder, _, name = path.rpartition("/")
    stem, dot, extension = name.rpartition(".")
    marked = f"{stem}_{mark}{dot}{extension}" if dot else f"{name}_{mark}"
    return f"{folder}/{_bounded(marked)}"


def _prefix(subtype: str, assignment_id: str, estimate_version: str | None) -> str:
    match subtype:
        case "firstNoticeOfLossReceived":
            return f"{assignment_id}_FNOL"
        case "estimatePackageReceived":
            return f"{assignment_id}_{estimate_version or 'unknown'}"
        case _:
            return assignment_id


def _file_name(url: str) -> str:
    """The last part of the path, decoded; a link without one still has a file."""
    try:
        path = urlsplit(url).path
    except ValueError:
        path = ""
    last = path.rpartition("/")[2]
    return _clean(unquote(last)) or "attachment"


def _part(text: str) -> str:
    return _bounded(_clean(text)) or "_"


def _clean(text: str) -> str:
    composed = unicodedata.normalize("NFC", text)
    return _UNSAFE.sub("_", composed).strip(" .")


def _bounded(name: str) -> str:
    """As a file system takes it; what makes it another's name is kept."""
    if len(name.encode()) <= _BYTES_MAX:
        return name
    mark = hashlib.sha256(name.encode()).hexdigest()[:8]
    stem, dot, extension = name.rpartition(".")
    ending = f"_{mark}.{extension}" if dot and len(extension.encode()) <= 16 else f"_{mark}"
    kept = (stem if dot else name).encode()[: _BYTES_MAX - len(ending.encode())]
    return kept.decode(errors="ignore") + ending


def destinations(event: Event) -> dict[str, BlobPath]:
    """Of each link of an event, in its order; two links with one name are told apart."""
    found: dict[str, BlobPath] = {}
    taken: set[str] = set()
    for url in event.attachments:
        there = generate_blob_path(
            status_subtype=event.subtype,
            assignment_id=event.assignment_id or "",
            trace_id=event.trace_id,
            attachment_url=url,
            estimate_version=event.estimate_version,
        )
        if there.path in taken:
            there = there._replace(path=apart(there.path, url))
        taken.add(there.path)
        found[url] = there
    return found
