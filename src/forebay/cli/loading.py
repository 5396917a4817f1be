"""Finds the pipeline that is named: one that Forebay brings, or `module:pipeline`."""

import importlib
import sys
from pathlib import Path

from forebay import bootstrap
from forebay.cli.errors import WrongUse
from forebay.cli.session import Session
from forebay.core.errors import ForebayError
from forebay.engine.pipeline import Pipeline


def load_pipeline(reference: str, session: Session) -> Pipeline:
    """A module is looked for in the current folder first, as `python -m` does."""
    brought = bootstrap.domain_pipeline(reference, session.settings, session.emit)
    if brought is not None:
        return brought
    module_name, _, attribute = reference.partition(":")
    if not module_name or module_name.endswith(".py") or "/" in module_name:
        raise WrongUse(f"{reference!r} names no pipeline; write module:pipeline, as orders:orders.")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    module = _module(module_name)
    name = attribute or module_name.rpartition(".")[2]
    found = getattr(module, name, None)
    if not isinstance(found, Pipeline):
        raise WrongUse(_not_there(module_name, name, found, vars(module)))
    if not found.stages:
        raise WrongUse(f"Pipeline {found.name} in {module_name} has no stage; declare one.")
    return found


def _module(name: str) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as problem:
        root, _, _ = name.partition(".")
        if problem.name in {name, root}:
            raise WrongUse(
                f"There is no module {problem.name} here. Go to the folder that holds "
                f"{name.replace('.', '/')}.py, or name another module."
            ) from problem
        raise WrongUse(f"Module {name} needs {problem.name}, which is not installed.") from problem
    except ForebayError as problem:
        raise WrongUse(f"{name} declares something that cannot work: {problem}") from problem
    except Exception as problem:
        raise WrongUse(
            f"Importing {name} failed: {type(problem).__name__}: {problem}. Mend the module, then "
            f"try again."
        ) from problem


def _not_there(module: str, name: str, found: object, held: dict[str, object]) -> str:
    pipelines = [key for key, value in held.items() if isinstance(value, Pipeline)]
    what = "is no pipeline" if found is not None else "does not exist"
    hint = f"It holds {', '.join(pipelines)}." if pipelines else "It holds no pipeline."
    return f"{name} in {module} {what}. {hint} Write {module}:{(pipelines or ['pipeline'])[0]}."
