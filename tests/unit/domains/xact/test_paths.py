"""Paths by the rule that wrote the existing data."""

import pytest

from forebay.domains.xact.messages import read_event
from forebay.domains.xact.paths import destinations, generate_blob_path
from forebay.lakehouse.files.names import check_name
from unit.domains.xact.events import HOST, event_record


def path_of(url="https://h.example/p/report.pdf?sig=1", subtype="documentsReceived", **more):
    given = {"assignment_id": "A-1001", "trace_id": "tr-1"} | more
    return generate_blob_path(status_subtype=subtype, attachment_url=url, **given)


@pytest.mark.parametrize(
    ("subtype", "name"),
    [
        ("documentsReceived", "A-1001_report.pdf"),
        ("firstNoticeOfLossReceived", "A-1001_FNOL_report.pdf"),
        ("estimatePackageReceived", "A-1001_2_report.pdf"),
        ("estimateCreated", "A-1001_report.pdf"),
    ],
)
def test_each_subtype_has_its_folder_and_its_file_name(subtype, name):
    there = path_of(subtype=subtype, estimate_version="2")
    assert there == (f"{subtype}/A-1001/tr-1/{name}", "PDF")


def test_an_estimate_without_a_version_says_unknown():
    path = path_of(subtype="estimatePackageReceived").path
    assert path.endswith("/A-1001_unknown_report.pdf")


def test_the_extension_keeps_its_case_in_the_name_and_is_upper_case_as_the_type():
    assert path_of("https://h.example/Report.Pdf") == (
        "documentsReceived/A-1001/tr-1/A-1001_Report.Pdf",
        "PDF",
    )


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://h.example/", "A-1001_attachment"),
        ("https://h.example/p/..", "A-1001_attachment"),
        ("https://h.example/p/%2e%2e%2fetc%2fpasswd", "A-1001__etc_passwd"),
        ("https://h.example/p/a%00b.pdf", "A-1001_a_b.pdf"),
        ("https://h.example/p/a:b*c?.pdf", "A-1001_a_b_c"),
        ("https://h.example/p/cafe%CC%81.pdf", "A-1001_café.pdf"),
        ("https://[broken/p/a.pdf", "A-1001_attachment"),
        ("https://h.example/p/%E2%80%AEfdp.exe.pdf", "A-1001__fdp.exe.pdf"),
        ("https://h.example/p/a%E2%80%A8b.pdf", "A-1001_a_b.pdf"),
    ],
)
def test_a_hostile_name_becomes_a_harmless_one(url, name):
    assert path_of(url).path == f"documentsReceived/A-1001/tr-1/{name}"


@pytest.mark.parametrize("hostile", ["../../x", "..", "a/b", "\x00", "a\nb", " . ", "x" * 5_000])
def test_no_part_of_a_path_leads_out_of_its_folder(hostile):
    there = path_of(subtype=hostile or "x", assignment_id=hostile, trace_id=hostile).path
    parts = there.split("/")
    assert len(parts) == 4
    assert all(part not in {"", ".", ".."} and len(part.encode()) <= 255 for part in parts)
    check_name(there)


def test_two_long_names_that_begin_alike_stay_two_names():
    first, second = (path_of(f"https://h.example/{'x' * 400}{end}.pdf").path for end in "ab")
    assert first != second
    assert first.endswith(".pdf")


def test_a_file_without_an_extension_has_an_unknown_type():
    assert path_of("https://h.example/p/report").file_type == "UNKNOWN"


def test_two_links_of_one_event_with_one_name_are_told_apart_the_same_way_each_time():
    links = [f"{HOST}/a/report.pdf", f"{HOST}/b/report.pdf", f"{HOST}/c/other.pdf"]
    event = read_event(event_record(data={"attachments": links}))
    first = destinations(event)
    paths = [there.path for there in first.values()]
    assert len(set(paths)) == 3
    assert paths[0].endswith("/A-1001_report.pdf")
    assert paths[1].startswith("documentsReceived/A-1001/tr-1/A-1001_report_")
    assert destinations(event) == first
