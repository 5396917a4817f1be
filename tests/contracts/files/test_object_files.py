"""What an object store meets and a folder does not: networks, credentials, parts, other writers."""

import asyncio
import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest

from contracts.files.members import Member, store_once
from contracts.files.places import azurite_place, case, holds, put
from forebay.core.errors import AccessDenied, Unavailable, Unusable
from forebay.lakehouse.files.objects import BearerToken, ObjectFiles
from forebay.lakehouse.files.port import Differs, FileStat
from forebay.testing.probe import RecordingProbe

AZURITE = ("azurite",)
NAME = "documentsReceived/A-1001/tr-1/A-1001_report.pdf"
LARGE = 9 * 1_048_576 + 1_234
WRONG_KEY = "eA=="
ONELAKE = "onelake.dfs.fabric.microsoft.com"


@case(61, AZURITE)
@pytest.mark.parametrize("size", [20_000, LARGE])
def test_the_hash_is_kept_with_the_object_and_asked_without_reading_it(files, new_source, size):
    given = new_source(os.urandom(size))
    put(files, given, NAME)
    assert asyncio.run(files.stat(NAME)) == FileStat(NAME, **given.promised)


@case(62, AZURITE)
def test_an_object_without_a_hash_is_read_before_it_counts_as_the_same(files, place, new_source):
    content = os.urandom(LARGE)
    place.plant(NAME, content)
    assert asyncio.run(files.stat(NAME)) == FileStat(NAME, LARGE, None)
    put(files, new_source(content), NAME)
    assert holds(files, new_source(content), NAME)
    assert not holds(files, new_source(os.urandom(LARGE)), NAME)


@case(63, AZURITE)
def test_a_large_upload_that_was_killed_leaves_nothing_to_be_seen_and_is_swept(place, new_source):
    given = new_source(os.urandom(LARGE))
    for point in ("files.while_copying", "files.before_placing"):
        assert store_once(place, given, NAME, die_at=point) == ""
        assert place.look(NAME) is None
    files = place.open()
    assert list(files.list()) == []
    assert files.sweep(time.time() - 60) == 0
    assert files.sweep(time.time() + 60) == 1


@case(64, AZURITE)
@pytest.mark.parametrize("size", [20_000, LARGE])
def test_what_another_stores_at_the_last_moment_is_not_overwritten(place, new_source, size):
    probe = RecordingProbe()
    probe.plant("files.before_placing", lambda: place.plant(NAME, b"came first"))
    files = place.open(probe)
    with pytest.raises(Differs):
        put(files, new_source(os.urandom(size)), NAME)
    assert place.look(NAME) == b"came first"
    assert files.sweep(time.time() + 60) == 0


@case(65, AZURITE)
def test_a_wrong_key_is_told_without_the_key_or_the_name_of_the_file(place, new_source):
    options = {**place.options, "azure_storage_account_key": WRONG_KEY}
    files = ObjectFiles(place.address, options)
    for act in (
        lambda: put(files, new_source(b"x"), NAME),
        lambda: asyncio.run(files.stat(NAME)),
        lambda: list(files.list()),
        lambda: files.digest(NAME),
    ):
        with pytest.raises(AccessDenied, match="refuses this client") as told:
            act()
        assert WRONG_KEY not in str(told.value)
        assert "report" not in str(told.value)


@case(66, AZURITE)
def test_a_container_that_does_not_exist_is_told_as_a_matter_of_the_whole_place(place, new_source):
    files = ObjectFiles(place.address.replace("abfss://", "abfss://no-"), place.options)
    for size in (10, LARGE):
        with pytest.raises(Unusable, match=r"does not exist \(HTTP 404, ContainerNotFound"):
            put(files, new_source(os.urandom(size)), NAME)
    with pytest.raises(Unusable, match="does not exist"):
        list(files.list())


def test_a_store_that_went_away_and_comes_back_takes_the_file_in_the_end(own_azurite, new_source):
    address = own_azurite.new_container("attachments")
    place = azurite_place(address, own_azurite.options)
    given = new_source(os.urandom(LARGE))
    own_azurite.stop()
    member = Member(place, given, NAME)
    member.go()
    own_azurite.start()
    assert member.outcome() == "stored"
    assert place.look(NAME) == given.content


def test_a_store_that_stays_away_is_unavailable_after_the_patience_it_was_given(new_source):
    options = {"azure_storage_account_name": "nobody", "azure_storage_account_key": WRONG_KEY}
    options |= {"azure_storage_endpoint": "http://127.0.0.1:9/nobody", "allow_http": "true"}
    address = "abfss://attachments@nobody.dfs.core.windows.net"
    files = ObjectFiles(address, options, patience_seconds=0.5)
    for act in (
        lambda: put(files, new_source(b"x"), NAME),
        lambda: asyncio.run(files.stat(NAME)),
        lambda: list(files.list()),
    ):
        with pytest.raises(Unavailable, match="did not answer well"):
            act()


@case(67, AZURITE)
def test_a_token_is_asked_of_its_provider_and_a_refused_one_is_told(place, new_source):
    asked = []

    def token() -> BearerToken:
        asked.append(datetime.now(tz=UTC))
        return BearerToken("not.a.token", datetime.now(tz=UTC) + timedelta(hours=1))

    options = {name: place.options[name] for name in ("azure_storage_endpoint", "allow_http")}
    files = ObjectFiles(place.address, options, token)
    with pytest.raises(AccessDenied):
        put(files, new_source(b"x"), NAME)
    assert asked


UPLOADS = """
import asyncio, json, resource, sys
from pathlib import Path
from forebay.lakehouse.files.objects import ObjectFiles

address, options, source, promised = json.loads(sys.argv[1])

async def main():
    files = ObjectFiles(address, options)
    await files.stat("none")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    puts = (files.put(Path(source), f"large/{number}", **promised) for number in range(4))
    await asyncio.gather(*puts)
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)

asyncio.run(main())
"""


@case(68, AZURITE)
def test_large_uploads_at_once_take_a_few_parts_of_memory_each(place, new_source):
    given = new_source(os.urandom(40_000_000))
    request = json.dumps([place.address, place.options, str(given.path), given.promised])
    done = subprocess.run(
        [sys.executable, "-c", UPLOADS, request],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert int(done.stdout) < 80, "MiB for four files of 40 MB at once"


REFUSED = {
    "a folder": "/var/lib/files",
    "a file URL, whose store follows links": "file:///var/lib/files",
    "another cloud": "s3://bucket/path",
    "a signature in the address": "https://account.example/att?sig=secret-signature",
    "a password in the address": "abfss://att:secret-signature@account.dfs.core.windows.net/x",
    "no host": "abfss:///x",
}


@pytest.mark.parametrize("address", REFUSED.values(), ids=REFUSED)
def test_an_address_that_is_no_object_store_is_refused_with_what_to_write(address):
    with pytest.raises(Unusable, match="abfss://CONTAINER@ACCOUNT") as refused:
        ObjectFiles(address)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "address",
    [
        f"abfss://ws@{ONELAKE}/item.Lakehouse/Files/xact",
        f"https://{ONELAKE}/ws/item.Lakehouse/Files/xact",
        "abfss://container@account.dfs.core.windows.net/path",
        "az://container/path",
    ],
)
def test_an_address_of_azure_or_onelake_is_opened_without_connecting(address):
    ObjectFiles(address, {"account_name": "account", "use_fabric_endpoint": "true"})


def test_an_option_that_nobody_knows_is_refused_by_its_name_alone():
    with pytest.raises(Unusable, match="has no option allow_invalid_certificates") as refused:
        ObjectFiles("az://container/path", {"allow_invalid_certificates": "my value"})
    assert "my value" not in str(refused.value)


def test_an_option_with_a_value_that_cannot_be_is_refused_without_showing_it():
    with pytest.raises(Unusable, match="cannot be opened") as refused:
        ObjectFiles("az://container/path", {"account_name": "a", "account_key": "no base64 *"})
    assert "base64" not in str(refused.value)
