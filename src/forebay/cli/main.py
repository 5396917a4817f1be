"""The command line: what it knows, and the one place where errors become sentences."""

import os
import sys
import traceback
from importlib import metadata
from typing import Annotated

from typer import Exit, Option, Typer

from forebay.bootstrap import untested_system
from forebay.cli.audit import add_audit_command
from forebay.cli.child import add_child_command
from forebay.cli.command import DONE, FOUND_A_PROBLEM, INTERRUPTED, WRONG_USE, Command
from forebay.cli.demo.command import add_demo_command
from forebay.cli.dlq import add_dlq_commands
from forebay.cli.doctor import add_doctor_command
from forebay.cli.errors import WrongUse
from forebay.cli.groups import add_group_commands
from forebay.cli.mod import add_mod_commands
from forebay.cli.output import remark, say
from forebay.cli.run import add_run_command
from forebay.cli.sinks import add_sink_commands
from forebay.cli.tables import add_table_commands
from forebay.cli.topics import add_topic_commands
from forebay.cli.topics_produce import add_produce_command
from forebay.cli.topics_read import add_read_command
from forebay.cli.trying import add_try_command
from forebay.cli.worker import add_worker_command
from forebay.core.errors import ForebayError


def run() -> None:
    _app()()


def _app() -> Typer:
    app = Typer(
        name="forebay",
        help="Durable event pipelines: run them, and see and mend what is going on.",
        callback=_start,
        result_callback=_execute,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    topics = _group(app, "topics", "Create, list, change, fill and read topics.")
    add_topic_commands(topics)
    add_produce_command(topics)
    add_read_command(topics)
    add_group_commands(_group(app, "groups", "See who reads what, and set where they resume."))
    add_dlq_commands(_group(app, "dlq", "See what was given up and why, send it back, decide."))
    add_sink_commands(_group(app, "sinks", "See how far sinks have stored."))
    add_table_commands(_group(app, "tables", "See what Delta tables hold, and check them."))
    add_mod_commands(_group(app, "mod", "Run ready-made jobs such as kafka_consumer; their tools."))
    add_doctor_command(app)
    add_demo_command(app)
    add_run_command(app)
    add_worker_command(app)
    add_try_command(app)
    add_audit_command(app)
    add_child_command(app)
    return app


def _group(app: Typer, name: str, help_text: str) -> Typer:
    group = Typer(no_args_is_help=True)
    app.add_typer(group, name=name, help=help_text)
    return group


def _tell_version(asked: bool) -> None:  # noqa: FBT001  typer hands the option's value over
    if asked:
        say(f"forebay {metadata.version('forebay')}")
        raise Exit(DONE)


def _start(
    *,
    version: Annotated[
        bool,
        Option("--version", callback=_tell_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """The group itself has nothing to do."""


def _execute(command: Command, **_options_of_the_group: object) -> None:
    if sentence := untested_system(sys.platform):
        remark(sentence)
    raise Exit(_exit_code(command))


def _exit_code(command: Command) -> int:
    try:
        return command.run()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _stop_writing()
        return DONE
    except WrongUse as problem:
        return _told(problem, WRONG_USE)
    except Exception as problem:  # noqa: BLE001  the edge: a person gets a sentence, never a stack
        if command.log_level == "debug":
            traceback.print_exc()
        return _told(problem, FOUND_A_PROBLEM)


def _told(problem: Exception, code: int) -> int:
    remark(f"forebay: {_sentence(problem)}")
    return code


def _sentence(problem: Exception) -> str:
    match problem:
        case ForebayError() | WrongUse():
            return str(problem)
        case OSError(strerror=str(reason), filename=str(place)):
            return f"{place}: {reason}. Nothing more was done; look at that file or folder."
        case _:
            return (
                f"A fault of Forebay's own ({type(problem).__name__}: {problem}). Please report "
                f"it, with what --log-level debug prints."
            )


def _stop_writing() -> None:
    """Who read stdout has gone; without this the interpreter complains when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
