"""How a program is found, Penstock's or the user's, and gets its parameters.

A program is named `bfs`, `path/to/file.py:ClassName` or `package.module:ClassName`; its parameters are those of its
constructor.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import TYPE_CHECKING, Any

from penstock.storage.base.errors import InputError, brief, printable
from penstock.tools.base import tracebacks

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem
    from penstock.engine.program.program import Program

OPTIONS = (
    *("source", "target", "cutoff", "damping", "alpha", "tol", "max_iter", "k", "weight", "parents", "delta"),
    *("personalization", "initial", "fixed", "inputs", "time_step", "resolution", "seed"),
)
"""Parameters that have an option of `penstock run`."""
COMMANDS = {
    "similarity": ("jaccard", "jaccard_coefficient", "overlap", "sorensen", "cosine", "similarity_jaccard"),
    "extract": ("ego_graph", "neighborhood", "induced_subgraph", "subgraph", "k_hop_subgraph"),
    "walk": ("random_walk", "random_walks", "uniform_random_walks", "biased_random_walks", "node2vec"),
}
"""What networkx, igraph and cuGraph call what a command of its own does here."""


def find_program(name: str) -> type[Program]:
    """The class that a name stands for.

    Raises:
        InputError: there is none, or the user's file cannot be loaded.
    """
    from penstock.engine.program.program import Program
    from penstock.engine.programs.table import named

    place, colon, class_name = name.rpartition(":")
    if not colon:
        place, class_name = name, ""
    if not place.endswith(".py") and not colon:
        for command, words in COMMANDS.items():
            if name.lower().replace("-", "_") in words:
                raise InputError(f"{name} is no program here: 'penstock {command}' does it; see its --help")
        return named(name)
    module = _load(place)
    classes = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Program) and value is not Program
    }
    own = [key for key, value in classes.items() if value.__module__ == module.__name__]
    wanted = class_name or (own[0] if len(own) == 1 else "")
    if wanted not in classes:
        raise InputError(
            f"{place} has {', '.join(own) or 'no class'} derived from penstock.engine.Program; "
            f"{wanted or 'a class'} is asked for: write {place}:ClassName"
        )
    return classes[wanted]


def completed(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """What a shell may complete the name of a program to: programs, or files where there is none."""
    from click.shell_completion import CompletionItem
    from penstock.engine.programs.table import PROGRAMS

    return [CompletionItem(name) for name in PROGRAMS if name.startswith(incomplete)] or [
        CompletionItem(incomplete, type="file")
    ]


def _load(place: str) -> ModuleType:
    """Import a file or a module; whatever goes wrong in it is the user's to know, with its line."""
    try:
        if not place.endswith(".py"):
            module = importlib.import_module(place)
            tracebacks.note(module)
            return module
        path = Path(place)
        if not path.is_file():
            raise InputError(f"program file {path} does not exist")
        spec = importlib.util.spec_from_file_location(f"penstock_user_{printable(path.stem)}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[module.__name__] = module
        tracebacks.note(module)
        spec.loader.exec_module(module)
        return module
    except InputError:
        raise
    except SyntaxError as error:
        raise InputError(f"{error.filename}:{error.lineno}: {error.msg}") from error
    except Exception as error:
        lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename.endswith(place)]
        where = f" (line {lines[-1]})" if lines else ""
        raise InputError(f"{place} could not be loaded: {type(error).__name__}: {error}{where}") from error


def make_program(name: str, kind: type[Program], parameters: Mapping[str, Any]) -> Program:
    """An instance of a program with these parameters, `max_iter` as `engine.api.make` takes it.

    Raises:
        InputError: one that it does not take, or one that it needs and did not get; slips in it (`program_lint`).
    """
    from penstock.engine.api import limited_from_outside, make
    from penstock.engine.program.program_lint import lint_program

    takes = inspect.signature(kind).parameters
    anything = any(p.kind is p.VAR_KEYWORD for p in takes.values())
    for given in parameters:
        known_to_all = given == "max_iter" and limited_from_outside(kind)
        if given not in takes and not anything and not known_to_all:
            known = ", ".join(option_of(parameter) for parameter in takes) or "no parameter"
            raise InputError(f"{name} does not take {option_of(given)}; it takes {known}")
    for needed, parameter in takes.items():
        named = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if named and parameter.default is parameter.empty and needed not in parameters:
            raise InputError(f"{name} needs {option_of(needed)}")
    made = make(kind, parameters)
    lint_program(made)
    return made


def option_of(parameter: str) -> str:
    """How a parameter is given on the command line."""
    if parameter == "earlier":
        return "--from"
    if parameter in OPTIONS:
        return f"--{parameter.replace('_', '-')}"
    return f"--set {parameter}=..."


def parse_setting(text: str) -> tuple[str, Any]:
    """Read ``name=value``; the value is a Python literal, else text.

    Raises:
        InputError: not of that form.
    """
    name, equals, value = text.partition("=")
    if not equals or not name.strip().isidentifier():
        raise InputError(f"--set {brief(text)!r} is not name=value, for instance --set depth=3")
    try:
        return name.strip(), ast.literal_eval(value.strip())
    except (ValueError, SyntaxError, RecursionError, MemoryError):  # the last two: of brackets in brackets
        return name.strip(), value


def read_vertex(text: str) -> int | str:
    """A vertex id: a number if it is written as one, else a string."""
    from penstock.storage.access.vertex_lookup import is_number  # NumPy, which a command without ids may not need

    return int(text) if is_number(text) and str(int(text)) == text else text


def is_negative(text: str) -> bool:
    """Whether a text is a negative number, which no vertex has as id."""
    return text.startswith("-") and text[1:].isdigit()
