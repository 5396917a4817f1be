"""Events as their source sends them."""

import orjson

from forebay.core.records import Record

HOST = "https://files.example"


def event_value(**fields):
    data = {
        "assignmentId": "A-1001",
        "attachments": [f"{HOST}/p/report.pdf?X-Amz-Signature=x"],
        "adm": {"coverageLoss": {"claimNumber": "CL-9"}},
        **fields.pop("data", {}),
    }
    event = {
        "type": "verisk.claims.property.xn.documentsReceived",
        "version": 1,
        "utcDateTime": "2026-01-05T10:30:00Z",
        "traceId": "tr-1",
        "data": {name: value for name, value in data.items() if value is not None},
    }
    return orjson.dumps({n: v for n, v in (event | fields).items() if v is not None})


def event_record(value=None, headers=(), offset=0, **fields):
    written = event_value(**fields) if value is None else value
    return Record(written, b"tr-1", headers, "xact.events.raw", 0, offset, 1_767_609_000_000)
