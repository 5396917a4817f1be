"""What to say where an extra is not installed."""

from collections.abc import Iterator
from contextlib import contextmanager

from forebay.core.errors import Unusable


@contextmanager
def needs_lakehouse(what: str) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise Unusable(
            f"{what} {error.name or 'a library'}, which is not installed. Nothing was changed. "
            f"Install it: pip install 'forebay[lakehouse]'."
        ) from error
