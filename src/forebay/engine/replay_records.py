"""The records of a replay: the letter's own, sent back, and the markers that tell of it."""

from collections.abc import Mapping

from forebay.core.envelope import PREFIX, Envelope, seal
from forebay.core.markers import Marker, mark
from forebay.core.records import Record
from forebay.engine.replay_book import Claimed
from forebay.engine.replay_plans import Plan
from forebay.engine.routes import Route

_TRACE = PREFIX + "trace"


def replayed(claimed: Claimed, plan: Plan, routes: Mapping[str, Route]) -> Record | None:
    """As its stage first met it, under a fresh envelope; None where no stage takes it back."""
    letter = claimed.letter
    route = routes.get(letter.dlq_topic)
    if route is None or not route.re_entries:
        return None
    envelope = Envelope(
        letter.id,
        route.group,
        letter.origin,
        accepted_ms=letter.accepted_ms,
        replay_id=plan.id,
        replay_number=claimed.replay_number,
        note=_edited(plan) if claimed.is_edited else "",
    )
    topic = route.re_entry(letter.origin.topic)
    record = Record(claimed.value, letter.key, letter.headers, topic)
    trace = [header for header in letter.headers if header[0] == _TRACE]
    return record._replace(headers=seal(record, envelope, trace))


def marker(claimed: Claimed, plan: Plan) -> Record:
    """The same whenever it is made again. Of an edited letter it is the note that goes before."""
    letter = claimed.letter
    told = Marker(
        letter.id,
        letter.group,
        "note" if claimed.is_edited else "replaying",
        claimed.replay_number,
        plan.id,
        claimed.at_ms,
        plan.actor,
        _edited(plan) if claimed.is_edited else plan.reason,
    )
    return mark(told, letter.dlq_topic, letter.key)


def _edited(plan: Plan) -> str:
    return f"Its value was edited for replay {plan.id}, which keeps the original."
