import asyncio
from collections.abc import Callable, Iterator

import pytest

from azurite_fixtures import azurite, container, own_azurite  # noqa: F401  one for all of a process
from contracts.files.places import Place, Source, azurite_place, local_place, source
from forebay.lakehouse.files.port import Files


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path) -> Place:
    if request.param == "local":
        return local_place(tmp_path / "files")
    address = request.getfixturevalue("container")
    return azurite_place(f"{address}/attachments/xact", request.getfixturevalue("azurite").options)


@pytest.fixture
def files(place: Place) -> Iterator[Files]:
    opened = place.open()
    yield opened
    asyncio.run(opened.close())


@pytest.fixture
def new_source(tmp_path) -> Callable[[bytes], Source]:
    cache = tmp_path / "cache"
    cache.mkdir()
    return lambda content: source(cache, content)
