"""A dead letter as a test: it fails as long as the record ends in the dead letters."""

from collections.abc import Iterator

from forebay.cli.dlq_rows import place_of
from forebay.cli.payload import printable
from forebay.core.durations import written
from forebay.core.envelope import user_headers
from forebay.engine.letters import DeadLetter
from forebay.engine.stages import RecordStage, Stage
from forebay.observability.redaction import scrub

_PIECE_LENGTH = 72
_SHORT_ID_LENGTH = 8


def test_name(letter: DeadLetter) -> str:
    return f"test_dead_letter_{letter.id[:_SHORT_ID_LENGTH]}"


def test_of(letter: DeadLetter, stage: Stage, reference: str) -> Iterator[str]:
    """The lines of a module for pytest. `reference` is `module:attribute`."""
    module, _, attribute = reference.partition(":")
    pipeline = attribute.partition(".")[0]
    reason = scrub(printable(letter.reason)).replace("\\", "/").replace('"', "'")
    yield f'"""Dead letter {letter.id} of {place_of(letter)}.'
    yield ""
    yield f"It failed with: {reason}"
    yield '"""'
    yield ""
    yield "import forebay.testing"
    yield ""
    yield f"from {module} import {pipeline}"
    yield ""
    yield ""
    yield f"def {test_name(letter)}():"
    yield f"    with forebay.testing.run({attribute}) as run:"
    yield "        run.send("
    yield f"            {letter.origin.topic!r},"
    yield from _argument("", letter.value)
    yield from _argument("key=", letter.key)
    yield from _headers(letter)
    yield "        )"
    if isinstance(stage, RecordStage):
        for delay in stage.retry.delays_seconds:
            yield f'        run.advance("{written(delay)}")'
    yield "        assert run.dead_letters == []"


def _headers(letter: DeadLetter) -> Iterator[str]:
    headers = user_headers(letter.headers)
    if headers:
        yield "            headers=["
        for name, value in headers:
            yield f"                ({name!r}, {value!r}),"
        yield "            ],"


def _argument(name: str, value: bytes | None) -> Iterator[str]:
    """Long ones in pieces, which Python puts together again."""
    if value is None or len(value) <= _PIECE_LENGTH:
        yield f"            {name}{value!r},"
        return
    yield f"            {name}("
    for at in range(0, len(value), _PIECE_LENGTH):
        yield f"                {value[at : at + _PIECE_LENGTH]!r}"
    yield "            ),"
