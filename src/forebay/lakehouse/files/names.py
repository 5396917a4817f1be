"""Names of files that are safe in a folder and in an object store alike.

They are refused rather than repaired: two hostile names must not meet in one repaired name, and
whoever makes a name knows better what it should be.
"""

import unicodedata

from forebay.core.errors import InvalidName

NAME_BYTES_MAX = 1_024
PART_BYTES_MAX = 255
PARTS_MAX = 60

_UNPRINTABLE = {"Cc": "a control character", "Cs": "half a character", "Zl": "a line separator"}
_UNPRINTABLE["Zp"] = "a paragraph separator"
_DIRECTION_MARKS = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


def check_name(name: str) -> tuple[str, ...]:
    """The parts of a safe name; raises InvalidName."""
    if complaint := complaint_about_name(name):
        raise InvalidName(
            f"A file cannot be stored under the name it was given: {complaint}. Nothing was "
            f"stored. Change the rule that makes these names."
        )
    return tuple(name.split("/"))


def complaint_about_name(name: str) -> str | None:
    """What is wrong with it, without repeating it: it may be hostile, or name a person."""
    parts = name.split("/")
    if len(parts) > PARTS_MAX:
        return f"it has {len(parts)} parts, {PARTS_MAX} are allowed"
    for number, part in enumerate(parts, start=1):
        if complaint := complaint_about_part(part):
            return f"part {number} of {len(parts)} {complaint}"
    length = len(name.encode())
    if length > NAME_BYTES_MAX:
        return f"it is {length} bytes long, {NAME_BYTES_MAX} are allowed"
    return None


def complaint_about_part(part: str) -> str | None:
    """What is wrong with one part, as the end of a sentence; None if it is safe."""
    if not part:
        return "is empty"
    if part.startswith("."):
        return "begins with a dot"
    if part != part.strip(" ") or part.endswith("."):
        return "begins or ends with a space, or ends with a dot"
    return _complaint_about_characters(part) or _complaint_about_length(part)


def without_last_part(name: str) -> str:
    """For messages: where to look, and of what kind the file is. Its own name may name a person."""
    folder, slash, last = name.rpartition("/")
    _, dot, extension = last.rpartition(".")
    return f"{folder}{slash}…{dot}{extension if dot else ''}"


def _complaint_about_characters(part: str) -> str | None:
    if part.isascii() and part.isprintable():
        return "holds a slash or backslash" if "\\" in part or "/" in part else None
    for character in part:
        if kind := _UNPRINTABLE.get(unicodedata.category(character)):
            return f"holds {kind}"
        if character in _DIRECTION_MARKS:
            return "holds a mark that changes the direction of writing"
        if character in "/\\":
            return "holds a slash or backslash"
    if not unicodedata.is_normalized("NFC", part):
        return "is not in Unicode's composed form (NFC)"
    return None


def _complaint_about_length(part: str) -> str | None:
    length = len(part.encode())
    if length > PART_BYTES_MAX:
        return f"is {length} bytes long, {PART_BYTES_MAX} are allowed"
    return None
