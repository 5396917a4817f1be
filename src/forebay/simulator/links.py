"""Presigned links in the styles that senders use.

The signatures are made up; the host checks the time fields alone.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Protocol
from urllib.parse import quote, unquote, urlencode

from forebay.simulator.behaviours import EXPIRED, Behaviour, dead_end
from forebay.simulator.content import size_and_hash
from forebay.simulator.endings import Ending, FileHostAddress

LIFETIME_SECONDS = 604_800  # the most that S3 allows


@dataclass(frozen=True, slots=True)
class Lifetime:
    begins: datetime
    seconds: int

    @property
    def ends(self) -> datetime:
        return self.begins + timedelta(seconds=self.seconds)

    @property
    def last_second(self) -> int:
        return int(self.ends.timestamp())


class Style(Protocol):
    def __call__(self, lifetime: Lifetime, signature: bytes, /) -> str: ...


def _aws_version_4(lifetime: Lifetime, signature: bytes) -> str:
    date = lifetime.begins.strftime("%Y%m%dT%H%M%SZ")
    return urlencode(
        {
            "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
            "X-Amz-Credential": f"AKIASIMULATED/{date[:8]}/us-west-2/s3/aws4_request",
            "X-Amz-Date": date,
            "X-Amz-Expires": lifetime.seconds,
            "X-Amz-SignedHeaders": "host",
            "X-Amz-Signature": signature.hex(),
        }
    )


def _aws_version_2(lifetime: Lifetime, signature: bytes) -> str:
    return urlencode(
        {
            "AWSAccessKeyId": "AKIASIMULATED",
            "Expires": lifetime.last_second,
            "Signature": base64.b64encode(signature[:20]).decode(),
        }
    )


def _cloudfront_canned(lifetime: Lifetime, signature: bytes) -> str:
    return urlencode(
        {
            "Expires": lifetime.last_second,
            "Signature": _cloudfront_text(signature),
            "Key-Pair-Id": "KSIMULATED",
        }
    )


def _cloudfront_custom(lifetime: Lifetime, signature: bytes) -> str:
    condition = {"DateLessThan": {"AWS:EpochTime": lifetime.last_second}}
    policy = {"Statement": [{"Resource": "*", "Condition": condition}]}
    return urlencode(
        {
            "Policy": _cloudfront_text(json.dumps(policy, separators=(",", ":")).encode()),
            "Signature": _cloudfront_text(signature),
            "Key-Pair-Id": "KSIMULATED",
        }
    )


def _cloudfront_text(content: bytes) -> str:
    return base64.b64encode(content).decode().translate(str.maketrans("+=/", "-_~"))


def _azure_sas(lifetime: Lifetime, signature: bytes) -> str:
    return urlencode(
        {
            "sv": "2024-11-04",
            "st": lifetime.begins.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "se": lifetime.ends.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "sr": "b",
            "sp": "r",
            "sig": base64.b64encode(signature).decode(),
        }
    )


STYLES: Mapping[str, Style] = MappingProxyType(
    {
        "aws_version_4": _aws_version_4,
        "aws_version_2": _aws_version_2,
        "cloudfront_canned": _cloudfront_canned,
        "cloudfront_custom": _cloudfront_custom,
        "azure_sas": _azure_sas,
    }
)


@dataclass(frozen=True, slots=True)
class FileLink:
    """`seconds` may be negative: it expired that long before it was sent."""

    behaviour: Behaviour
    seed: str
    size: int
    name: str
    style: str
    seconds: int = LIFETIME_SECONDS
    salt: str = ""

    @property
    def path(self) -> str:
        return f"/f/{self.behaviour}/{self.seed}-{self.size}/{self.name}"

    @property
    def extension(self) -> str:
        return extension(self.name)

    def url(self, host: FileHostAddress, signed_at: datetime) -> str:
        signature = hashlib.sha256(f"{self.path} {self.salt}".encode()).digest()
        return f"{host}{self.path}?{STYLES[self.style](self._lifetime(signed_at), signature)}"

    def _lifetime(self, signed_at: datetime) -> Lifetime:
        if self.seconds > 0:
            return Lifetime(signed_at, self.seconds)
        return Lifetime(signed_at + timedelta(seconds=self.seconds - 3600), 3600)

    def lasting(self, seconds: int) -> "FileLink":
        return replace(self, seconds=seconds)

    def renewed(self, salt: str) -> "FileLink":
        """The same file under a fresh signature."""
        return replace(self, seconds=LIFETIME_SECONDS, salt=salt)

    def ending(self) -> Ending:
        if self.seconds < LIFETIME_SECONDS:
            return EXPIRED
        dead = dead_end(self.behaviour)
        if dead is not None:
            return dead
        size, sha256 = size_and_hash(self.seed, self.size, self.extension)
        return Ending("stored", size=size, sha256=sha256)


def extension(name: str) -> str:
    """Of a name as it stands in a URL."""
    return unquote(name).rpartition(".")[2].lower()


def in_a_path(name: str) -> str:
    return quote(name, safe="")
