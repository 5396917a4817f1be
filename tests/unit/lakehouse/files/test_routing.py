import asyncio

import pytest

from forebay.core.errors import Closed, Unusable
from forebay.lakehouse.files.local import LocalFiles
from forebay.lakehouse.files.routing import FileRoutes


@pytest.fixture
def xact(tmp_path) -> LocalFiles:
    return LocalFiles(tmp_path / "xact")


@pytest.fixture
def others(tmp_path) -> LocalFiles:
    return LocalFiles(tmp_path / "others")


def test_a_domain_has_its_own_place_and_all_others_the_fallback(xact, others):
    routes = FileRoutes({"xact": xact, "_fallback": others})
    assert routes.of("xact") is xact
    assert routes.of("claimx") is others


def test_a_domain_without_a_place_is_told_what_to_set(xact):
    routes = FileRoutes({"xact": xact})
    with pytest.raises(Unusable, match="No place is set for the files of claimx; set are: xact"):
        routes.of("claimx")


def test_without_any_place_every_domain_is_told(xact):
    with pytest.raises(Unusable, match="set are: none"):
        FileRoutes({}).of("xact")


def test_a_place_that_two_domains_share_is_closed_with_all_others(xact, others):
    routes = FileRoutes({"xact": xact, "claimx": xact, "_fallback": others})
    asyncio.run(routes.close())
    for place in (xact, others):
        with pytest.raises(Closed):
            place.list()
