"""Who we are to Azure Storage: a token file, a key, a principal, the Azure CLI, or the machine."""

import shutil
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson

from forebay.core.errors import Unusable

STORAGE = "https://storage.azure.com"
READ_AGAIN = timedelta(minutes=5)
_FABRIC = ".fabric.microsoft.com"


@dataclass(frozen=True, slots=True)
class AzureSettings:
    """Nothing set: what the machine itself is known as."""

    token_file: Path | None = None
    tenant_id: str | None = None
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    federated_token_file: Path | None = None
    account_name: str | None = None
    account_key: str | None = field(default=None, repr=False)
    endpoint: str | None = None


def storage_options(azure: AzureSettings, url: str) -> dict[str, str]:
    """As clients of Azure Storage take them. Asked for at each opening: tokens are renewed."""
    return _credential(azure) | place_options(azure, url)


def place_options(azure: AzureSettings, url: str) -> dict[str, str]:
    """Without a credential, for a client that asks for one whenever it needs it."""
    options: dict[str, str] = {}
    if azure.account_name:
        options["account_name"] = azure.account_name
    if azure.endpoint:
        options["endpoint"] = azure.endpoint
        options["allow_http"] = str(azure.endpoint.startswith("http://")).lower()
    if _FABRIC in url:
        options["use_fabric_endpoint"] = "true"
    return options


def _credential(azure: AzureSettings) -> dict[str, str]:
    if azure.token_file is not None:
        return {"bearer_token": read_token(azure.token_file)}
    if azure.account_key:
        return {"account_key": azure.account_key}
    principal = {"tenant_id": azure.tenant_id or "", "client_id": azure.client_id or ""}
    if azure.client_secret:
        return principal | {"client_secret": azure.client_secret}
    if azure.federated_token_file is not None:
        return principal | {"federated_token_file": str(azure.federated_token_file)}
    if shutil.which("az") is not None:
        return {"use_azure_cli": "true"}
    return {}


def read_token(path: Path, resource: str = STORAGE) -> str:
    """The file holds one token, or an object with a token for each resource."""
    try:
        text = path.read_text().strip()
    except OSError as problem:
        raise Unusable(
            f"The token file {path} cannot be read ({problem.strerror}), so nothing in Azure can "
            f"be reached. See that it is written there, or unset AZURE_TOKEN_FILE."
        ) from problem
    if not text.startswith("{"):
        return _some(text, path, resource)
    try:
        tokens = orjson.loads(text)
    except orjson.JSONDecodeError as problem:
        raise Unusable(
            f"The token file {path} is neither a token nor JSON. Write {{resource: token}}."
        ) from problem
    found = {str(name).rstrip("/"): token for name, token in tokens.items()}
    return _some(str(found.get(resource, "")), path, resource)


def read_token_now(path: Path, now: datetime | None = None) -> tuple[str, datetime]:
    """And until when a client may keep it: the file is renewed before its token ends."""
    return read_token(path), (now or datetime.now(UTC)) + READ_AGAIN


def _some(token: str, path: Path, resource: str) -> str:
    if not token:
        raise Unusable(
            f"The token file {path} has no token for {resource}/. Write one there, or unset "
            f"AZURE_TOKEN_FILE."
        )
    return token
