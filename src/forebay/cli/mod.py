"""forebay mod: ready-made jobs that are configured, not programmed."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option, Typer

from forebay.broker.settings import EmbeddedSettings, KafkaSettings
from forebay.cli.command import DONE, FOUND_A_PROBLEM, INTERRUPTED, WRONG_USE, Command
from forebay.cli.errors import WrongUse
from forebay.cli.mod_tools import add_tool_commands
from forebay.cli.output import Table, print_object, print_table, remark, say
from forebay.cli.session import Session
from forebay.mods.registry import listed_mods
from forebay.mods.result import (
    CANCELLED,
    SUCCESS,
    WITH_WARNINGS,
    WRONG_PARAMETERS,
    Result,
)
from forebay.mods.running import Surroundings, run_in
from forebay.settings import EventHubs, Flags

_EXIT_CODES = {
    SUCCESS: DONE,
    WITH_WARNINGS: DONE,
    WRONG_PARAMETERS: WRONG_USE,
    CANCELLED: INTERRUPTED,
}

ModName = Annotated[str, Argument(metavar="MOD", help="As kafka_consumer.")]


@dataclass(frozen=True)
class ListMods(Command):
    def run(self) -> int:
        rows = [[name, mod.version, mod.category] for name, mod in listed_mods().items()]
        print_table(Table(["Mod", "Version", "Category"], rows), as_json=self.as_json, empty="")
        return DONE


@dataclass(frozen=True)
class DescribeMod(Command):
    mod: ModName

    def run(self) -> int:
        described = _described(self.mod)
        if self.as_json:
            print_object(described)
            return DONE
        say(f"{described['mod']} {described['version']}")
        heads = ["Name", "Type", "Default", "Min", "Max", "Description"]
        keys = ["name", "type", "default", "min", "max", "description"]
        rows = [[_cell(p, key) for key in keys] for p in described["parameters"]]
        print_table(Table(heads, rows), as_json=False, empty="")
        return DONE


@dataclass(frozen=True, kw_only=True)
class RunMod(Command):
    mod: ModName
    config: Annotated[
        Path | None,
        Option("--config", metavar="FILE", help="Its parameters, as YAML or JSON."),
    ] = None
    processor: Annotated[
        str | None,
        Option("--processor", metavar="MODULE:FUNCTION", help="What handles each message."),
    ] = None

    def run(self) -> int:
        _described(self.mod)
        params = {} if self.config is None else _read(self.config)
        if self.processor is not None:
            params = {**params, "processor_callable": self.processor}
        servers = self.broker or (None if "bootstrap_servers" in params else self._servers())
        if servers is not None:
            params = {**params, "bootstrap_servers": servers}
        if self.log_level is not None:
            params = {**params, "log_level": self.log_level.upper()}
        result = run_in(self.mod, params, None, Surroundings(log_format=self.log_format))
        _show(result, as_json=self.as_json)
        return _EXIT_CODES.get(result["exit_code"], FOUND_A_PROBLEM)

    def _servers(self) -> str | None:
        """The broker of the environment, as for every other command."""
        match Session(Flags(folder=self.folder)).settings.broker:
            case KafkaSettings(bootstrap_servers=servers):
                return servers
            case EmbeddedSettings(folder=folder):
                return f"embedded:{folder}"
            case EventHubs():
                return "eventhub"
            case _:
                return None


def _show(result: Result, *, as_json: bool) -> None:
    for sentence in (*result["errors"], *result["warnings"]):
        remark(f"forebay: {sentence}")
    if as_json:
        print_object(result)
    elif result["metrics"]:
        told = " · ".join(f"{count:,} {name}" for name, count in result["metrics"].items())
        say(told.replace("_", " "))


def _described(name: str) -> dict[str, Any]:
    if name not in (mods := listed_mods()):
        raise WrongUse(f"There is no mod {name!r}; there are: {', '.join(mods)}.")
    described: dict[str, Any] = import_module(f"{mods[name].module}.metadata").described()
    return described


def _cell(parameter: Mapping[str, Any], key: str) -> object:
    if key == "default" and parameter["required"]:
        return "required"
    value = parameter[key]
    return "" if value is None and key != "default" else value


def _read(path: Path) -> dict[str, Any]:
    import yaml  # noqa: PLC0415  most commands read no file and need not wait for it

    try:
        content: object = yaml.safe_load(path.read_text())
    except OSError as problem:
        raise WrongUse(
            f"{path} cannot be read ({problem.strerror}); write the path of a YAML file."
        ) from problem
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as problem:
        raise WrongUse(f"{path} is not YAML that can be read: {problem}") from problem
    if not isinstance(content, dict):
        raise WrongUse(f"{path} holds no parameters; write lines such as group_id: orders.")
    return {str(name): value for name, value in content.items()}


def add_mod_commands(app: Typer) -> None:
    app.command("list", help="The mods there are.\n\nforebay mod list")(ListMods)
    app.command(
        "describe",
        help="A mod's parameters with types, defaults and bounds.\n\n"
        "forebay mod describe kafka_consumer --json",
    )(DescribeMod)
    app.command(
        "run",
        help="Run a mod until it is told to stop.\n\n"
        "forebay mod run kafka_consumer --config consumer.yaml --processor orders:process\n\n"
        "Exit codes: 0 done (also with warnings), 1 failed or timed out, 2 wrong parameters, "
        "130 interrupted; with --json the exact one is in exit_code.",
    )(RunMod)
    add_tool_commands(app)
