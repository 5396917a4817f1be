import pytest

from kafka_fixtures import kafka  # noqa: F401
from scenarios.place import Place

BROKERS = ("embedded", "kafka")


@pytest.fixture(scope="session")
def bytecode(tmp_path_factory):
    """Compiled once: most of the time of these tests would otherwise be compiling."""
    return tmp_path_factory.mktemp("bytecode")


@pytest.fixture(params=BROKERS)
def place(request, tmp_path, bytecode):
    """On each broker."""
    yield from _open(request, tmp_path, bytecode, request.param)


@pytest.fixture
def embedded_place(request, tmp_path, bytecode):
    """For what does not differ between brokers."""
    yield from _open(request, tmp_path, bytecode, "embedded")


def _open(request, folder, bytecode, broker):
    url = f"embedded:{folder / 'data'}"
    if broker == "kafka":
        url = f"kafka://{request.getfixturevalue('kafka').bootstrap}"
    opened = Place(folder, url, bytecode)
    yield opened
    opened.close()
