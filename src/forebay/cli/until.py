"""When a run is to end, as people write it."""

import re
from collections.abc import Sequence

from forebay.cli.errors import WrongUse
from forebay.cli.times import duration_ms
from forebay.core.records import TopicPartition
from forebay.engine.run import Until

_STOP = re.compile(r"(?P<topic>[^:=]+):(?P<partition>\d+)=(?P<offset>\d+)\Z")


def parse_until(texts: Sequence[str]) -> Until:
    """`idle`, `count=N`, `for=10m`, or `TOPIC:PARTITION=OFFSET` (exclusive, may be several)."""
    stops: dict[TopicPartition, int] = {}
    idle, seconds, records = False, None, None
    for text in texts:
        written = text.strip()
        name, _, value = written.partition("=")
        if written == "idle":
            idle = True
        elif name == "for":
            seconds = duration_ms(value) / 1000
        elif name == "count" and value.isascii() and value.isdigit() and int(value) > 0:
            records = int(value)
        elif found := _STOP.match(written):
            place = TopicPartition(found["topic"], int(found["partition"]))
            stops[place] = int(found["offset"])
        else:
            raise WrongUse(
                f"--until {text!r} is nothing to wait for; write idle, count=100, for=10m or "
                f"orders:0=500 (offset 500 is not handled any more)."
            )
    return Until(idle=idle, seconds=seconds, records=records, stops=stops or None)
