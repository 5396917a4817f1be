"""One Azurite per test process, shared by all tests that store objects: each takes a container."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from azurite.server import Azurite, fetch, missing
from forebay.core.errors import Unusable


@pytest.fixture(scope="session")
def azurite() -> Iterator[Azurite]:
    yield from running_azurite()


@pytest.fixture
def own_azurite() -> Iterator[Azurite]:
    """For those who stop it."""
    yield from running_azurite()


@pytest.fixture
def container(azurite: Azurite) -> str:
    """The address of a new, empty container."""
    return azurite.new_container(f"test-{uuid4().hex}")


def running_azurite() -> Iterator[Azurite]:
    if complaint := missing() or _complaint_of_fetching():
        pytest.skip(f"needs Azurite: {complaint}")
    with Azurite() as server:
        yield server


def _complaint_of_fetching() -> str | None:
    try:
        fetch()
    except Unusable as error:
        return str(error)
    return None
