"""Reads orders as the group billing, from the start, and commits what it has printed."""

import os

from forebay.bootstrap import connect
from forebay.core.records import CommittedOffset


class FromTheStart:
    """Where to begin on a partition that the group never committed."""

    def __init__(self, consumer):
        self.consumer = consumer

    def assigned(self, committed):
        for partition, offset in committed.items():
            if offset is None:
                low, _ = self.consumer.watermarks(partition)
                self.consumer.seek(partition, low)

    def revoked(self, partitions):
        pass

    def lost(self, partitions):
        pass


def main():
    broker = connect(os.environ.get("FOREBAY_BROKER", "embedded:forebay-data"))
    consumer = broker.consumer("billing")
    consumer.subscribe(["orders"], FromTheStart(consumer))
    while records := consumer.poll(timeout_seconds=2.0):
        for record in records:
            print(record.at, record.offset, record.value.decode())
        consumer.commit({record.at: CommittedOffset(record.offset + 1) for record in records})
    broker.close()


if __name__ == "__main__":
    main()
