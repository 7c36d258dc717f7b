"""Makes tools/python/typed_run.pyi, the types of `penstock.run` for each program, from the programs themselves."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections import Counter
from pathlib import Path
from textwrap import fill
from typing import Any, Literal, Union, get_args, get_origin

from penstock.engine.api import limited_from_outside
from penstock.engine.programs.table import PROGRAMS
from penstock.engine.resources.config import Config, Tuning, options_of

IDS = ("source", "target")
"""Parameters that are a vertex or several."""
OTHERS = {"rates": "Rates | None", "tuning": "Tuning | TuningOptions"}
"""Options whose types are classes."""
HEAD = '''"""Types of `penstock.run`: options and parameters of each program; written by tests/support/typed_run.py."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Required, TypedDict, Unpack, overload

from numpy.typing import NDArray
from penstock.engine.program.program import Program
from penstock.engine.resources.config import Tuning
from penstock.engine.state.records import RunProgress
from penstock.engine.state.result import Result
from penstock.storage.format.graph import Graph
from penstock.transfer.values.rates import Rates

Vertices = int | str | Sequence[int] | Sequence[str] | NDArray[Any]
"""Ids of the input."""
Given = Mapping[Any, float] | NDArray[Any]
"""Numbers of vertices."""
'''
TAIL = """@overload
def run(program: Program, graph: Graph | Path | str, **options: Unpack[RunOptions]) -> Result: ...
@overload
def run(program: type[Program], graph: Graph | Path | str, **options: Any) -> Result: ...
"""


def written(kind: Any) -> str:
    """A type as it is written there."""
    if kind is None or kind is type(None):
        return "None"
    if kind is Any or kind in (int, float, bool, str):
        return str(getattr(kind, "__name__", kind))
    if get_origin(kind) is Literal:
        return f"Literal[{', '.join(repr(one).replace(chr(39), chr(34)) for one in get_args(kind))}]"
    if get_origin(kind) in (Union, types.UnionType):
        parts = [part for part in get_args(kind) if get_origin(part) not in (collections.abc.Mapping,)]
        given = len(parts) < len(get_args(kind))
        named = [written(part) for part in parts if not (given and "ndarray" in str(part))]
        return " | ".join((["Given"] if given else []) + named)
    if get_origin(kind) is tuple:
        return f"Sequence[{written(get_args(kind)[0])}]"
    return str(kind.__name__)


def fields_of(kinds: dict[str, Any], required: set[str]) -> list[str]:
    """The lines of a TypedDict."""
    lines = []
    for name, kind in kinds.items():
        text = "Vertices" if name in IDS else written(kind)
        if name in IDS and name not in required:
            text += " | None"
        lines.append(f"    {name}: {f'Required[{text}]' if name in required else text}")
    return lines


def declared_of(declaring: type[Config | Tuning]) -> list[str]:
    """The lines of a TypedDict of what is declared as options of runs, each with what it does."""
    lines = []
    for name, (kind, declared) in options_of(declaring).items():
        text = OTHERS.get(name, written(kind))
        if declared.size:
            text = text.replace("int", "int | str", 1)
        lines += [
            f"    {name}: {text}",
            fill(f'"""{declared.help}"""', 116, initial_indent=" " * 4, subsequent_indent=" " * 4),
        ]
    return lines


def parameters_of(name: str) -> tuple[dict[str, Any], set[str]]:
    """Parameters of a program and their types; which of them must be given."""
    program = PROGRAMS[name]
    parameters = inspect.signature(program).parameters
    hints = typing.get_type_hints(program.__init__) if parameters else {}
    kinds = {one: hints.get(one, Any) for one in parameters}
    if limited_from_outside(program):
        kinds["max_iter"] = int
    return kinds, {one for one, each in parameters.items() if each.default is each.empty}


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def text() -> str:
    """The whole file."""
    shared = {"checkpoint": Path | str | None, "checkpoint_every": str | int | None, "resume": bool}
    shared |= {"where": str | None, "weight_column": str | None}
    own = ["    progress: bool | Callable[[RunProgress], None]", *fields_of(shared, set())]
    blocks = [
        HEAD,
        "\n".join(["class TuningOptions(TypedDict, total=False):", *declared_of(Tuning)]) + "\n",
        "\n".join(["class RunOptions(TypedDict, total=False):", *own, *declared_of(Config)]) + "\n",
    ]
    alike: dict[tuple[str, ...], list[str]] = {}  # programs by what their options are
    for name in PROGRAMS:
        alike.setdefault(tuple(fields_of(*parameters_of(name))), []).append(name)
    uses = Counter(field for fields in alike for field in fields)
    bases = {field: f"_{_camel(field.strip().partition(':')[0])}" for field, number in uses.items() if number > 3}
    blocks += [f"class {base}(TypedDict, total=False):\n{field}\n" for field, base in bases.items()]
    overloads = []
    for fields, names in alike.items():
        options = "RunOptions"
        if fields:
            options = f"{_camel(names[0])}Options"
            own_fields = "\n".join(field for field in fields if field not in bases)
            of = ", ".join(["RunOptions", *(bases[field] for field in fields if field in bases)])
            blocks.append(f"class {options}({of}, total=False):{f'{chr(10)}{own_fields}' if own_fields else ' ...'}\n")
        named = ", ".join(f'"{name}"' for name in names)
        overloads.append(
            f"@overload\ndef run(\n    program: Literal[{named}], graph: Graph | Path | str, "
            f"**options: Unpack[{options}]\n) -> Result: ..."
        )
    return "\n".join(blocks) + "\n" + "\n".join(overloads) + "\n" + TAIL
