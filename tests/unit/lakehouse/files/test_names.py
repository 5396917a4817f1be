import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.core.errors import InvalidName
from forebay.lakehouse.files.names import (
    NAME_BYTES_MAX,
    PART_BYTES_MAX,
    PARTS_MAX,
    check_name,
    complaint_about_part,
    without_last_part,
)


@pytest.mark.parametrize(
    ("part", "complaint"),
    [
        ("", "is empty"),
        (".", "begins with a dot"),
        ("..", "begins with a dot"),
        (".incoming", "begins with a dot"),
        ("a ", "begins or ends with a space, or ends with a dot"),
        (" a", "begins or ends with a space, or ends with a dot"),
        ("a.", "begins or ends with a space, or ends with a dot"),
        ("a\\b", "holds a slash or backslash"),
        ("a/b", "holds a slash or backslash"),
        ("é\\b", "holds a slash or backslash"),
        ("a\x00", "holds a control character"),
        ("a\x7f", "holds a control character"),
        ("a\x85b", "holds a control character"),
        ("a\u2028b", "holds a line separator"),
        ("a\u2029b", "holds a paragraph separator"),
        ("a\ud800", "holds half a character"),
        ("a\u202eb", "holds a mark that changes the direction of writing"),
        ("a\u2067b", "holds a mark that changes the direction of writing"),
        ("e\u0301", "is not in Unicode's composed form (NFC)"),
        ("x" * (PART_BYTES_MAX + 1), "is 256 bytes long, 255 are allowed"),
        ("é" * 128, "is 256 bytes long, 255 are allowed"),
        ("x" * PART_BYTES_MAX, None),
        ("A-1001_Report (2).PDF", None),
        ("📎 報告書.pdf", None),
        ("a..b", None),
    ],
)
def test_a_part_is_judged_by_what_it_holds(part, complaint):
    assert complaint_about_part(part) == complaint


def test_a_name_may_be_as_long_and_as_deep_as_is_allowed_and_no_more():
    assert len(check_name("/".join(["x"] * PARTS_MAX))) == PARTS_MAX
    with pytest.raises(InvalidName, match="it has 61 parts, 60 are allowed"):
        check_name("/".join(["x"] * (PARTS_MAX + 1)))
    longest = "/".join(["x" * 250] * 4) + "/"
    rest = NAME_BYTES_MAX - len(longest)
    assert check_name(longest + "x" * rest)[-1] == "x" * rest
    with pytest.raises(InvalidName, match="it is 1025 bytes long, 1024 are allowed"):
        check_name(longest + "x" * (rest + 1))


def test_a_refusal_does_not_repeat_the_hostile_name():
    with pytest.raises(InvalidName, match="part 2 of 2 holds a control character") as refused:
        check_name("folder/John Smith\x1b[2J.pdf")
    assert "Smith" not in str(refused.value)


@given(st.text(max_size=30))
def test_whatever_is_accepted_stays_below_its_folder_and_on_one_line(name):
    try:
        parts = check_name(name)
    except InvalidName:
        return
    assert "/".join(parts) == name
    assert not {"", ".", ".."} & set(parts)
    assert len(name.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("documentsReceived/A-1/tr-1/A-1_John.pdf", "documentsReceived/A-1/tr-1/….pdf"),
        ("folder/without", "folder/…"),
        ("John.pdf", "….pdf"),
    ],
)
def test_a_message_shows_where_a_file_is_and_not_how_it_is_called(name, shown):
    assert without_last_part(name) == shown
