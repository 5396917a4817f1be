"""Names of topics, groups and workers, and who creates what."""

import pytest

from forebay import Pipeline
from forebay.core.errors import AccessDenied, UnknownTopic, Unusable
from forebay.core.records import CommittedOffset, TopicPartition
from forebay.core.topics import TopicSpec
from forebay.engine.routes import Tier
from forebay.engine.stages import WEEK_MS, Topic
from forebay.engine.topics import check_tiers, create_topics, plan_topics
from forebay.testing import FakeClock, MemoryBroker


def handle(value: bytes):
    return None


def route(stage="handle", reads="orders", *, topics=(), prefix=None, **options):
    pipeline = Pipeline("shop", topics=topics, group_prefix=prefix)
    pipeline.stage(reads, name=stage, **options)(handle)
    return pipeline.routes[0]


def test_a_stage_is_named_after_its_function_and_all_its_names_follow():
    found = route(retry=["5s", "1m", "2h", "1d"])
    assert (found.worker, found.group) == ("shop-handle", "shop-handle")
    assert found.tiers == (
        Tier("shop-handle.retry.5s", 5.0),
        Tier("shop-handle.retry.1m", 60.0),
        Tier("shop-handle.retry.2h", 7_200.0),
        Tier("shop-handle.retry.1d", 86_400.0),
    )
    assert found.dead_letters == "shop-handle.dlq"


def test_default_delays_are_5_10_20_and_40_minutes():
    assert [tier.topic.rpartition(".")[2] for tier in route().tiers] == ["5m", "10m", "20m", "40m"]


def test_another_group_prefix_changes_groups_and_topics_and_not_the_worker():
    found = route(prefix="trial", retry=["5s"])
    assert (found.worker, found.group) == ("shop-handle", "trial-handle")
    assert found.derived_topics == (
        "trial-handle.orders.again",
        "trial-handle.retry.5s",
        "trial-handle.dlq",
    )
    pipeline = Pipeline("shop", group_prefix="trial")
    assert (pipeline.scheduler_group, pipeline.ledger_group) == (
        "trial-retry-scheduler",
        "trial-dlq-handler",
    )


def test_names_that_were_given_are_kept():
    found = route(retry=["5m"], retry_topics="xact.uploads.retry", dead_letters="xact.uploads.dlq")
    assert found.tiers == (Tier("xact.uploads.retry.5m", 300.0),)
    assert found.dead_letter_topic == "xact.uploads.dlq"


def test_retries_come_back_on_the_own_topic_where_nobody_else_of_the_pipeline_reads_it():
    assert route(topics=[Topic("orders")]).re_entries == {"orders": "orders"}


def test_retries_come_back_on_a_topic_of_the_group_where_the_input_is_foreign():
    found = route()
    assert found.re_entries == {"orders": "shop-handle.orders.again"}
    assert found.reads == ("orders", "shop-handle.orders.again")


def test_retries_come_back_on_a_topic_of_the_group_where_two_groups_read_the_input():
    pipeline = Pipeline("shop", topics=[Topic("orders")])
    pipeline.stage("orders", name="one")(handle)
    assert pipeline.routes[0].re_entries == {"orders": "orders"}
    pipeline.sink("orders", name="two", file="rows.ndjson")(handle)
    assert pipeline.routes[0].re_entries == {"orders": "shop-one.orders.again"}


def test_a_record_whose_input_is_no_longer_read_comes_back_on_the_first():
    found = route(reads=["orders", "returns"])
    assert found.re_entry("returns") == "shop-handle.returns.again"
    assert found.re_entry("gone") == "shop-handle.orders.again"


def test_a_stage_with_nothing_of_its_own_creates_nothing():
    found = route(retry=[], dead_letters="file:dlq.csv")
    assert (found.derived_topics, found.reads, found.dead_letter_topic) == ((), ("orders",), None)


def test_a_sink_has_dead_letters_of_its_own_and_no_way_back():
    pipeline = Pipeline("shop")
    pipeline.sink("orders", name="rows", file="rows.ndjson")(handle)
    found = pipeline.routes[0]
    assert (found.group, found.dead_letters) == ("shop-rows", "shop-rows.dlq")
    assert (found.tiers, found.re_entries, found.derived_topics) == ((), {}, ("shop-rows.dlq",))


def plan_of(**options):
    pipeline = Pipeline("shop", topics=[Topic("orders", 12), Topic("unread", 3)])
    pipeline.stage("orders", name="charge", emits=["receipts"], **options)(handle)
    pipeline.stage("returns", name="refund", retry=[])(handle)
    return plan_topics(pipeline)


def test_a_plan_says_what_is_owned_and_what_is_others():
    plan = plan_of(retry=["5s"])
    assert {topic.name: topic.partitions for topic in plan.owned} == {
        "orders": 12,
        "unread": 3,
        "shop-charge.retry.5s": 2,
        "shop-charge.dlq": 1,
        "shop-refund.returns.again": 4,
        "shop-refund.dlq": 1,
    }
    assert {topic.name for topic in plan.foreign} == {"receipts", "returns"}


def test_a_way_back_has_as_many_partitions_as_its_input():
    pipeline = Pipeline("shop", topics=[Topic("orders", 12)])
    pipeline.stage("orders", name="one")(handle)
    pipeline.stage("orders", name="two")(handle)
    owned = {topic.name: topic.partitions for topic in plan_topics(pipeline).owned}
    assert owned["shop-one.orders.again"] == owned["shop-two.orders.again"] == 12


def test_a_tier_keeps_its_records_much_longer_than_they_wait():
    """Retention deleted retries before they were due, where a delay was longer than a week."""
    plan = plan_of(retry=["5s", "3d", "10d"])
    kept = {topic.name: topic.retention_ms for topic in plan.owned}
    assert kept["shop-charge.retry.5s"] == WEEK_MS
    assert kept["shop-charge.retry.3d"] >= 2 * 3 * 86_400_000
    assert kept["shop-charge.retry.10d"] >= 2 * 10 * 86_400_000
    assert kept["shop-charge.dlq"] >= 4 * WEEK_MS


def broker_with(*topics):
    broker = MemoryBroker(FakeClock())
    for topic in topics:
        create_topics(broker.admin(), topic, foreign_too=True)
    return broker


def test_what_is_missing_is_created_once():
    broker = broker_with()
    created = create_topics(broker.admin(), plan_of(), foreign_too=True)
    assert "orders" in created
    assert "receipts" in created
    assert create_topics(broker.admin(), plan_of(), foreign_too=True) == []


def test_others_topics_that_are_missing_are_named_and_nothing_is_created():
    broker = broker_with()
    with pytest.raises(UnknownTopic, match=r"receipts, returns.*--create-topics"):
        create_topics(broker.admin(), plan_of(), foreign_too=False)
    assert broker.admin().describe_topics() == []


TIER = "shop-charge.retry.5s"


@pytest.fixture
def retried():
    pipeline = Pipeline("shop", topics=[Topic("orders")])
    pipeline.stage("orders", name="charge", retry=["5s", "3d"])(handle)
    return pipeline


def commits(broker, group, topic):
    stored = broker._store.group(group)
    stored.committed[TopicPartition(topic, 0)] = CommittedOffset(1)


def test_tiers_that_were_just_created_are_fine_and_those_of_a_run_before_too(retried):
    broker = broker_with(plan_topics(retried))
    commits(broker, retried.scheduler_group, TIER)
    commits(broker, "shop-charge", "orders")
    check_tiers(broker.admin(), retried)


def test_a_tier_that_forgets_its_records_too_soon_is_refused(retried):
    broker = broker_with()
    broker.admin().create_topic(TopicSpec(TIER, retention_ms=86_400_000))
    create_topics(broker.admin(), plan_topics(retried), foreign_too=True)
    with pytest.raises(Unusable, match=rf"{TIER} keeps its records for 86400 s.*604800 s"):
        check_tiers(broker.admin(), retried)


def test_a_tier_that_another_group_has_read_is_refused(retried):
    """Two schedulers of different groups would bring each retry back twice."""
    broker = broker_with(plan_topics(retried))
    commits(broker, "trial-retry-scheduler", TIER)
    with pytest.raises(Unusable, match=f"trial-retry-scheduler has read {TIER}"):
        check_tiers(broker.admin(), retried)


def test_who_may_list_no_groups_is_not_kept_from_starting(retried):
    broker = broker_with(plan_topics(retried))
    commits(broker, "trial-retry-scheduler", TIER)
    check_tiers(Unseeing(broker.admin(), "list_groups"), retried)
    check_tiers(Unseeing(broker.admin(), "describe_group"), retried)


class Unseeing:
    """An admin of a user who may not ask one thing."""

    def __init__(self, inner, name):
        self._inner = inner
        self._name = name

    def __getattr__(self, name):
        return self._refuse if name == self._name else getattr(self._inner, name)

    def _refuse(self, *_):
        raise AccessDenied("This user may not look at groups.")


def test_a_pipeline_without_tiers_asks_nothing():
    pipeline = Pipeline("shop")
    pipeline.stage("orders", retry=[])(handle)
    check_tiers(Unseeing(broker_with().admin(), "describe_topics"), pipeline)
