"""Sizes are tripwires: a long function or file asks for a second look, a very long one fails."""

import ast

import pytest

from architecture.tree import PACKAGE, ROOT, TESTS, functions, modules, shown

FUNCTION_LINES_WATCHED = 50
FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 500
PARAMETERS_MAX = 6

# "path::function": why it may have more parameters.
MANY_PARAMETERS: dict[str, str] = {}


def _lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    return sum(parameter.arg not in {"self", "cls"} for parameter in named)


def test_no_function_is_longer_than_a_screen(record_testsuite_property):
    measured = {
        f"{shown(path)}::{function.name}": _lines(function)
        for path in modules(PACKAGE, TESTS)
        for function in functions(path)
    }
    watched = sorted(name for name, lines in measured.items() if lines > FUNCTION_LINES_WATCHED)
    record_testsuite_property("functions_over_50_lines", len(watched))
    too_long = {name: lines for name, lines in measured.items() if lines > FUNCTION_LINES_MAX}
    assert not too_long, f"{len(watched)} functions are over 50 lines: {', '.join(watched)}"


def test_no_file_is_longer_than_500_lines():
    lengths = {
        shown(path): len(path.read_text().splitlines())
        for path in modules(PACKAGE, TESTS, ROOT / "docs")
    }
    assert {name: lines for name, lines in lengths.items() if lines > FILE_LINES_MAX} == {}


def test_a_function_with_more_than_six_parameters_has_a_reason():
    found = {
        f"{shown(path)}::{function.name}"
        for path in modules(PACKAGE)
        for function in functions(path)
        if _parameters(function) > PARAMETERS_MAX
    }
    assert found == MANY_PARAMETERS.keys(), "too many, or an exception that is not needed any more"


@pytest.mark.parametrize(
    ("source", "parameters"),
    [
        ("def f(self, a, b, /, c, *, d): ...", 4),
        ("async def f(cls, *rest, d=1, **more): ...", 1),
    ],
)
def test_parameters_are_counted_wherever_they_stand(source, parameters):
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    assert _parameters(function) == parameters
