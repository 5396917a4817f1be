"""What every place of files promises."""

import asyncio
import hashlib
import os
import time

import pytest

from contracts.files.members import Member
from contracts.files.places import case, holds, put
from forebay.core.errors import Closed, InvalidName
from forebay.lakehouse.files.port import Differs, FileStat, SourceDiffers, SourceGone

NAME = "documentsReceived/A-1001/tr-1/A-1001_report.pdf"
LARGE = 9 * 1_048_576 + 1_234

HOSTILE = {
    "an absolute path": "/etc/passwd",
    "a way up": "documentsReceived/../../x.pdf",
    "a way up at the end": "documentsReceived/..",
    "itself": "documentsReceived/./x.pdf",
    "nothing": "",
    "an empty part": "documentsReceived//x.pdf",
    "a slash at the end": "documentsReceived/",
    "a hidden file": "documentsReceived/.bashrc",
    "where unfinished files are": ".incoming/x.pdf",
    "a backslash": "a\\..\\b.pdf",
    "a zero byte": "a\x00.pdf",
    "a line end": "a\nb.pdf",
    "an escape sequence": "a\x1b[2J.pdf",
    "a right-to-left override": "a\u202efdp.exe",
    "half a character": "a\ud800.pdf",
    "a letter and its accent apart": "re\u0301sume\u0301.pdf",
    "a space before a part's end": "a /b.pdf",
    "a dot at a part's end": "a./b.pdf",
    "300 characters": "x" * 300 + ".pdf",
    "200 characters of two bytes each": "é" * 200 + ".pdf",
    "a path too long": "/".join(["x" * 100] * 11),
    "a path too deep": "/".join(["x"] * 61),
}
UNUSUAL = [
    "Ümläut, großes Ñ.PDF",
    "a b#c%41?&d=e+f.pdf",
    "x[1]~{2}^`'!$;.pdf",
    'a:b*c|d<e>"f.pdf',
    "📎 報告書.pdf",
    "CON",
    "a%2Fb",
    "x" * 251 + ".pdf",
]


@case(1)
def test_a_file_is_there_whole_after_it_was_put_and_its_source_stays(files, place, new_source):
    given = new_source(os.urandom(20_000))
    put(files, given, NAME)
    assert place.look(NAME) == given.content
    assert given.path.read_bytes() == given.content
    assert asyncio.run(files.stat(NAME)).size == 20_000
    assert files.digest(NAME) == FileStat(NAME, **given.promised)


@case(2)
def test_the_same_content_put_again_is_success_also_from_another_source(files, place, new_source):
    content = os.urandom(20_000)
    put(files, new_source(content), NAME)
    put(files, new_source(content), NAME)
    assert place.look(NAME) == content


@case(3)
def test_other_content_is_never_overwritten_even_of_the_same_size(files, place, new_source):
    first, second = new_source(os.urandom(20_000)), new_source(os.urandom(20_000))
    put(files, first, NAME)
    with pytest.raises(Differs, match="holds other content already"):
        put(files, second, NAME)
    first.path.unlink()
    with pytest.raises(Differs):
        put(files, new_source(first.content + b"more"), NAME)
    assert place.look(NAME) == first.content


@case(4)
def test_a_source_that_is_not_what_was_promised_is_not_stored(files, place, new_source):
    given = new_source(os.urandom(20_000))
    given.path.write_bytes(given.content[:-1] + b"?")
    with pytest.raises(SourceDiffers, match="must be fetched again"):
        put(files, given, NAME)
    given.path.write_bytes(given.content[:-1])
    with pytest.raises(SourceDiffers):
        put(files, given, NAME)
    assert place.look(NAME) is None
    assert list(files.list()) == []


@case(5)
def test_a_source_that_is_gone_is_told_from_a_destination_that_fails(files, new_source):
    given = new_source(b"x")
    given.path.unlink()
    with pytest.raises(SourceGone, match="is not there any more"):
        put(files, given, NAME)


@case(6)
def test_a_source_that_is_a_link_is_not_followed(files, place, new_source):
    given = new_source(b"secret")
    given.path.rename(given.path.with_name("elsewhere"))
    given.path.symlink_to("elsewhere")
    with pytest.raises(SourceDiffers, match="is no file"):
        put(files, given, NAME)
    assert place.look(NAME) is None


@case(7)
@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_name_is_refused_by_every_method_and_touches_nothing(
    files, tmp_path, new_source, name
):
    given = new_source(b"hostile")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidName) as refused:
        put(files, given, name)
    for ask in (files.stat, lambda name: files.holds(name, **given.promised)):
        with pytest.raises(InvalidName):
            asyncio.run(ask(name))
    with pytest.raises(InvalidName):
        files.digest(name)
    if name:
        with pytest.raises(InvalidName):
            files.list(name)
    assert str(refused.value).isprintable()
    assert sorted(tmp_path.rglob("*")) == before
    assert list(files.list()) == []


@case(8)
@pytest.mark.parametrize("last", UNUSUAL)
def test_an_unusual_name_comes_back_as_it_was(files, new_source, last):
    name = f"documentsReceived/{last}"
    given = new_source(last.encode())
    put(files, given, name)
    assert [found.name for found in files.list()] == [name]
    assert files.digest(name) == FileStat(name, **given.promised)


@case(9)
def test_what_is_not_there_is_none_and_not_held(files, place, new_source):
    place.plant("folder/x.pdf", b"x")
    for name in ("none.pdf", "folder", "folder/none.pdf", "folder/x.pdf/below"):
        assert asyncio.run(files.stat(name)) is None
        assert files.digest(name) is None
        assert not holds(files, new_source(b""), name)


@case(10)
def test_held_is_only_what_has_this_size_and_this_hash(files, place, new_source):
    place.plant(NAME, b"ours")
    assert holds(files, new_source(b"ours"), NAME)
    assert not holds(files, new_source(b"othe"), NAME)
    assert not holds(files, new_source(b"ours and more"), NAME)


@case(11)
def test_a_file_that_something_else_put_there_counts_by_its_content(files, place, new_source):
    place.plant(NAME, b"stored before")
    put(files, new_source(b"stored before"), NAME)
    with pytest.raises(Differs):
        put(files, new_source(b"something new"), NAME)


@case(12)
def test_the_list_names_every_file_below_a_folder_and_no_other(files, place):
    for name in ("a/1", "a/b/2", "a/b/3", "ab/4", "5"):
        place.plant(name, name.encode())
    place.plant("a/.hidden", b"")
    place.plant(".incoming/left-behind", b"")

    def listed(prefix: str = "") -> list[str]:
        return sorted(found.name for found in files.list(prefix))

    assert listed() == ["5", "a/1", "a/b/2", "a/b/3", "ab/4"]
    assert listed("a") == ["a/1", "a/b/2", "a/b/3"]
    assert listed("a/b") == ["a/b/2", "a/b/3"]
    assert listed("none") == []
    assert {found.name: found.size for found in files.list("a")}["a/b/2"] == len("a/b/2")


@case(13)
def test_a_large_file_is_stored_whole_and_again_and_never_over_another(files, place, new_source):
    given = new_source(os.urandom(LARGE))
    put(files, given, NAME)
    assert hashlib.sha256(place.look(NAME)).hexdigest() == given.promised["sha256"]
    put(files, given, NAME)
    with pytest.raises(Differs):
        put(files, new_source(os.urandom(LARGE)), NAME)
    assert holds(files, given, NAME)
    assert [found.name for found in files.list()] == [NAME]
    assert files.sweep(time.time() + 60) == 0


@case(14)
def test_a_large_source_that_changed_leaves_nothing_behind(files, place, new_source):
    given = new_source(os.urandom(LARGE))
    given.path.write_bytes(os.urandom(LARGE))
    with pytest.raises(SourceDiffers):
        put(files, given, NAME)
    assert place.look(NAME) is None
    assert files.sweep(time.time() + 60) == 0


@case(15)
def test_an_empty_file_can_be_stored(files, place, new_source):
    put(files, new_source(b""), NAME)
    assert place.look(NAME) == b""


@case(16)
@pytest.mark.parametrize("size", [2_000, LARGE])
def test_two_processes_that_store_the_same_at_once_both_succeed(place, new_source, size):
    given = new_source(os.urandom(size))
    members = [Member(place, given, NAME) for _ in range(2)]
    for member in members:
        member.go()
    assert [member.outcome() for member in members] == ["stored", "stored"]
    assert place.look(NAME) == given.content


@case(17)
@pytest.mark.parametrize("size", [2_000, LARGE])
def test_of_two_processes_that_store_different_content_one_wins(place, new_source, size):
    given = [new_source(os.urandom(size)) for _ in range(2)]
    members = [Member(place, each, NAME) for each in given]
    for member in members:
        member.go()
    outcomes = [member.outcome().partition(":")[0] for member in members]
    assert sorted(outcomes) == ["Differs", "stored"]
    assert place.look(NAME) == given[outcomes.index("stored")].content


@case(18)
@pytest.mark.parametrize("size", [2_000, LARGE])
@pytest.mark.parametrize(
    "point",
    ["files.before_placing", "files.while_copying", "files.after_placing", "files.after_putting"],
)
def test_a_process_killed_on_the_way_leaves_all_or_nothing(place, new_source, point, size):
    given = new_source(os.urandom(size))
    other = new_source(given.content)
    first = Member(place, given, NAME, die_at=point)
    first.go()
    assert first.outcome() in {"", "stored"}
    assert place.look(NAME) in {None, given.content}
    files = place.open()
    put(files, other, NAME)
    assert place.look(NAME) == given.content
    files.sweep(time.time() + 60)
    assert files.sweep(time.time() + 60) == 0
    assert [found.name for found in files.list()] == [NAME]
    asyncio.run(files.close())


@case(19)
def test_fifty_at_once_are_all_stored(files, place, new_source):
    given = {f"tr-{number}/x.pdf": new_source(os.urandom(20_000)) for number in range(50)}

    async def put_all() -> None:
        puts = (files.put(each.path, name, **each.promised) for name, each in given.items())
        await asyncio.gather(*puts)

    asyncio.run(put_all())
    assert {name: place.look(name) for name in given} == {
        name: each.content for name, each in given.items()
    }


@case(20)
def test_a_put_that_is_cancelled_leaves_all_or_nothing(files, place, new_source):
    given = new_source(os.urandom(LARGE))

    async def give_up() -> None:
        putting = asyncio.create_task(files.put(given.path, NAME, **given.promised))
        await asyncio.sleep(0.01)
        putting.cancel()
        await asyncio.gather(putting, return_exceptions=True)

    asyncio.run(give_up())
    put(files, given, NAME)
    assert place.look(NAME) == given.content


@case(21)
def test_closing_twice_is_fine_and_what_comes_after_is_refused(place, new_source):
    files = place.open()
    asyncio.run(files.close())
    asyncio.run(files.close())
    with pytest.raises(Closed):
        put(files, new_source(b"x"), NAME)
    with pytest.raises(Closed):
        files.list()
    with pytest.raises(Closed):
        files.sweep(0)


@case(22)
def test_what_an_interrupted_put_left_is_swept_by_age_alone(files, place):
    place.plant(".incoming/young", b"x")
    assert files.sweep(time.time() - 60) == 0
    assert files.sweep(time.time() + 60) == 1
    assert place.look(".incoming/young") is None
