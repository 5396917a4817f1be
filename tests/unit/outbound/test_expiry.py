import base64
from datetime import UTC, datetime

import pytest

from forebay.outbound.expiry import Expiry, expires_at, is_expired

PLACE = "https" + "://files.example/a.pdf?"
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC).timestamp()


def policy(text: str) -> str:
    packed = base64.b64encode(text.encode()).decode()
    return packed.translate(str.maketrans("+=/", "-_~"))


CUSTOM = '{"Statement":[{"Condition":{"DateLessThan":{"AWS:EpochTime":1767614400}%s}}]}'


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "X-Amz-Date=20260105T110000Z&X-Amz-Expires=3600&X-Amz-Signature=x",
            Expiry("s3_v4", NOON, NOON - 3600),
        ),
        (
            "x-amz-expires=3600&x-amz-date=20260105T110000Z",
            Expiry("s3_v4", NOON, NOON - 3600),
        ),
        (
            "X-Goog-Date=20260105T110000Z&X-Goog-Expires=3600",
            Expiry("gcs_v4", NOON, NOON - 3600),
        ),
        ("AWSAccessKeyId=a&Expires=1767614400&Signature=s", Expiry("s3_v2", NOON)),
        ("GoogleAccessId=a&Expires=1767614400&Signature=s", Expiry("gcs_v2", NOON)),
        ("Expires=1767614400&Signature=s&Key-Pair-Id=k", Expiry("cloudfront_canned", NOON)),
        (
            f"Policy={policy(CUSTOM % '')}&Signature=s&Key-Pair-Id=k",
            Expiry("cloudfront_custom", NOON),
        ),
        (
            "Policy="
            + policy(CUSTOM % ',"DateGreaterThan":{"AWS:EpochTime":1767610800}')
            + "&Signature=s&Key-Pair-Id=k",
            Expiry("cloudfront_custom", NOON, NOON - 3600),
        ),
        ("sv=1&sig=s&se=2026-01-05T12%3A00%3A00Z", Expiry("azure_sas", NOON)),
        ("sig=s&se=2026-01-05", Expiry("azure_sas", NOON - 12 * 3600)),
        (
            "sig=s&se=2026-01-06T00:00:00Z&ske=2026-01-05T12:00:00Z&st=2026-01-05T11:00:00Z",
            Expiry("azure_sas", NOON, NOON - 3600),
        ),
        (
            "systemDate=1767225600000&expires=900000",
            Expiry("claimx", 1_767_226_500.0, 1_767_225_600.0),
        ),
    ],
)
def test_each_scheme_says_when_it_ends(query, expected):
    assert expires_at(PLACE + query) == expected


@pytest.mark.parametrize(
    "query",
    [
        "",
        "a=b",
        "Expires=1767614400",
        "X-Amz-Date=20260105T110000Z",
        "X-Amz-Date=20260105&X-Amz-Expires=3600",
        "X-Amz-Date=20261305T110000Z&X-Amz-Expires=3600",
        "X-Amz-Date=20260105T110000Z&X-Amz-Expires=x",
        "X-Amz-Date=20260105T110000Z&X-Amz-Expires=-1",
        "X-Amz-Date=20260105T110000Z&X-Amz-Expires=604801",
        "Expires=soon&Signature=s&Key-Pair-Id=k",
        "Expires=99999999999999&Signature=s&Key-Pair-Id=k",
        "Policy=%%%&Signature=s&Key-Pair-Id=k",
        f"Policy={policy('[]')}&Signature=s&Key-Pair-Id=k",
        f"Policy={policy('{}')}&Signature=s&Key-Pair-Id=k",
        f"Policy={policy(CUSTOM % ',,')}&Signature=s&Key-Pair-Id=k",
        "sig=s&se=tomorrow",
        "sig=s&se=",
        "systemDate=x&expires=900000",
        "systemDate=1&expires=" + "9" * 400,
    ],
)
def test_what_cannot_be_read_never_expires(query):
    assert expires_at(PLACE + query) is None
    assert not is_expired(PLACE + query, 1e12)


def test_the_first_of_two_parameters_counts():
    query = "X-Amz-Date=20260105T110000Z&X-Amz-Expires=60&X-Amz-Expires=604800"
    assert expires_at(PLACE + query).at == NOON - 3540


def test_a_link_has_expired_from_its_last_second_on():
    query = "Expires=1767614400&Signature=s&Key-Pair-Id=k"
    assert not is_expired(PLACE + query, NOON - 1)
    assert is_expired(PLACE + query, NOON)
