"""The live table on a terminal."""

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from forebay.cli.demo.progress import Progress
from forebay.cli.output import shown


class LiveTable:
    def __init__(self, progress: Progress, live: Live) -> None:
        self._progress = progress
        self._live = live

    def look(self, last_event: str) -> None:
        if self._progress.is_due():
            self.draw(last_event)

    def draw(self, last_event: str) -> None:
        self._live.update(self._drawn(last_event), refresh=True)

    def _drawn(self, last_event: str) -> Group:
        table = Table(box=None, header_style="bold", padding=(0, 2, 0, 1))
        table.add_column("worker")
        table.add_column("process", justify="right")
        table.add_column("partitions")
        table.add_column("records", justify="right")
        for name, pid, partitions, records in self._progress.rows():
            table.add_row(name, str(pid), partitions, shown(records))
        headline = Text(f" {self._progress.headline()}\n")
        return Group(headline, table, Text(f"\n latest   {last_event}"))
