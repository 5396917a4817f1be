"""Eight processes find an empty folder at the same moment."""

import subprocess
import sys
import tempfile
from pathlib import Path

PROCESSES = 8

_STORY = """
import sys
from pathlib import Path
from forebay.broker.embedded.broker import EmbeddedBroker
from forebay.broker.settings import EmbeddedSettings
from forebay.core.records import Record
from forebay.core.topics import TopicSpec

sys.stdin.readline()
broker = EmbeddedBroker(EmbeddedSettings(Path(sys.argv[1])))
broker.admin().create_topic(TopicSpec("first", 4), exists_ok=True)
producer = broker.producer()
for number in range(50):
    producer.send(Record(b"%d" % number, key=sys.argv[2].encode(), topic="first"))
reports = producer.close()
assert [report.error for report in reports if report.error] == []
broker.close()
print(len(reports))
"""


def race() -> list[str]:
    """What went wrong; empty when all eight started and all that they sent is there."""
    from forebay.broker.embedded.broker import EmbeddedBroker
    from forebay.broker.settings import EmbeddedSettings
    from forebay.core.records import TopicPartition

    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "broker"
        starters = [
            subprocess.Popen(
                [sys.executable, "-c", _STORY, str(folder), str(number)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for number in range(PROCESSES)
        ]
        for starter in starters:
            starter.stdin.write("go\n")
            starter.stdin.flush()
        problems = []
        for starter in starters:
            _, errors = starter.communicate(timeout=60)
            if starter.returncode:
                problems.append(errors[-500:])
        broker = EmbeddedBroker(EmbeddedSettings(folder))
        partitions = [TopicPartition("first", number) for number in range(4)]
        stored = sum(mark.end for mark in broker.admin().watermarks(partitions).values())
        broker.close()
        if stored != PROCESSES * 50:
            problems.append(f"{stored} records are there, {PROCESSES * 50} were acknowledged")
        return problems
