"""Who we are to Azure Storage."""

import json
from datetime import UTC, datetime

import pytest

from forebay.core.errors import Unusable
from forebay.identity import (
    AzureSettings,
    place_options,
    read_token,
    read_token_now,
    storage_options,
)

ONELAKE = "abfss://workspace@onelake.dfs.fabric.microsoft.com/item.Lakehouse/Files"
ACCOUNT = "abfss://files@account.dfs.core.windows.net/xact"


@pytest.fixture
def token_file(tmp_path):
    def write(content):
        path = tmp_path / "token"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


@pytest.mark.parametrize(
    "content",
    [
        "secret-token\n",
        {"https://storage.azure.com/": "secret-token"},
        {"https://storage.azure.com": "secret-token", "https://other.example": "x"},
    ],
)
def test_a_token_file_holds_one_token_or_one_for_each_resource(token_file, content):
    assert read_token(token_file(content)) == "secret-token"


@pytest.mark.parametrize("content", ["", "  ", {"https://other.example": "x"}, "{broken"])
def test_a_file_without_a_token_for_storage_says_what_to_write(token_file, content):
    with pytest.raises(Unusable, match=r"Write|unset"):
        read_token(token_file(content))


def test_a_token_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(Unusable, match="cannot be read"):
        read_token(tmp_path / "nowhere")


def test_a_renewed_token_is_used_at_the_next_opening(token_file):
    azure = AzureSettings(token_file=token_file("old"))
    assert storage_options(azure, ACCOUNT)["bearer_token"] == "old"
    token_file("new")
    assert storage_options(azure, ACCOUNT)["bearer_token"] == "new"


def test_who_asks_whenever_a_token_is_needed_gets_the_one_of_that_moment(token_file):
    now = datetime(2026, 1, 1, 12, tzinfo=UTC)
    path = token_file("old")
    assert read_token_now(path, now) == ("old", datetime(2026, 1, 1, 12, 5, tzinfo=UTC))
    token_file("new")
    token, until = read_token_now(path)
    assert token == "new"
    assert until > datetime.now(UTC)


def test_a_client_that_asks_for_its_tokens_is_given_none_to_keep(token_file):
    azure = AzureSettings(token_file=token_file("t"), account_name="a")
    assert place_options(azure, ONELAKE) == {"account_name": "a", "use_fabric_endpoint": "true"}


def test_a_token_file_comes_before_a_principal(token_file):
    azure = AzureSettings(token_file=token_file("t"), client_id="c", client_secret="s")
    assert storage_options(azure, ACCOUNT) == {"bearer_token": "t"}


def test_a_principal_is_named_with_its_tenant():
    azure = AzureSettings(tenant_id="t", client_id="c", client_secret="s")
    assert storage_options(azure, ACCOUNT) == {
        "tenant_id": "t",
        "client_id": "c",
        "client_secret": "s",
    }


def test_onelake_is_reached_through_fabric():
    azure = AzureSettings(tenant_id="t", client_id="c", client_secret="s")
    assert storage_options(azure, ONELAKE)["use_fabric_endpoint"] == "true"
    assert "use_fabric_endpoint" not in storage_options(azure, ACCOUNT)


def test_a_trial_with_azurite_is_plain_http_at_its_endpoint():
    azure = AzureSettings(account_name="a", account_key="k", endpoint="http://127.0.0.1:1/a")
    options = storage_options(azure, ACCOUNT)
    assert (options["endpoint"], options["allow_http"]) == ("http://127.0.0.1:1/a", "true")


def test_no_secret_is_in_what_is_printed():
    shown = repr(AzureSettings(client_secret="s3cret", account_key="k3y"))
    assert "s3cret" not in shown
    assert "k3y" not in shown
