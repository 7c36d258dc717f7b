"""The front door of the engine: `run(program, graph, **options)`; and how a program is made of its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import fields
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from types import CodeType
from typing import Any

from penstock.engine.checkpoint.checkpoint import Checkpoints
from penstock.engine.program.parameters import Count, check_value
from penstock.engine.program.program import Program, has_phases
from penstock.engine.program.program_lint import lint_program
from penstock.engine.programs.table import named
from penstock.engine.resources.config import Config
from penstock.engine.session import Session
from penstock.engine.state.result import Result
from penstock.storage.base.errors import InputError, for_python
from penstock.storage.format.graph import Graph

_OPTIONS = tuple(entry.name for entry in fields(Config))


@for_python
def run(
    program: Program | type[Program] | str,
    graph: Graph | Path | str,
    *,
    checkpoint: Path | str | None = None,
    checkpoint_every: str | int | None = None,
    resume: bool = False,
    **options: Any,
) -> Result:
    """Run a program on a graph and return its Result.

    program: an instance, a class, or a name such as "bfs"; for the last two the program's own parameters are given
    among the options, and `max_iter`. graph: a Graph, or the path of a graph file. options: see `engine.config.Config`.
    checkpoint: a folder for checkpoints, which are removed when the run has ended. checkpoint_every: so many iterations
    (10), or a time ("30s", "5min"); by default 5 minutes. resume: go on from the newest one, if there is one.
    Raises InputError for bad options, parameters, graphs or checkpoints; RunError when a run fails.
    """
    if isinstance(program, str):
        program = named(program)
    if isinstance(program, type):
        parameters = {name: options.pop(name) for name in list(options) if name not in _OPTIONS}
        program = make(program, parameters)
    lint_program(program)
    if checkpoint is None and (resume or checkpoint_every is not None):
        raise InputError("resume and checkpoint_every need checkpoint, the folder of the checkpoints")
    checkpoints = None if checkpoint is None else Checkpoints(checkpoint, checkpoint_every, resume=resume)
    opened = _opened(graph)
    with checkpoints or nullcontext(), Session(opened, **options) as session:
        result = session.run(program, checkpoints)
        if checkpoints is not None:
            checkpoints.clear()
    return result


def _opened(graph: Any) -> Graph:
    """The graph that is meant. Raises InputError, with the function that takes it, for what is no graph of ours."""
    if isinstance(graph, Graph):
        return graph
    if isinstance(graph, str | PathLike):
        return Graph.open(Path(graph))
    kind = f"{type(graph).__module__}.{type(graph).__qualname__}"
    ways = {
        "networkx": 'nx.pagerank(G, backend="penstock") and other functions of networkx take it as it is; else '
        "from_edges(G.edges) makes a graph of its edges",
        "scipy": "from_scipy(matrix) makes a graph of it",
        "igraph": "from_edges(g.get_edgelist()) makes a graph of it",
    }
    tables = dict.fromkeys(("pandas", "polars", "pyarrow", "duckdb"), "from_table(table) makes a graph of it")
    way = (ways | tables).get(kind.partition(".")[0], "from_edges, from_table and from_scipy make graphs in memory")
    raise InputError(f"graph is a {kind}, not a Graph or the path of a graph file; {way} (penstock.engine)")


def make(program: type[Program], parameters: Mapping[str, Any]) -> Program:
    """An instance of a program from its parameters; `max_iter` may be among them (`limited_from_outside`).

    Raises InputError naming what is missing or unknown, and the nearest name there is.
    """
    signature, given = inspect.signature(program), dict(parameters)
    most = given.pop("max_iter", None) if limited_from_outside(program) else None
    try:
        signature.bind(**given)
    except TypeError as error:
        known = ", ".join(signature.parameters) or "none"
        meant = _nearest(set(given) - set(signature.parameters), [*signature.parameters, *_OPTIONS])
        raise InputError(f"{program.__name__}: {error}{meant}; its parameters are: {known}") from None
    made = program(**given)
    if most is not None:
        check_value(f"{program.__name__}: max_iter", most, Count)
        made.max_iter = most
    return made


def limited_from_outside(program: type[Program]) -> bool:
    """Whether `max_iter` is set on the program rather than given to it.

    One of phases has no iterations of its own: it is limited only where its author wrote what names `max_iter`. Linking
    trees and meeting triangles have none that could be left out.
    """
    if "max_iter" in inspect.signature(program).parameters:
        return False
    if program.combine == "union" or program.corner is not None:
        return False
    return not has_phases(program) or _author_names(program, "max_iter")


def _author_names(program: type[Program], word: str) -> bool:
    """Whether a function of the author's names this attribute."""
    own = [value for kind in program.__mro__ if kind not in (Program, object) for value in vars(kind).values()]
    own = [value.fget if isinstance(value, property) else inspect.unwrap(value) for value in own]
    return any(_names(value.__code__, word) for value in own if inspect.isfunction(value))


def _names(code: CodeType, word: str) -> bool:
    """Whether a function's code, or that of one inside it, names this attribute."""
    return word in code.co_names or any(_names(inner, word) for inner in code.co_consts if inspect.iscode(inner))


def _nearest(strangers: Iterable[str], known: list[str]) -> str:
    near = [match for name in sorted(strangers) for match in get_close_matches(name, known, 1)]
    return f" (did you mean {', '.join(near)}?)" if near else ""
