"""Who we are to Azure Storage."""

from pathlib import Path
from typing import Any

from forebay.broker.settings import Secret
from forebay.settings.kinds import ExistingFile, SecretText, Text
from forebay.settings.option import Option

TOKEN_FILE: Option[Path | None] = Option(
    "azure.token_file",
    ExistingFile(),
    "A file with one token, or with {resource: token}; read again at each opening",
    None,
    ("AZURE_TOKEN_FILE",),
    example="azure-token.json",
)
TENANT: Option[str | None] = Option(
    "azure.tenant_id",
    Text(),
    "The tenant of the service principal",
    None,
    ("AZURE_TENANT_ID",),
    example="00000000-0000-0000-0000-000000000000",
)
CLIENT: Option[str | None] = Option(
    "azure.client_id",
    Text(),
    "The service principal",
    None,
    ("AZURE_CLIENT_ID",),
    example="00000000-0000-0000-0000-000000000000",
)
SECRET: Option[Secret | None] = Option(
    "azure.client_secret",
    SecretText(),
    "Its secret; better in the environment than in a file",
    None,
    ("AZURE_CLIENT_SECRET",),
    example="'...'",
)
FEDERATED: Option[Path | None] = Option(
    "azure.federated_token_file",
    ExistingFile(),
    "The token of a workload identity, as Kubernetes mounts it",
    None,
    ("AZURE_FEDERATED_TOKEN_FILE",),
    example="workload-token",
)
ACCOUNT: Option[str | None] = Option(
    "azure.account_name",
    Text(),
    "The storage account, where an address does not name it",
    None,
    ("AZURE_STORAGE_ACCOUNT_NAME",),
    otherwise="the address's",
    example="devstoreaccount1",
)
KEY: Option[Secret | None] = Option(
    "azure.account_key",
    SecretText(),
    "Its key, for trials; OneLake takes none",
    None,
    ("AZURE_STORAGE_ACCOUNT_KEY",),
    example="'...'",
)
ENDPOINT: Option[str | None] = Option(
    "azure.endpoint",
    Text(),
    "Where the account answers, for trials with Azurite",
    None,
    ("AZURE_STORAGE_ENDPOINT",),
    otherwise="Azure's",
    example="http://127.0.0.1:10000/devstoreaccount1",
)

OPTIONS: tuple[Option[Any], ...] = (
    *(TOKEN_FILE, TENANT, CLIENT, SECRET, FEDERATED),
    *(ACCOUNT, KEY, ENDPOINT),
)
