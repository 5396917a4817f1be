"""What a folder meets and an object store does not: links, rights, full disks, lost power."""

import asyncio
import errno
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path

import pytest

from contracts.files.members import store_once
from contracts.files.places import case, holds, local_place, put, source
from forebay.core.errors import AccessDenied, Full, Unavailable, Unusable
from forebay.lakehouse.files.local import LocalFiles
from forebay.lakehouse.files.local.durability import EachByItself, OneForAll
from forebay.lakehouse.files.port import Differs

LOCAL = ("local",)
NAME = "documentsReceived/A-1001/tr-1/A-1001_report.pdf"
SECTOR = 512


@pytest.fixture
def folder(place) -> Path:
    return Path(place.address)


@pytest.fixture
def elsewhere():
    """On another file system than any folder of a test."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as there:
        yield Path(there)


def leave_torn(folder: Path, content: bytes) -> None:
    """As a lost power supply leaves a file that was linked and not yet durable."""
    stored = folder / NAME
    stored.parent.mkdir(parents=True)
    stored.write_bytes(content)
    os.link(stored, folder / "the name it has in the cache")


@case(31, LOCAL)
def test_files_and_folders_are_for_their_owner_alone(files, folder, new_source):
    given = new_source(b"x")
    given.path.chmod(0o644)
    put(files, given, NAME)
    stored = folder / NAME
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    made = [parent for parent in stored.parents if parent.is_relative_to(folder)]
    assert {stat.S_IMODE(each.stat().st_mode) for each in made} == {0o700}


@case(32, LOCAL)
@pytest.mark.parametrize("planted", ["documentsReceived", "documentsReceived/A-1001"])
def test_a_link_planted_among_the_folders_is_not_followed(files, place, tmp_path, planted):
    outside = tmp_path / "outside"
    (outside / "A-1001" / "tr-1").mkdir(parents=True)
    link = Path(place.address) / planted
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(outside)
    before = sorted(outside.rglob("*"))
    given = source(tmp_path, b"secret")
    with pytest.raises(Differs, match="symbolic link, which is never followed"):
        put(files, given, NAME)
    assert sorted(outside.rglob("*")) == before
    assert asyncio.run(files.stat(NAME)) is None
    assert not holds(files, given, NAME)
    assert list(files.list()) == []


@case(33, LOCAL)
def test_a_link_planted_as_the_file_is_neither_followed_nor_replaced(
    files, folder, tmp_path, new_source
):
    target = tmp_path / "target"
    target.write_bytes(b"same")
    (folder / NAME).parent.mkdir(parents=True)
    (folder / NAME).symlink_to(target)
    for content in (b"same", b"other"):
        with pytest.raises(Differs, match="is taken by something that is no file of ours"):
            put(files, new_source(content), NAME)
    assert target.read_bytes() == b"same"
    assert (folder / NAME).is_symlink()
    assert files.digest(NAME) is None
    assert not holds(files, new_source(b"same"), NAME)
    assert list(files.list()) == []


@case(34, LOCAL)
@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_what_is_no_file_in_its_place_is_told_and_does_not_hang(files, folder, new_source, make):
    (folder / NAME).parent.mkdir(parents=True)
    make(folder / NAME)
    given = new_source(b"x")
    with pytest.raises(Differs, match="is taken by something"):
        put(files, given, NAME)
    assert asyncio.run(files.stat(NAME)) is None
    assert not holds(files, given, NAME)


@case(35, LOCAL)
def test_a_file_where_a_folder_should_be_is_told(files, folder, new_source):
    (folder / "documentsReceived").write_bytes(b"a file")
    with pytest.raises(Differs, match="is taken by something"):
        put(files, new_source(b"x"), NAME)
    assert (folder / "documentsReceived").read_bytes() == b"a file"


@case(36, LOCAL)
@pytest.mark.parametrize(
    "torn",
    {
        "empty": lambda content: b"",
        "ending early": lambda content: content[:12_345],
        "all zeros": lambda content: bytes(len(content)),
        "zeros in the middle": lambda content: content[:4_096] + bytes(4_096) + content[8_192:],
        "zeros and ending early": lambda content: bytes(4_096) + content[4_096:9_000],
    }.items(),
    ids=lambda given: given[0],
)
def test_a_write_that_lost_its_power_is_replaced_and_told(folder, new_source, torn):
    given = new_source(os.urandom(20_000))
    leave_torn(folder, torn[1](given.content))
    told = []
    files = LocalFiles(folder, lambda event, **fields: told.append((event, fields)))
    put(files, given, NAME)
    assert (folder / NAME).read_bytes() == given.content
    assert (folder / NAME).stat().st_nlink == 1
    assert [event for event, _ in told] == ["files.torn_replaced"]
    assert "report" not in str(told), "a file's own name may name a person"
    assert files.sweep(time.time() + 60) == 0
    asyncio.run(files.close())


@case(37, LOCAL)
@pytest.mark.parametrize(
    "other",
    [
        lambda content: content[:4_096] + b"x" * SECTOR + content[4_608:],
        lambda content: content[:12_345] + b"x",
        lambda content: content + b"more",
        lambda content: b"x",
    ],
)
def test_what_holds_a_byte_that_the_new_content_lacks_is_never_replaced(
    files, folder, new_source, other
):
    given = new_source(os.urandom(20_000))
    leave_torn(folder, other(given.content))
    with pytest.raises(Differs):
        put(files, given, NAME)
    assert (folder / NAME).read_bytes() == other(given.content)


@case(38, LOCAL)
def test_a_shorter_file_that_was_durable_is_never_taken_for_a_torn_one(files, folder, new_source):
    first = new_source(os.urandom(10_000))
    put(files, first, NAME)
    first.path.unlink()
    with pytest.raises(Differs):
        put(files, new_source(first.content + b"more"), NAME)
    assert (folder / NAME).read_bytes() == first.content


@case(39, LOCAL)
def test_a_source_on_another_file_system_is_copied_and_leaves_no_copy_behind(
    files, folder, elsewhere
):
    given = source(elsewhere, os.urandom(3_000_000))
    put(files, given, NAME)
    assert (folder / NAME).read_bytes() == given.content
    assert stat.S_IMODE((folder / NAME).stat().st_mode) == 0o600
    assert list((folder / ".incoming").iterdir()) == []


@case(40, LOCAL)
@pytest.mark.parametrize("point", ["files.while_copying", "files.after_placing"])
def test_a_copy_whose_process_was_killed_is_not_visible_and_is_swept(
    place, folder, elsewhere, point
):
    given = source(elsewhere, os.urandom(300_000))
    assert store_once(place, given, NAME, die_at=point) == ""
    files = place.open()
    assert list(files.list()) == [] or place.look(NAME) == given.content
    assert len(list((folder / ".incoming").iterdir())) == 1
    put(files, given, NAME)
    assert files.sweep(time.time() - 60) == 0
    assert files.sweep(time.time() + 60) == 1
    assert place.look(NAME) == given.content
    asyncio.run(files.close())


def test_a_full_disk_is_told_and_leaves_nothing_behind(tmp_path):
    """On a small file system of its own, in a process that alone sees it."""
    mounted = tmp_path / "small"
    mounted.mkdir()
    given = source(tmp_path, os.urandom(2_000_000))
    mount = f'mount -t tmpfs -o size=1m none {mounted} && "$@"; ls -AR {mounted}'
    alone = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "-m"]
    said = store_once(
        local_place(mounted / "files"), given, NAME, wrapper=(*alone, "sh", "-c", mount, "sh")
    )
    assert said.startswith(f"Full: The disk of {mounted}/files is full")
    assert ".part" not in said
    assert "report.pdf" not in said.partition("\n")[2]


def test_a_folder_that_may_not_be_written_or_read_is_told():
    """In a process that gives up root, for whom nothing is forbidden."""
    with tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o777)
        given = source(Path(home), b"x")
        given.path.chmod(0o644)
        folder = Path(home) / "files"
        for mode in (0o555, 0o000):
            folder.mkdir(mode=mode)
            said = store_once(local_place(folder), given, NAME, as_nobody=os.geteuid() == 0)
            assert said.startswith("AccessDenied: "), said
            folder.chmod(0o700)
            folder.rmdir()


@case(41, LOCAL)
def test_one_sync_answers_all_that_wait_and_they_are_linked_before_it(folder, new_source):
    synced = []

    def sync(descriptor: int) -> None:
        synced.append(sum(path.is_file() for path in folder.rglob("*")))

    files = LocalFiles(folder, durability=lambda folder, tree: OneForAll(folder, tree, sync))

    async def put_all() -> None:
        given = [new_source(b"x" * number) for number in range(50)]
        names = (f"tr-{number}/x" for number in range(50))
        puts = (files.put(e.path, n, **e.promised) for e, n in zip(given, names, strict=True))
        await asyncio.gather(*puts)

    asyncio.run(put_all())
    assert synced == [50]
    asyncio.run(files.close())


@case(42, LOCAL)
@pytest.mark.parametrize(
    ("code", "error"),
    [(errno.EIO, Unavailable), (errno.ENOSPC, Full), (errno.EDQUOT, Full)],
)
def test_a_failed_sync_reaches_everyone_who_waits_and_is_tried_again(
    folder, new_source, code, error
):
    failing = [code]

    def sync(descriptor: int) -> None:
        if failing:
            raise OSError(failing[0], os.strerror(failing[0]))

    files = LocalFiles(folder, durability=lambda folder, tree: OneForAll(folder, tree, sync))
    given = [new_source(os.urandom(1_000)) for _ in range(3)]

    async def put_all() -> list[object]:
        puts = (files.put(e.path, f"{n}/x", **e.promised) for n, e in enumerate(given))
        return await asyncio.gather(*puts, return_exceptions=True)

    async def ask_all() -> list[object]:
        asked = (files.holds(f"{n}/x", **e.promised) for n, e in enumerate(given))
        return await asyncio.gather(*asked, return_exceptions=True)

    assert [type(outcome) for outcome in asyncio.run(put_all())] == [error] * 3
    assert [type(outcome) for outcome in asyncio.run(ask_all())] == [error] * 3
    failing.clear()
    assert asyncio.run(put_all()) == [None] * 3
    assert asyncio.run(ask_all()) == [True] * 3
    asyncio.run(files.close())


@case(43, LOCAL)
def test_without_syncfs_each_file_is_synced_by_itself(folder, new_source):
    files = LocalFiles(folder, durability=EachByItself)
    given = new_source(os.urandom(1_000))
    put(files, given, NAME)
    assert holds(files, given, NAME)
    asyncio.run(files.close())


@case(44, LOCAL)
def test_a_folder_that_was_deleted_while_in_use_is_told(files, folder, new_source):
    shutil.rmtree(folder)
    with pytest.raises(Unavailable, match="vanished"):
        put(files, new_source(b"x"), NAME)


@case(45, LOCAL)
def test_a_link_where_copies_are_made_is_told_as_a_matter_of_the_whole_place(
    files, folder, tmp_path, elsewhere
):
    (folder / ".incoming").symlink_to(tmp_path)
    given = source(elsewhere, b"x")
    with pytest.raises(Unusable, match="move away what has its name"):
        put(files, given, NAME)
    assert list(files.list()) == []


def test_a_place_that_cannot_be_made_is_refused_when_it_is_opened(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(AccessDenied, match=r"cannot be used \(Not a directory\)"):
        LocalFiles(tmp_path / "file" / "files")
