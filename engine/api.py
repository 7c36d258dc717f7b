"""The entry point of the engine: `run(program, graph, **options)`; and how a program is made from its parameters."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, nullcontext
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.engine.program.parameters import Count, check_value
from penstock.engine.program.program import Program, has_phases
from penstock.engine.program.program_lint import lint_program
from penstock.engine.programs.table import named
from penstock.engine.resources.config import Config, in_tuning, options_of
from penstock.engine.session import Session
from penstock.engine.state.records import RunProgress
from penstock.engine.state.result import Result
from penstock.storage.base.errors import InputError, for_python
from penstock.storage.base.function_digest import codes
from penstock.storage.format.graph import Graph

if TYPE_CHECKING:
    from penstock.engine.checkpoint.checkpoint import Checkpoints

_OPTIONS = tuple(options_of(Config))


@for_python
def run(
    program: Program | type[Program] | str,
    graph: Graph | Path | str,
    *,
    checkpoint: Path | str | None = None,
    checkpoint_every: str | int | None = None,
    resume: bool = False,
    where: str | None = None,
    weight_column: str | None = None,
    progress: Callable[[RunProgress], None] | None = None,
    **options: Any,
) -> Result:
    """Run a program on a graph.

    Parameters
    ----------
    program : Program, type of Program, or str
        An instance, a class, or the name of a program such as "bfs". For a class or a name the program's own
        parameters, and `max_iter`, are given among the options.
    graph : Graph, Path or str
        An open graph, or the path of a graph file.
    checkpoint : Path or str, optional
        A folder for checkpoints, which are removed at the end of the run, but for the last state of a program that
        `resume` continues with a higher `max_iter` or a lower `tol`.
    checkpoint_every : str or int, optional
        A number of iterations (10) or a time ("30s", "5min", "2h"); by default 5 minutes.
    resume : bool
        Continue from the newest checkpoint, if there is one.
    where : str, optional
        Run on the edges of which this holds: "amount >= 100 and kind = 'wire' and day < 2026-01-01", of columns that
        `convert(edge_properties=...)` kept.
    weight_column : str, optional
        The column that is the weight; `weight="amount"` is the same where edges have columns, and else any name is the
        graph's weights.
    progress : callable, optional
        Called with a `RunProgress` after each iteration; what it raises ends the run. `penstock.run` shows a bar for
        True.
    **options
        The fields of `penstock.engine.resources.config.Config`: `host_memory` (bytes, or a text such as "1GiB"),
        `device`, `threads`, `direction`, `mode`, `route` and others; and the parameters of the program.

    Returns
    -------
    Result
        One array of shape (vertices, ...) per field, and the records of the iterations.

    Raises
    ------
    InputError
        An option, a parameter, the graph or a checkpoint cannot be used, or the program cannot run.
    BudgetError
        The memory budget is too small; the message has the smallest that works.
    RunError
        The run failed: a read error, a checksum, a full disk.

    Examples
    --------
    >>> from penstock.engine import from_edges, run
    >>> graph = from_edges([(0, 1), (1, 2)])
    >>> run("bfs", graph, source=0).top(1)
    [(0, 0)]
    """
    if isinstance(program, str):
        program = named(program)
    asked = options.get("weight") if isinstance(program, type) else options.pop("weight", None)
    if isinstance(program, type):
        parameters = {name: options.pop(name) for name in list(options) if name not in _OPTIONS}
        program = make(program, parameters)
    if not isinstance(program, Program):
        raise InputError(f"{type(program).__name__} is not a program; give run a program first, then the graph")
    lint_program(program)
    if progress is not None and not callable(progress):
        raise InputError(f"progress is {progress!r}; give a function, or call penstock.run, which shows a bar")
    if checkpoint is None and (resume or checkpoint_every is not None):
        raise InputError("resume and checkpoint_every need checkpoint, the folder of the checkpoints")
    checkpoints = None
    if checkpoint is not None:
        from penstock.engine.checkpoint.checkpoint import Checkpoints

        checkpoints = Checkpoints(checkpoint, checkpoint_every, resume=resume)
    opened = _opened(graph)
    if weight_column is None and isinstance(asked, str) and opened.edge_properties:
        weight_column = asked
    if weight_column is not None:
        opened = opened.with_weight(weight_column)
    if where is not None:
        from penstock.engine.queries.edges_where import edges_where

        config = Config.of(**options)
        opened = edges_where(opened, where, config)
    with checkpoints or nullcontext(), Session(opened, **options) as session:
        result = (
            session.run(program, checkpoints) if progress is None else _told(session, program, checkpoints, progress)
        )
        if checkpoints is not None:
            checkpoints.finish()
    return result


def _told(
    session: Session, program: Program, checkpoints: Checkpoints | None, progress: Callable[[RunProgress], None]
) -> Result:
    """Run a program, and call `progress` after each iteration."""
    formed = program.form(session.graph, session.config.mode)
    limited = not has_phases(formed) and formed.max_iter < Program.max_iter
    began, most = time.monotonic(), formed.max_iter if limited else None
    told = RunProgress(type(program).__name__, 0, most, 0, 0, 0.0, 0)
    steps = session.steps(program, checkpoints)
    with closing(steps):
        while True:
            try:
                record = next(steps)
            except StopIteration as end:
                result: Result = end.value
                return result
            told = told.after(record, time.monotonic() - began)
            progress(told)


def _opened(graph: Any) -> Graph:
    """Return the graph. Raises InputError for other objects, with the function that makes a graph of them."""
    if isinstance(graph, Graph):
        return graph
    if isinstance(graph, str | PathLike):
        return Graph.open(Path(graph))
    kind = f"{type(graph).__module__}.{type(graph).__qualname__}"
    ways = {
        "networkx": 'nx.pagerank(G, backend="penstock") and other functions of networkx take it as it is; else '
        "from_networkx(G) makes a graph of it",
        "scipy": "from_scipy(matrix) makes a graph of it",
        "igraph": "from_igraph(g) makes a graph of it",
        "torch": "from_torch(edge_index) makes a graph of it",
        "torch_geometric": "from_torch(data) makes a graph of it",
    }
    tables = dict.fromkeys(
        ("pandas", "polars", "pyarrow", "duckdb", "_duckdb", "cudf"), "from_table(table) makes a graph of it"
    )
    way = (ways | tables).get(kind.partition(".")[0], "from_edges, from_table and from_scipy make graphs in memory")
    raise InputError(f"graph is a {kind}, not a Graph or the path of a graph file; {way} (penstock.engine)")


def make(program: type[Program], parameters: Mapping[str, Any]) -> Program:
    """Make an instance of a program from its parameters.

    Parameters
    ----------
    program : type of Program
        The class.
    parameters : mapping of str to object
        Arguments of its constructor; `max_iter` may be among them (`limited_from_outside`).

    Returns
    -------
    Program
        The instance.

    Raises
    ------
    InputError
        A parameter is missing, unknown or out of range; the message has the nearest known name.
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
    """Return whether `max_iter` is set on the program instead of being given to it.

    A program of phases has no iterations of its own: it is limited only if its author's code reads `max_iter`.
    Union-find and triangle counting have no iterations that could be omitted.
    """
    if "max_iter" in inspect.signature(program).parameters:
        return False
    if program.combine == "union" or program.corner is not None:
        return False
    return not has_phases(program) or _author_names(program, "max_iter")


def _author_names(program: type[Program], word: str) -> bool:
    """Return whether a function of the author's reads this attribute."""
    own = [value for kind in program.__mro__ if kind not in (Program, object) for value in vars(kind).values()]
    own = [value.fget if isinstance(value, property) else inspect.unwrap(value) for value in own]
    read = (code.co_names for value in own if inspect.isfunction(value) for code in codes(value.__code__))
    return any(word in names for names in read)


def _nearest(strangers: Iterable[str], known: list[str]) -> str:
    strangers = sorted(strangers)
    if moved := in_tuning(strangers):
        return f" ({moved})"
    near = [match for name in strangers for match in get_close_matches(name, known, 1)]
    return f" (did you mean {', '.join(near)}?)" if near else ""
