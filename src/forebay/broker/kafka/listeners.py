"""How a trial broker lets clients in: who they are, and over what."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

_MODULES = "org.apache.kafka.common.security"


@dataclass(frozen=True, slots=True)
class Listener:
    """The listener for clients. Nodes talk to each other over one of their own, in plain text."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    mechanisms: Mapping[str, str] = field(default_factory=dict)
    key_and_certificate: Path | None = None
    reauthenticate_ms: int = 0

    def properties(self) -> dict[str, str]:
        return {
            f"listener.name.client.{name}": value
            for name, value in (*self._sasl().items(), *self._tls().items())
        }

    def _sasl(self) -> dict[str, str]:
        if not self.mechanisms:
            return {}
        properties = {"sasl.enabled.mechanisms": ",".join(self.mechanisms)}
        for mechanism, login in self.mechanisms.items():
            properties[f"{mechanism.lower()}.sasl.jaas.config"] = login
            reauthenticate = f"{mechanism.lower()}.connections.max.reauth.ms"
            properties[reauthenticate] = str(self.reauthenticate_ms)
        return properties

    def _tls(self) -> dict[str, str]:
        if self.key_and_certificate is None:
            return {}
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.key_and_certificate),
        }


def plain(users: Mapping[str, str]) -> dict[str, str]:
    """User names and passwords, kept by the broker itself."""
    named = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    return {"PLAIN": f"{_MODULES}.plain.PlainLoginModule required {named};"}


def scram() -> dict[str, str]:
    """Users are added by an admin over the internal listener."""
    return {"SCRAM-SHA-512": f"{_MODULES}.scram.ScramLoginModule required;"}


def unsigned_tokens() -> dict[str, str]:
    """Takes any token that has a subject and has not expired: for trials only."""
    return {"OAUTHBEARER": f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required ;"}
