"""What the record stages of a pipeline have not resolved, and where it lies."""

from collections.abc import Iterator, Mapping

from forebay.broker.port import Broker
from forebay.core.records import Offset, Record, TopicPartition
from forebay.engine.idle import committed_of
from forebay.engine.pipeline import Pipeline
from forebay.engine.routes import Route
from forebay.operations.spans import records_in, rest_of, watermarks_of


class Unfinished:
    """Positions are those of the moment it is made, ends those of when records are read.

    So a record that moves on meanwhile is found twice rather than never.
    """

    def __init__(self, broker: Broker, pipeline: Pipeline) -> None:
        self._broker = broker
        self._admin = broker.admin()
        self._scheduler = pipeline.scheduler_group
        groups = [self._scheduler, *(route.group for route in pipeline.routes)]
        self._committed = {group: committed_of(self._admin, group) for group in groups}

    def passed(self, group: str) -> Mapping[TopicPartition, Offset]:
        return self._committed[group]

    def records_of(self, route: Route) -> Iterator[list[Record]]:
        """In its inputs, in what only comes back, and in its tiers."""
        for topic in route.reads:
            yield from self._rest(topic, route.group)
        for tier in route.tiers:
            yield from self._rest(tier.topic, self._scheduler)

    def coming_back(self, route: Route) -> Iterator[list[Record]]:
        """Those of them that the stage has met before."""
        for topic in route.reads:
            if topic not in route.inputs:
                yield from self._rest(topic, route.group)
        for tier in route.tiers:
            yield from self._rest(tier.topic, self._scheduler)

    def _rest(self, topic: str, group: str) -> Iterator[list[Record]]:
        rest = rest_of(watermarks_of(self._admin, topic), self._committed[group])
        return records_in(self._broker, rest)
