"""A container of Azure Storage or a workspace of OneLake, opened by its address."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from obstore.exceptions import BaseError
from obstore.store import AzureStore

from forebay.core.errors import Unusable

SCHEMES = ("abfss", "abfs", "az", "azure", "https")

# The client's own options, which its `config` does not take: it panics.
_FOR_CLIENT = frozenset({"allow_http", "connect_timeout", "proxy_url", "timeout"})
_FOR_STORE = frozenset(
    {
        *("access_key", "account_key", "account_name", "authority_host", "authority_id"),
        *("bearer_token", "client_id", "client_secret", "container_name", "endpoint"),
        *("federated_token_file", "msi_endpoint", "msi_resource_id", "object_id", "sas_key"),
        *("sas_token", "tenant_id", "token", "use_azure_cli", "use_emulator"),
        *("use_fabric_endpoint",),
    }
)
_PREFIXES = ("azure_storage_", "azure_")
_CONNECT_TIMEOUT = "10s"
_REQUEST_TIMEOUT = "120s"
_TRIES_MAX = 1_000
_PAUSE_SECONDS_MAX = 3


class BearerToken(NamedTuple):
    """An Entra token for Azure Storage. The store asks for a new one before it expires."""

    token: str
    expires_at: datetime


Credential: TypeAlias = Callable[[], BearerToken]


def open_store(
    url: str, options: Mapping[str, str], credential: Credential | None, patience_seconds: float
) -> AzureStore:
    """`options` are named as those of Delta tables. Connects to nothing yet."""
    _check_address(url)
    config, client_options = _sorted_options(options)
    shown = ", ".join(sorted(options)) or "none"
    try:
        return AzureStore.from_url(
            url,
            config=config,
            client_options=client_options,
            retry_config=_retries(patience_seconds),
            credential_provider=_provider(credential) if credential else None,
        )
    except (BaseError, ValueError) as error:
        raise Unusable(
            f"{shown_address(url)} cannot be opened with the options {shown}: "
            f"{type(error).__name__}. Nothing was stored. Correct the address, or the options."
        ) from error


def shown_address(url: str) -> str:
    """The address for messages: no query, where a signature would be."""
    return urlsplit(url)._replace(query="", fragment="").geturl()


def _check_address(url: str) -> None:
    parts = urlsplit(url)
    has_secret = bool(parts.password or parts.query)
    if parts.scheme in SCHEMES and parts.netloc and not has_secret:
        return
    raise Unusable(
        f"An address of {parts.scheme or 'no'} kind is no place for files. Nothing was stored. "
        f"Write abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH, or "
        f"abfss://WORKSPACE@onelake.dfs.fabric.microsoft.com/ITEM/Files/PATH, without a query or a "
        f"password; or a folder."
    )


def _sorted_options(options: Mapping[str, str]) -> tuple[Any, Any]:
    """For the store, and for the client below it. Raises Unusable for what neither knows."""
    client: dict[str, str | bool] = {
        "connect_timeout": _CONNECT_TIMEOUT,
        "timeout": _REQUEST_TIMEOUT,
    }
    store = {}
    for name, value in options.items():
        plain = _without_prefix(name.lower())
        if plain in _FOR_CLIENT:
            client[plain] = value == "true" if plain == "allow_http" else value
        elif plain in _FOR_STORE:
            store[name.lower()] = value
        else:
            raise Unusable(
                f"An object store has no option {name}. Nothing was opened. Known are: "
                f"{', '.join(sorted(_FOR_STORE | _FOR_CLIENT))}."
            )
    return store, client


def _without_prefix(name: str) -> str:
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name


def _retries(patience_seconds: float) -> Any:
    """By time alone: the client's ten tries may be over within two seconds."""
    return {
        "max_retries": _TRIES_MAX,
        "retry_timeout": timedelta(seconds=patience_seconds),
        "backoff": {"max_backoff": timedelta(seconds=_PAUSE_SECONDS_MAX)},
    }


def _provider(credential: Credential) -> Any:
    def provide() -> dict[str, object]:
        token, expires_at = credential()
        return {"token": token, "expires_at": expires_at}

    return provide
