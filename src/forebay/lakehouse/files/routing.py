"""Which place keeps the files of which domain."""

from collections.abc import Mapping

from forebay.core.errors import Unusable
from forebay.lakehouse.files.port import Files

FALLBACK = "_fallback"


class FileRoutes:
    """A place for each domain that has one of its own, `_fallback` for all others."""

    def __init__(self, places: Mapping[str, Files]) -> None:
        self._places = dict(places)

    def of(self, domain: str) -> Files:
        place = self._places.get(domain) or self._places.get(FALLBACK)
        if place is None:
            raise Unusable(
                f"No place is set for the files of {domain}; set are: {self._shown()}. Nothing was "
                f"stored. Name one for {domain}, or one for all others as {FALLBACK}."
            )
        return place

    async def close(self) -> None:
        for place in {id(place): place for place in self._places.values()}.values():
            await place.close()

    def _shown(self) -> str:
        return ", ".join(sorted(self._places)) or "none"
