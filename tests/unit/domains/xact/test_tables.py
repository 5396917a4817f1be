"""The row of each record."""

from datetime import UTC, date, datetime

import pytest

from forebay.core.outcomes import Skip
from forebay.domains.xact import tables
from forebay.domains.xact.messages import DownloadResult
from forebay.engine.payloads import Undecodable
from unit.domains.xact.events import HOST, event_record

AT = datetime(2026, 1, 5, 23, 30, tzinfo=UTC)


def result(**fields):
    given = {
        "trace_id": "tr-1",
        "media_id": "m",
        "attachment_url": f"{HOST}/a.pdf",
        "blob_path": "documentsReceived/A-1/tr-1/A-1_a.pdf",
        "status_subtype": "documentsReceived",
        "file_type": "PDF",
        "assignment_id": "A-1",
        "status": "completed",
        "bytes_downloaded": 7,
        "created_at": datetime(2026, 1, 9, tzinfo=UTC),
        "original_timestamp": AT,
        "content_sha256": "aa",
    }
    return DownloadResult(**(given | fields))


def test_an_event_has_the_29_columns_that_its_table_always_had():
    row = tables.event_row(
        event_record(data={"contact": {"contactMethods": {"phone": {"number": 5}}}})
    )
    assert list(row) == list(tables.EVENT_COLUMNS)
    assert len(row) == 29
    assert row["attachments"] == f"{HOST}/p/report.pdf?X-Amz-Signature=x"
    assert row["claim_number"] == "CL-9"
    assert row["contact_phone_number"] == "5"
    assert row["event_date"] == date(2026, 1, 5)


def test_an_event_without_attachments_has_null_for_them():
    assert tables.event_row(event_record(data={"attachments": None}))["attachments"] is None


def test_an_event_of_another_domain_has_no_row_here():
    assert isinstance(tables.event_row(event_record(headers=[("domain", b"claimx")])), Skip)


def test_what_is_no_event_is_left_to_the_ingester():
    with pytest.raises(Undecodable):
        tables.event_row(event_record(b"{"))


def test_the_day_of_a_row_is_that_of_its_event_whenever_it_is_handled():
    first, later = (
        tables.stored_row(result(created_at=at)) for at in (AT, datetime(2027, 1, 1, tzinfo=UTC))
    )
    assert first["event_date"] == later["event_date"] == date(2026, 1, 5)
    assert tables.failed_row(result(status="failed_permanent"))["created_date"] == date(2026, 1, 5)


def test_a_row_of_the_inventory_has_its_columns_and_the_hash_last():
    row = tables.stored_row(result())
    assert list(row) == list(tables.ATTACHMENT_COLUMNS)
    assert list(row)[-1] == "content_sha256"
    assert row["status"] == "completed"


@pytest.mark.parametrize("status", ["completed", "success"])
def test_each_result_has_a_row_in_one_table_alone(status):
    assert not isinstance(tables.stored_row(result(status=status)), Skip)
    assert isinstance(tables.failed_row(result(status=status)), Skip)


@pytest.mark.parametrize("status", ["failed", "failed_transient"])
def test_what_is_tried_again_has_a_row_in_no_table(status):
    assert isinstance(tables.stored_row(result(status=status)), Skip)
    assert isinstance(tables.failed_row(result(status=status)), Skip)


def test_a_failure_for_good_has_a_row_in_its_table():
    row = tables.failed_row(result(status="failed_permanent", error_category="refused"))
    assert list(row) == list(tables.FAILED_COLUMNS)
    assert row["error_category"] == "refused"
