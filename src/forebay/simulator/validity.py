"""When a signed link ends, as the host that signed it reads it."""

import base64
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl


def ends_at(query: str) -> float | None:
    """Epoch seconds; None where the link carries no end that can be read."""
    parameters = {name.lower(): value for name, value in parse_qsl(query)}
    try:
        return _ends_at(parameters)
    except (ValueError, KeyError, TypeError, IndexError):
        return None


def _ends_at(parameters: Mapping[str, str]) -> float | None:
    if "x-amz-date" in parameters:
        begins = datetime.strptime(parameters["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        return (begins + timedelta(seconds=int(parameters["x-amz-expires"]))).timestamp()
    if "policy" in parameters:
        return _end_of_policy(parameters["policy"])
    if "expires" in parameters:
        return float(int(parameters["expires"]))
    if "se" in parameters:
        ends = datetime.fromisoformat(parameters["se"])
        return (ends if ends.tzinfo else ends.replace(tzinfo=UTC)).timestamp()
    return None


def _end_of_policy(text: str) -> float:
    policy = json.loads(base64.b64decode(text.translate(str.maketrans("-_~", "+=/"))))
    return float(policy["Statement"][0]["Condition"]["DateLessThan"]["AWS:EpochTime"])
