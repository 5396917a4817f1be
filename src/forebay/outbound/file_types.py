"""What a file says it is, by its name, by its server, and by its first bytes."""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from urllib.parse import parse_qsl, unquote

from forebay.outbound.errors import DownloadFailed, ending
from forebay.outbound.rules import HostRules

HEAD_BYTES = 1_024
TAIL_BYTES = 22

# Kinds that first bytes can show, and the extensions that may carry them.
_PICTURES = frozenset({"jpeg", "png", "gif", "bmp", "tiff", "webp"})
_OFFICE = frozenset({"zip", "ole"})
_KINDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "pdf": frozenset({"pdf"}),
        "xml": frozenset({"xml", "text"}),
        "txt": frozenset({"text", "xml"}),
        "csv": frozenset({"text"}),
        "json": frozenset({"text"}),
        "html": frozenset({"html", "xml", "text"}),
        "htm": frozenset({"html", "xml", "text"}),
        "xls": _OFFICE | {"xml"},
        "xlsx": _OFFICE,
        "doc": _OFFICE | {"rtf", "xml"},
        "docx": _OFFICE,
        "jpg": _PICTURES,
        "jpeg": _PICTURES,
        "png": _PICTURES,
        "gif": _PICTURES,
        "bmp": _PICTURES,
        "tif": _PICTURES,
        "tiff": _PICTURES,
        "webp": _PICTURES,
        "mov": frozenset({"media"}),
        "mp4": frozenset({"media"}),
        "zip": frozenset({"zip"}),
    }
)
_HARMFUL = frozenset({"executable", "script", "html", "storage_error"})

_GENERIC_TYPES = frozenset(
    {
        *("", "application/octet-stream", "binary/octet-stream", "application/x-download"),
        *("application/force-download", "application/download", "application/unknown"),
    }
)
_HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})

_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"GIF87a", "gif"),
    (b"GIF89a", "gif"),
    (b"II*\x00", "tiff"),
    (b"MM\x00*", "tiff"),
    (b"II+\x00", "tiff"),
    (b"MM\x00+", "tiff"),
    (b"PK\x03\x04", "zip"),
    (b"PK\x05\x06", "zip"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "ole"),
    (b"{\\rtf", "rtf"),
    (b"\x7fELF", "executable"),
    (b"\xfe\xed\xfa", "executable"),
    (b"\xcf\xfa\xed\xfe", "executable"),
    (b"\xca\xfe\xba\xbe", "executable"),
    (b"#!", "script"),
)
_MEDIA_BOXES = frozenset({b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip", b"pnot"})
_ARCHIVE_END = b"PK\x05\x06"
_PAGES = frozenset({b"html", b"head", b"body", b"script", b"iframe"})
_ROOT = re.compile(  # of markup, behind declarations and comments
    rb"(?:\s*+(?:<\?[^>]*+>|<!--(?:(?!-->).)*+-->|(?P<doctype><!doctype\s++html\b)[^>]*+>"
    rb"|<![^-][^>]*+>))*+\s*+(?:<(?P<name>[\w:.-]*+))?",
    re.IGNORECASE | re.DOTALL,
)
_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


def extension_of(name: str) -> str:
    """Of a file's name or its URL: in lower case, "" without one.

    Some services give the name as a parameter of the URL.
    """
    path, _, query = name.partition("#")[0].partition("?")
    found = _suffix(path.rpartition("/")[2])
    if found in _KINDS or not query:
        return found
    given = dict(parse_qsl(query))
    for parameter in ("filename", "file", "name"):
        if suffix := _suffix(given.get(parameter, "")):
            return suffix
    return found


def check_extension(extension: str, rules: HostRules) -> None:
    """Before anything is sent. A name without extension is judged by what arrives."""
    if not rules.allowed_types or not extension or extension in rules.allowed_types:
        return
    raise _wrong(f"Files of type {extension[:20]} are not among those that are taken")


def check_content_type(content_type: str, extension: str, rules: HostRules) -> None:
    """`content_type` as the server gave it; what says nothing is left to the first bytes."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind in _GENERIC_TYPES:
        return
    if kind in _HTML_TYPES and extension not in {"html", "htm"} and rules.allowed_types:
        raise _wrong("The server sent a page instead of a file")
    if rules.mime_types and kind not in rules.mime_types:
        raise _wrong(f"The server calls the file {kind[:80]}, which is not among the taken types")


def check_head(head: bytes, extension: str, rules: HostRules) -> None:
    """`head`: the first HEAD_BYTES, or the whole file if it is shorter."""
    kind = kind_of(head)
    expected = _KINDS.get(extension)
    if expected is not None:
        is_right = kind in expected
    elif extension or not rules.allowed_types:
        is_right = kind not in _HARMFUL
    else:
        is_right = any(kind in _KINDS.get(allowed, ()) for allowed in rules.allowed_types)
    if not is_right:
        named = f"a {extension} file" if extension else "a file of a taken type"
        raise _wrong(f"The link promises {named}, but the content is {_TOLD.get(kind, kind)}")


def check_tail(tail: bytes, head: bytes) -> None:
    """A picture or document that is an archive as well is one to those who read from the end."""
    if tail[-TAIL_BYTES:].startswith(_ARCHIVE_END) and kind_of(head) not in _OFFICE:
        raise _wrong("The content is a file and an archive at once")


def kind_of(head: bytes) -> str:
    """A word for what the first bytes show; "unknown" where they show nothing."""
    if kind := _binary_kind(head):
        return kind
    text = _text(head)
    begun = text.lstrip()
    if begun.startswith(b"<"):
        return _markup(begun)
    if b"%PDF-" in head:
        return "pdf"
    return "text" if text and b"\0" not in text else "unknown"


def _binary_kind(head: bytes) -> str | None:
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "webp"
    if head[4:8] in _MEDIA_BOXES and head[:1] < b" ":
        return "media"
    if head[:2] == b"BM" and head[6:10] == bytes(4):
        return "bmp"
    if head[:2] == b"MZ" and b"\0" in head:
        return "executable"
    return next((kind for beginning, kind in _BEGINNINGS if head.startswith(beginning)), None)


def _markup(begun: bytes) -> str:
    root = _ROOT.match(begun)
    if root is None:
        return "xml"
    name = (root["name"] or b"").lower()
    if root["doctype"] or name in _PAGES:
        return "html"
    if name == b"error" and b"<code>" in begun.lower():
        return "storage_error"
    return "svg" if name == b"svg" else "xml"


def _text(head: bytes) -> bytes:
    """As UTF-8, for the comparison alone."""
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return head.decode(encoding, "ignore").encode()
    return head


def _suffix(name: str) -> str:
    """Short and plain, else it is no extension but a part of the name."""
    suffix = PurePosixPath(unquote(name)).suffix[1:].lower()
    return suffix if suffix.isalnum() and suffix.isascii() and len(suffix) <= 10 else ""


_TOLD: Mapping[str, str] = MappingProxyType(
    {
        "html": "a web page",
        "storage_error": "the error message of a storage service",
        "executable": "a program",
        "script": "a script",
        "unknown": "something else",
    }
)


def _wrong(what: str) -> DownloadFailed:
    return DownloadFailed("wrong_type", f"{what}. {ending('wrong_type')}")
