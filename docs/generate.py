"""Writes the pages of docs/reference that mirror the code: `make docs`.

A test compares each page with what this would write, so none of them can lie for long.
"""

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import Any

from typer.main import get_command

from forebay.broker.settings import (
    ConsumerSettings,
    EmbeddedSettings,
    KafkaSettings,
    ProducerSettings,
)
from forebay.cli import main as command_line
from forebay.mods.kafka_consumer.parameters import PARAMETERS, Parameter
from forebay.observability.catalogue import EVENTS
from forebay.settings.option import Option
from forebay.settings.options import OPTIONS
from forebay.settings.reading import CONFIG_VARIABLE
from forebay.settings.unbuilt import UNUSED_KEYS, UNUSED_VARIABLES
from forebay.settings.values import plain

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
EXAMPLE = ROOT / "deploy" / "forebay.example.yaml"
CASES = ROOT / "tests" / "contracts" / "broker"
SCENARIOS = (ROOT / "tests" / "unit" / "mods", ROOT / "tests" / "scenarios" / "mod")

_INDENT = "  "
_NOTE = "<!-- Written by `make docs` from the code. Change the code, not this page. -->"


def pages() -> dict[Path, str]:
    """Every generated page and what belongs in it."""
    written: dict[str, Callable[[], Iterator[str]]] = {
        "command-line.md": _command_line,
        "settings.md": _settings,
        "events.md": _events,
        "contract-cases.md": _contract_cases,
        "kafka-consumer-mod.md": _kafka_consumer_mod,
    }
    texts = {
        REFERENCE / name: "\n".join([_NOTE, "", *lines(), ""]) for name, lines in written.items()
    }
    return texts | {EXAMPLE: _example()}


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


_FILE_VARIABLE = (
    CONFIG_VARIABLE,
    "which forebay.yaml, when `--config` does not say",
    "`./forebay.yaml`",
)
_ELSEWHERE = (
    ("JAVA_HOME", "which Java starts a trial Kafka", "`java` on the path"),
    ("FOREBAY_KAFKA_CACHE", "where the jars of a trial Kafka are kept", "`~/.cache/forebay`"),
)


def variables() -> set[str]:
    """Every variable that the page names."""
    named = {name for name, _, _ in (_FILE_VARIABLE, *_ELSEWHERE)} | set(UNUSED_VARIABLES)
    return named | {name for option in OPTIONS for name in option.variables}


def _settings() -> Iterator[str]:
    yield "# Settings"
    yield ""
    yield (
        "A flag wins over the environment, the environment over `forebay.yaml`, that over the "
        "default. What is empty counts as not said. Everything that is wrong is told at once, "
        "before anything starts; `forebay doctor --config` shows what is not the default and who "
        "said so. [forebay.example.yaml](../../deploy/forebay.example.yaml) has every option. "
        "Relative paths begin where the command is started."
    )
    yield ""
    yield from _variable_table((_FILE_VARIABLE,))
    for section, options in groupby(OPTIONS, key=_section):
        yield ""
        yield f"## {section}"
        yield ""
        yield "| option | variable, flag | what it says | value | without it |"
        yield "|---|---|---|---|---|"
        for option in options:
            yield _option_row(option)
    yield ""
    yield "## Known, not used by this version"
    yield ""
    yield "They are no mistakes: the command that starts the work names them once and goes on."
    yield ""
    yield f"In the file: {', '.join(f'`{key}`' for key in sorted(UNUSED_KEYS))}"
    yield ""
    yield f"In the environment: {', '.join(f'`{name}`' for name in UNUSED_VARIABLES)}"
    yield ""
    yield "## A trial Kafka"
    yield ""
    yield "For `--broker kafka` and `make kafka` alone:"
    yield ""
    yield from _variable_table(_ELSEWHERE)
    for name, settings in _declared():
        yield ""
        yield f"## {name}"
        yield ""
        yield from _defaults(settings)


def _section(option: Option[Any]) -> str:
    """kafka is divided once more."""
    parts = option.key.split(".")
    if len(parts) == 1:
        return "General"
    return ".".join(parts[:2]) if parts[0] == "kafka" and len(parts) > 2 else parts[0]


def _option_row(option: Option[Any]) -> str:
    said_by = (*option.variables, option.flag) if option.flag else option.variables
    sources = ", ".join(f"`{name}`" for name in said_by)
    unit = f" ({option.unit})" if option.unit and option.unit not in option.kind.shape else ""
    without = option.otherwise or _without(option.default)
    cells = (f"`{option.key}`", sources, option.meaning, f"{option.kind.shape}{unit}", without)
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _without(default: object) -> str:
    return "" if default is None else f"`{_as_yaml(default)}`"


def _as_yaml(value: object) -> str:
    value = plain(value)
    match value:
        case bool():
            return str(value).lower()
        case list():
            return f"[{', '.join(str(item) for item in value)}]"
        case _:
            return str(value)


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


# The example of forebay.yaml


def _example() -> str:
    """Options with a default of their own as they are, the others commented out by `#key`."""
    lines = [
        "# Written by `make docs` from the code. Change the code, not this file.",
        "# Everything here may be left out. A value that begins with # is an example.",
    ]
    written: set[str] = set()
    for option in OPTIONS:
        *sections, name = option.key.split(".")
        for depth in range(len(sections)):
            if (section := ".".join(sections[: depth + 1])) not in written:
                written.add(section)
                lines += [""] * (depth == 0)
                lines.append(f"{_INDENT * depth}{sections[depth]}:")
        indent = _INDENT * len(sections)
        lines += [f"{indent}# {line}" for line in _told(option)]
        lines.append(f"{indent}{_pair(name, option)}")
    return "\n".join([*lines, ""])


def _told(option: Option[Any]) -> Iterator[str]:
    said_by = ", ".join((*option.variables, option.flag) if option.flag else option.variables)
    yield from wrap(
        f"{option.meaning}{f' ({said_by})' if said_by else ''}.", 90, break_on_hyphens=False
    )
    otherwise = f"; otherwise {option.otherwise}" if option.otherwise else ""
    unit = f" ({option.unit})" if option.unit and option.unit not in option.kind.shape else ""
    yield from wrap(f"Write {option.kind.shape}{unit}{otherwise}.", 90, break_on_hyphens=False)


def _pair(name: str, option: Option[Any]) -> str:
    if option.default is None:
        return f"#{name}: {option.example}"
    return f"{name}: {_as_yaml(option.default)}"


# Events


def _events() -> Iterator[str]:
    yield "# Events"
    yield ""
    yield (
        "Every event that Forebay emits, and every field it may carry. An event that is not here "
        "cannot be emitted; a field that is not here is dropped. Any of them also carries "
        "`mod_type` and `mod_name` where a mod says it."
    )
    yield ""
    yield "| event | level | sentence | fields |"
    yield "|---|---|---|---|"
    for name, event in EVENTS.items():
        told = event.fields - {"mod_type", "mod_name"}
        fields = ", ".join(f"`{field}`" for field in sorted(told))
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


def _kafka_consumer_mod() -> Iterator[str]:
    yield "# The kafka_consumer mod"
    yield ""
    yield (
        '`run_mod("kafka_consumer", {...})`, or `forebay mod run kafka_consumer --config FILE`, '
        "takes these parameters. What is unknown, of another type or out of bounds is refused "
        "before anything starts, all of it in one message. How to use it: "
        "[consume Kafka with a function](../howto/consume-kafka-with-a-function.md)."
    )
    for section, parameters in groupby(PARAMETERS, key=lambda parameter: parameter.section):
        yield from ["", f"## {section.capitalize()}", ""]
        yield "| parameter | type | default | min | max | what it does |"
        yield "|---|---|---|---|---|---|"
        yield from map(_parameter_row, parameters)
    yield from ["", "## The scenarios of its document", ""]
    yield "Sections 4.3, 13.2 and 13.3 run on a real Kafka; 13.1.2 is `test_validation.py`."
    yield ""
    for path in sorted(path for folder in SCENARIOS for path in folder.glob("test_*.py")):
        for name in re.findall(r"^def (test_\d\w+)", path.read_text(), re.MULTILINE):
            yield f"- `{path.relative_to(ROOT)}::{name}`"


def _parameter_row(parameter: Parameter) -> str:
    default = "required" if parameter.is_required else f"`{parameter.default}`"
    bounds = [
        "" if bound is None else f"{bound:,}" for bound in (parameter.minimum, parameter.maximum)
    ]
    cells = (f"`{parameter.name}`", parameter.kind, default, *bounds, parameter.description)
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    main()
