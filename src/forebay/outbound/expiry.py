"""When a signed link stops working, read from the link itself. What cannot be read is not told."""

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias
from urllib.parse import unquote

import orjson

Parameters: TypeAlias = dict[str, str]

AMAZON_SECONDS_MAX = 604_800
_EPOCH_MAX = 32_503_680_000.0  # the year 3000: what is later is no time
_COMPACT = re.compile(r"[0-9]{8}T[0-9]{6}Z\Z")
_TO_BASE64 = str.maketrans("-_~", "+=/")
_BY_ACCESS_ID = {
    "key-pair-id": "cloudfront_canned",
    "awsaccesskeyid": "s3_v2",
    "googleaccessid": "gcs_v2",
}


@dataclass(frozen=True, slots=True)
class Expiry:
    """Seconds since the epoch. `starts_at` where the link is not valid from the beginning."""

    scheme: str
    at: float
    starts_at: float | None = None


def expires_at(url: str) -> Expiry | None:
    """None for a link without an expiry, and for one whose expiry is no time: the server knows."""
    query = url.partition("?")[2].partition("#")[0]
    if not query:
        return None
    parameters = _parameters(query)
    for is_of, read in _SCHEMES:
        if is_of(parameters):
            return _sound(read, parameters)
    return None


def is_expired(url: str, now: float) -> bool:
    expiry = expires_at(url)
    return expiry is not None and now >= expiry.at


def _sound(read: Callable[[Parameters], Expiry], parameters: Parameters) -> Expiry | None:
    try:
        expiry = read(parameters)
    except (ValueError, TypeError, KeyError, IndexError, OverflowError):
        return None
    return expiry if 0 < expiry.at < _EPOCH_MAX else None


def _parameters(query: str) -> Parameters:
    """By lower-case names; the first of several counts."""
    found: Parameters = {}
    for part in query.split("&"):
        name, _, value = part.partition("=")
        found.setdefault(name.lower(), unquote(value) if "%" in value else value)
    return found


def _compact_time(parameters: Parameters, prefix: str) -> Expiry:
    """A date and a number of seconds: signature version 4 of Amazon and of Google."""
    seconds = int(parameters[f"x-{prefix}-expires"])
    if not 0 <= seconds <= AMAZON_SECONDS_MAX:
        raise ValueError(seconds)
    written = parameters[f"x-{prefix}-date"]
    if not _COMPACT.match(written):
        raise ValueError(written)
    signed_at = datetime.fromisoformat(written).timestamp()
    return Expiry("s3_v4" if prefix == "amz" else "gcs_v4", signed_at + seconds, signed_at)


def _cloudfront_policy(parameters: Parameters) -> Expiry:
    policy = base64.b64decode(parameters["policy"].translate(_TO_BASE64), validate=True)
    condition = orjson.loads(policy)["Statement"][0]["Condition"]
    starts = condition.get("DateGreaterThan")
    return Expiry(
        "cloudfront_custom",
        float(condition["DateLessThan"]["AWS:EpochTime"]),
        None if starts is None else float(starts["AWS:EpochTime"]),
    )


def _epoch(parameters: Parameters) -> Expiry:
    scheme = next(told for name, told in _BY_ACCESS_ID.items() if name in parameters)
    return Expiry(scheme, float(int(parameters["expires"])))


def _azure(parameters: Parameters) -> Expiry:
    """The signature ends with the key that made it, if that is earlier."""
    ends = [_iso(parameters[name]) for name in ("se", "ske") if parameters.get(name)]
    starts = parameters.get("st")
    return Expiry("azure_sas", min(ends), _iso(starts) if starts else None)


def _claimx(parameters: Parameters) -> Expiry:
    signed_ms, lasts_ms = int(parameters["systemdate"]), int(parameters["expires"])
    return Expiry("claimx", (signed_ms + lasts_ms) / 1000, signed_ms / 1000)


def _iso(written: str) -> float:
    moment = datetime.fromisoformat(written)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _is_epoch(parameters: Parameters) -> bool:
    return {"expires", "signature"} <= parameters.keys() and any(
        name in parameters for name in _BY_ACCESS_ID
    )


_SCHEMES: tuple[tuple[Callable[[Parameters], bool], Callable[[Parameters], Expiry]], ...] = (
    (
        lambda found: "x-amz-date" in found and "x-amz-expires" in found,
        lambda found: _compact_time(found, "amz"),
    ),
    (
        lambda found: "x-goog-date" in found and "x-goog-expires" in found,
        lambda found: _compact_time(found, "goog"),
    ),
    (lambda found: "policy" in found and "key-pair-id" in found, _cloudfront_policy),
    (_is_epoch, _epoch),
    (lambda found: "sig" in found and "se" in found, _azure),
    (lambda found: "systemdate" in found and "expires" in found, _claimx),
)
