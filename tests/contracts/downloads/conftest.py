import pytest

from contracts.downloads.certificates import Certificates
from contracts.downloads.hosts import Place


@pytest.fixture
def place(tmp_path) -> Place:
    folder = tmp_path / "cache"
    folder.mkdir()
    return Place(folder)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory) -> Certificates:
    return Certificates.made_in(tmp_path_factory.mktemp("certificates"))
