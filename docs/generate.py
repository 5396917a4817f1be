"""Writes the pages of docs/reference that mirror the code: `make docs`.

A test compares each page with what this would write, so none of them can lie for long.
"""

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from forebay.broker.settings import (
    ConsumerSettings,
    EmbeddedSettings,
    KafkaSettings,
    ProducerSettings,
)
from forebay.cli import main as command_line
from forebay.observability.catalogue import EVENTS

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
CASES = ROOT / "tests" / "contracts" / "broker"

_NOTE = "<!-- Written by `make docs` from the code. Change the code, not this page. -->"


def pages() -> dict[Path, str]:
    """Every generated page and what belongs in it."""
    written: dict[str, Callable[[], Iterator[str]]] = {
        "command-line.md": _command_line,
        "settings.md": _settings,
        "events.md": _events,
        "contract-cases.md": _contract_cases,
    }
    return {
        REFERENCE / name: "\n".join([_NOTE, "", *lines(), ""]) for name, lines in written.items()
    }


def main() -> None:
    for path, text in pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        print(f"written: {path.relative_to(ROOT)}")


# The command line


def _command_line() -> Iterator[str]:
    yield "# Command line"
    yield ""
    yield (
        "Results go to stdout, everything else to stderr. With `--json` the last line of stdout is "
        "one JSON object. Exit codes: 0 done, 1 found a problem, 2 wrong use, 130 interrupted."
    )
    yield ""
    yield "Every command takes these:"
    yield ""
    commands = list(_commands("forebay", _root()))
    shared = _shared_options([command for _, command in commands])
    any_command = commands[0][1]
    yield from _option_table(p for p in any_command.params if p.name in shared)
    for name, command in commands:
        yield from _command(name, command, shared)


def _root() -> Any:
    return get_command(command_line._app())


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield name, command
        return
    for child in sorted(command.commands):
        yield from _commands(f"{name} {child}", command.commands[child])


def _shared_options(commands: list[Any]) -> set[str]:
    names = [{parameter.name for parameter in command.params} for command in commands]
    return set.intersection(*names)


def _command(name: str, command: Any, shared: set[str]) -> Iterator[str]:
    sentence, _, rest = inspect.cleandoc(command.help).partition("\n\n")
    example, _, more = rest.partition("\n\n")
    own = [parameter for parameter in command.params if parameter.name not in shared]
    yield ""
    yield f"## {name}"
    yield ""
    yield " ".join([*sentence.split(), *more.split()])
    if example:
        yield from ["", "```", example, "```"]
    if own:
        yield ""
        yield from _option_table(own)


def _option_table(parameters: Any) -> Iterator[str]:
    yield "| option | what it does | without it |"
    yield "|---|---|---|"
    for parameter in parameters:
        yield f"| {_spelled(parameter)} | {_cell(parameter.help or '')} | {_default(parameter)} |"


def _spelled(parameter: Any) -> str:
    if not parameter.opts[0].startswith("-"):
        return f"`{parameter.metavar}`"
    choices = getattr(parameter.type_descriptor.annotation, "__members__", {})
    metavar = parameter.metavar or " or ".join(choices.values())
    value = f" {metavar}" if metavar else ""
    return ", ".join(f"`{option}{value}`" for option in parameter.opts)


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    if parameter.default in (None, False):
        return ""
    return f"`{getattr(parameter.default, 'value', parameter.default)}`"


# Settings


_VARIABLES = (
    ("FOREBAY_BROKER", "which broker, when `--broker` does not say", "embedded in `--dir`"),
    ("KAFKA_BOOTSTRAP_SERVERS", "host:port[,host:port]: Kafka, when nothing else says", ""),
    ("KAFKA_SECURITY_PROTOCOL", "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL", "PLAINTEXT"),
    ("KAFKA_SASL_MECHANISM", "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", ""),
    ("KAFKA_SASL_PLAIN_USERNAME", "the user of PLAIN and SCRAM", ""),
    ("KAFKA_SASL_PLAIN_PASSWORD", "the password of PLAIN and SCRAM", ""),
    ("KAFKA_SSL_CAFILE", "a PEM file with who may sign the broker's certificate", "the system's"),
    ("EVENTHUB_CONNECTION_STRING", "the namespace, for `--broker eventhub`", ""),
    ("LOG_LEVEL", "debug, info, warning, error or critical", "warning for commands"),
    ("LOG_FORMAT", "console, json or tab", "console on a terminal, else json"),
)
_ELSEWHERE = (
    ("JAVA_HOME", "which Java starts a trial Kafka", "`java` on the path"),
    ("FOREBAY_KAFKA_CACHE", "where the jars of a trial Kafka are kept", "`~/.cache/forebay`"),
)


def variables() -> set[str]:
    return {name for name, _, _ in (*_VARIABLES, *_ELSEWHERE)}


def _settings() -> Iterator[str]:
    yield "# Settings"
    yield ""
    yield (
        "A flag wins over the environment, the environment over the default. An empty variable is "
        "an unset one. Everything that is wrong is told at once, before anything starts."
    )
    yield ""
    yield "## Environment"
    yield ""
    yield from _variable_table(_VARIABLES)
    yield ""
    yield "For a trial Kafka (`--broker kafka`, `make kafka`) alone:"
    yield ""
    yield from _variable_table(_ELSEWHERE)
    for name, settings in _declared():
        yield ""
        yield f"## {name}"
        yield ""
        yield from _defaults(settings)


def _variable_table(rows: tuple[tuple[str, str, str], ...]) -> Iterator[str]:
    yield "| variable | what it says | without it |"
    yield "|---|---|---|"
    for name, meaning, default in rows:
        yield f"| `{name}` | {meaning} | {default} |"


def _declared() -> Iterator[tuple[str, type]]:
    for settings in (ProducerSettings, ConsumerSettings, EmbeddedSettings, KafkaSettings):
        yield settings.__name__, settings


def _defaults(settings: type) -> Iterator[str]:
    yield "| field | default |"
    yield "|---|---|"
    for name, parameter in inspect.signature(settings).parameters.items():
        is_required = parameter.default is inspect.Parameter.empty
        shown = "required" if is_required else f"`{parameter.default!r}`"
        yield f"| `{name}` | {shown} |"


# Events


def _events() -> Iterator[str]:
    yield "# Events"
    yield ""
    yield (
        "Every event that Forebay emits, and every field it may carry. An event that is not here "
        "cannot be emitted; a field that is not here is dropped."
    )
    yield ""
    yield "| event | level | sentence | fields |"
    yield "|---|---|---|---|"
    for name, event in EVENTS.items():
        fields = ", ".join(f"`{field}`" for field in sorted(event.fields))
        yield f"| `{name}` | {event.level} | {_cell(event.message)} | {fields} |"


# Contract cases


def _contract_cases() -> Iterator[str]:
    cases = contract_cases()
    yield "# Contract cases"
    yield ""
    yield (
        f"What a broker must do, as {len(cases)} tests in `tests/contracts/broker`. Each runs once "
        "for every broker in its row, as `c07-embedded` or `c07-kafka`. `gappy` is the embedded "
        "broker with offsets left out at random, as Kafka leaves them out; `memory` is the broker "
        "of `forebay.testing`."
    )
    yield ""
    yield "| case | what must hold | brokers | test |"
    yield "|---|---|---|---|"
    for number, (module, name, ids) in sorted(cases.items()):
        sentence = name.removeprefix("test_").replace("_", " ")
        brokers = ", ".join(id.partition("-")[2] for id in ids)
        yield f"| c{number:02d} | {sentence} | {brokers} | `{module}.py::{name}` |"


def contract_cases() -> dict[int, tuple[str, str, list[str]]]:
    """Case number to module, test and the ids it runs under."""
    if (tests := str(ROOT / "tests")) not in sys.path:
        sys.path.insert(0, tests)
    found = {}
    for path in sorted(CASES.glob("test_*.py")):
        module = importlib.import_module(f"contracts.broker.{path.stem}")
        for name, test in vars(module).items():
            if number := getattr(test, "case_number", None):
                found[number] = (path.stem, name, _ids(test))
    return found


def _ids(test: Any) -> list[str]:
    marks = [mark for mark in test.pytestmark if mark.args and mark.args[0] == "adapter"]
    return [parameter.id for mark in marks for parameter in mark.args[1]]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    main()
