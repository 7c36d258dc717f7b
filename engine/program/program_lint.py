"""Finds mistakes in a program that would run and answer wrongly, or that Numba reports without a line.

A value under a name that is nearly a word of `Program` (`combiner = "max"`), a name that nothing defines or that a
module does not have (`np.sqroot`), a function that forgets its `return`. Looks at classes and at the bytecode of their
functions, before anything there depends on a branch; runs and compiles nothing.
"""

from __future__ import annotations

import builtins
import dis
import inspect
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from itertools import pairwise
from types import CodeType, ModuleType
from typing import Any

from penstock.engine.program.program import Field, Global, Program, arguments, functions_of
from penstock.storage.base.errors import InputError

WORDS = [
    name
    for name, value in vars(Program).items()
    if not name.startswith("_") and not callable(value) and (value is not None or name == "message")
]
"""What of `Program` is a value, and no function."""
RENAMED = {"wants": "cond"}
"""Functions of programs that had another name before 0.1.0."""
METHODS = ("start", "form", "finish")
"""Plain methods whose values are used."""


def lint_program(program: Program) -> None:
    """Raise InputError for the first slip that is found, with its name, its line and what may have been meant."""
    _check_words(type(program))
    for role, function in functions_of(program):
        if not inspect.isfunction(function):
            continue  # compiled already, and not ours to read
        for module, name, line in _missing(function):
            meant = get_close_matches(name, dir(module), 1)
            hint = f"; did you mean {meant[0]}?" if meant else ""
            raise InputError(
                f"{_place(program, function, line)} uses {name!r}, which {module.__name__} does not have{hint}"
            )
        for name, line in _undefined(function):
            taken = ", ".join((*arguments(function), name))
            raise InputError(
                f"{_place(program, function, line)} uses {name!r}, which nothing defines; a field or a number of the "
                f"program is an argument: def {function.__name__}({taken})"
            )
        if not (role == "edge" and program.message_shape):
            _check_returns(program, function)
    for method in (getattr(type(program), name) for name in METHODS):
        if inspect.isfunction(method):
            _check_returns(program, method)


def _check_returns(program: Program, function: Callable[..., Any]) -> None:
    if not _returns(function):
        place = _place(program, function, function.__code__.co_firstlineno)
        raise InputError(f"{place} returns nothing; end it with return and a value")


def _place(program: Program, function: Callable[..., Any], line: int) -> str:
    return f"{type(program).__name__}.{function.__name__} ({function.__code__.co_filename}:{line})"


def _check_words(program: type[Program]) -> None:
    own = [pair for base in program.__mro__ if base not in (object, Program) for pair in vars(base).items()]
    read = {name for _, value in own for code in _codes(value) for name in _names(code)}
    for name, value in own:
        if name in RENAMED:
            raise InputError(f"{program.__name__}.{name} is called {RENAMED[name]} now; rename it")
        if hasattr(Program, name) or name in read or callable(value) or isinstance(value, Field | Global | property):
            continue
        if meant := get_close_matches(name, WORDS, 1, 0.8):
            raise InputError(
                f"{program.__name__}.{name} is read by nothing (did you mean {meant[0]}?); correct it, or rename it"
            )


def _codes(value: Any) -> list[CodeType]:
    """The code of whatever a class holds that has some."""
    value = getattr(value, "fget", None) or getattr(value, "function", None) or getattr(value, "__func__", value)
    code = getattr(getattr(value, "__wrapped__", value), "__code__", None)
    return [] if code is None else [code]


def _names(code: CodeType) -> set[str]:
    """Every name and text in a function and in those inside it."""
    found = {*code.co_names, *code.co_varnames, *code.co_freevars}
    for constant in code.co_consts:
        if isinstance(constant, str):
            found.add(constant)
        elif isinstance(constant, CodeType):
            found |= _names(constant)
    return found


def _certain(function: Callable[..., Any]) -> Iterator[dis.Instruction]:
    """The steps that are taken in any case: those before the first that depends on something."""
    for step in dis.get_instructions(function):
        if step.opname.startswith(("POP_JUMP", "JUMP_IF", "FOR_ITER")):
            return
        yield step


def _undefined(function: Callable[..., Any]) -> list[tuple[str, int]]:
    """Global names that a function uses and that its module does not have, with their lines."""
    known = function.__globals__
    return [
        (found.argval, _line(function, found))
        for found in _certain(function)
        if found.opname == "LOAD_GLOBAL" and found.argval not in known and not hasattr(builtins, found.argval)
    ]


def _missing(function: Callable[..., Any]) -> list[tuple[ModuleType, str, int]]:
    """What a function takes of a module that does not have it (`np.sqroot`), with its line."""
    found: list[tuple[ModuleType, str, int]] = []
    holder: Any = None
    for step in _certain(function):
        if step.opname == "LOAD_GLOBAL":
            holder = function.__globals__.get(step.argval)
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and isinstance(holder, ModuleType):
            if not hasattr(holder, step.argval):
                found.append((holder, step.argval, _line(function, step)))
            holder = getattr(holder, step.argval, None)
        else:
            holder = None
    return found


def _line(function: Callable[..., Any], step: dis.Instruction) -> int:
    return (step.positions and step.positions.lineno) or function.__code__.co_firstlineno


def _returns(function: Callable[..., Any]) -> bool:
    """Whether a function has a `return` with a value (None is the value of having none), or none at all: it raises."""
    steps = list(dis.get_instructions(function))
    given = [step for step in steps if step.opname == "RETURN_CONST"]  # Python 3.12 and later
    given += [last for last, step in pairwise(steps) if step.opname == "RETURN_VALUE"]
    return not given or any(
        step.opname not in ("LOAD_CONST", "RETURN_CONST") or step.argval is not None for step in given
    )
