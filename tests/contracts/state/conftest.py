from collections.abc import Callable, Iterator

import pytest

from contracts.state.adapters import ALL, Store, store
from forebay.state.port import Database


@pytest.fixture(params=ALL)
def kept(request: pytest.FixtureRequest, tmp_path) -> Store:
    """Where rows stay when every database on it is closed."""
    return store(request.param, str(tmp_path / "state"))


@pytest.fixture
def open_database(kept: Store) -> Iterator[Callable[[], Database]]:
    opened = []

    def open_one() -> Database:
        opened.append(kept.open())
        return opened[-1]

    yield open_one
    for database in opened:
        database.close()


@pytest.fixture
def database(open_database) -> Database:
    return open_database()
