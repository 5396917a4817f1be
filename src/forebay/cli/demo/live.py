"""The live picture on a terminal."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from forebay.cli.demo.keys import Keys, keys_of_terminal
from forebay.cli.demo.picture import Moment, folded, lines
from forebay.cli.demo.screen import Screen

LIVE_SECONDS = 0.25


class LivePicture:
    """What moves is cut at the edge; what is there to be read is folded."""

    every_seconds = LIVE_SECONDS
    is_watched = True

    def __init__(self, live: Live, keys: Keys) -> None:
        self._live = live
        self.keys = keys

    def show(self, moment: Moment) -> None:
        width, height = self._live.console.size
        moving = lines(moment, width, height)
        drawn = [Text(line, no_wrap=True, overflow="ellipsis") for line in moving]
        closing = [Text(line) for line in folded(moment.closing, width)]
        self._live.update(Group(*drawn, *closing), refresh=True)

    def say(self, sentences: Sequence[str]) -> None:
        """The picture has them."""

    def conclude(self, moment: Moment) -> None:
        self.show(moment)


@contextmanager
def live_screen() -> Iterator[Screen]:
    console = Console(highlight=False)
    with (
        keys_of_terminal() as keys,
        Live(console=console, auto_refresh=False, redirect_stdout=False) as live,
    ):
        yield LivePicture(live, keys)
