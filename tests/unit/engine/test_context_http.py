"""`context.http` in a user's pipeline: listed hosts, async functions, failures that are retried."""

import pytest

from contracts.downloads.hosts import file_host, reply, says
from forebay import Done, Pipeline
from forebay.core.records import Record
from forebay.engine.assembly import Site
from forebay.engine.event_loop import EventLoop
from forebay.engine.run import PipelineRun, Until
from forebay.engine.topics import create_topics, plan_topics
from forebay.observability.catalogue import silent
from forebay.observability.clock import SystemClock
from forebay.testing import MemoryBroker, run


@pytest.fixture
def serving():
    """A host in another thread, for the pipeline blocks this one."""
    loop, hosts = EventLoop(), []

    def serve(*answers):
        hosts.append(file_host(says(*answers)))
        return loop.run(hosts[-1].__aenter__(), 5)

    yield serve
    for host in hosts:
        loop.run(host.__aexit__(None, None, None), 5)
    loop.close()


def shop(*hosts, url="", retry=("5s",)):
    pipeline = Pipeline("shop", hosts=hosts)

    @pipeline.stage("orders", retry=list(retry), emits=["receipts"], concurrency=2)
    async def charge(order: dict, context):
        return Done(emit={"receipts": await context.http.post_json(url, order)})

    return pipeline


def test_a_request_that_fails_is_made_again_after_the_delay(serving):
    host = serving(reply(b"", "503 Busy"), reply(b'{"paid": 7}'))
    with run(shop("127.0.0.1", url=host.url("/charge"))) as pipeline:
        pipeline.send("orders", {"id": "o-1"}, key="k")
        assert pipeline.sent("receipts") == []
        pipeline.advance("5s")
        assert pipeline.sent("receipts") == [{"paid": 7}]
        assert pipeline.records("receipts")[0].key == b"k"


def test_a_server_that_says_when_to_come_again_is_asked_no_sooner(serving):
    host = serving(reply(b"", "503 Busy", Retry_After="20"), reply(b'{"paid": 7}'))
    with run(shop("127.0.0.1", url=host.url(), retry=["5s", "30s"])) as pipeline:
        pipeline.send("orders", {"id": "o-1"})
        pipeline.advance("29s")
        assert pipeline.sent("receipts") == []
        pipeline.advance("2s")
        assert pipeline.sent("receipts") == [{"paid": 7}]


def test_a_host_that_is_not_listed_makes_a_dead_letter_that_says_what_to_do(serving):
    host = serving(reply(b"{}"))
    with run(shop("bank.example", url=host.url())) as pipeline:
        pipeline.send("orders", {"id": "o-1"})
        (letter,) = pipeline.dead_letters
    assert letter.category == "permanent"
    assert host.requests == []


def test_a_pipeline_without_hosts_says_what_to_declare():
    with run(shop(url="https" + "://bank.example/")) as pipeline:
        pipeline.send("orders", {"id": "o-1"})
        assert "hosts=[" in pipeline.dead_letters[0].reason


def test_a_plain_function_is_told_that_it_must_be_async():
    pipeline = Pipeline("shop", hosts=["bank.example"])

    @pipeline.stage("orders", retry=[])
    def charge(order: dict, context):
        return Done(emit={"receipts": context.http.get_json("https" + "://bank.example/")})

    with run(pipeline) as started:
        started.send("orders", {"id": "o-1"})
        assert "async def" in started.dead_letters[0].reason


def test_a_test_may_stand_in_for_the_world_outside():
    class Bank:
        async def post_json(self, url, value):
            return {"paid": value["id"]}

    with run(shop(url="https" + "://bank.example/"), http=Bank()) as pipeline:
        pipeline.send("orders", {"id": "o-1"})
        assert pipeline.sent("receipts") == [{"paid": "o-1"}]


def test_all_records_of_a_run_share_its_connections(serving):
    host = serving(reply(b'{"paid": 7}'))
    pipeline = shop("127.0.0.1", url=host.url())
    broker = MemoryBroker()
    create_topics(broker.admin(), plan_topics(pipeline), foreign_too=True)
    sender = broker.producer()
    for number in range(20):
        sender.send(Record(b'{"id": "o"}', b"%d" % number, [], "orders"))
    sender.poll(0)
    site = Site(broker, SystemClock(), silent, open_sink=None, open_letter_file=None)
    receipt = PipelineRun(pipeline, site, until=Until(idle=True)).run()
    assert (receipt.handled, receipt.dead_lettered) == (20, 0)
    assert len(host.requests) == 20
    assert host.connections <= pipeline.record_stages[0].concurrency
