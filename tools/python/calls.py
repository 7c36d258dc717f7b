"""`penstock.run` and `penstock.convert`: those of the engine, and `progress=True`, which shows how far they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.storage.base.errors import InputError, for_python

if TYPE_CHECKING:
    from penstock.engine.program.program import Program
    from penstock.engine.state.records import RunProgress
    from penstock.engine.state.result import Result
    from penstock.storage.convert.sort.options import ConvertProgress
    from penstock.storage.format.graph import Graph
    from penstock.tools.base.progress import ProgressBars


@for_python
def run(
    program: Program | type[Program] | str,
    graph: Graph | Path | str,
    *,
    progress: bool | Callable[[RunProgress], None] = False,
    **options: Any,
) -> Result:
    """Run a program on a graph, as `penstock.engine.run` does.

    Parameters
    ----------
    program, graph, **options
        As for `penstock.engine.run`: the options of a run, and the parameters of the program.
    progress : bool or callable
        True: show a bar, in a notebook too. A function is called with a `RunProgress` after each iteration.

    Returns
    -------
    Result
        One array of shape (vertices, ...) per field, and the records of the iterations.

    Raises
    ------
    InputError, BudgetError, RunError
        As `penstock.engine.run`.

    Examples
    --------
    >>> import penstock
    >>> graph = penstock.from_edges([("ann", "bob"), ("bob", "cy")])
    >>> penstock.run("bfs", graph, source="ann").to_dict("level")
    {'ann': 0, 'bob': 1, 'cy': 2}
    """
    from penstock.engine.api import run as run_it

    with shown(progress, move_run_bar) as told:
        return run_it(program, graph, progress=told, **options)


@for_python
def convert(
    inputs: str | PathLike[str] | Sequence[str | PathLike[str]],
    output: str | PathLike[str],
    *,
    format: str | None = None,
    progress: bool | Callable[[ConvertProgress], None] = False,
    **options: Any,
) -> Graph:
    """Turn raw edge lists into a graph file, as `penstock.engine.convert` does.

    Parameters
    ----------
    inputs, output, format, **options
        As for `penstock.engine.convert`, whose options are those of `penstock convert`.
    progress : bool or callable
        True: show bars, in a notebook too. A function is called now and then with a `ConvertProgress`.

    Returns
    -------
    Graph
        The graph file, opened.

    Raises
    ------
    InputError, RunError
        As `penstock.engine.convert`.
    """
    from penstock.storage.convert.convert_files import convert as convert_it

    with shown(progress, lambda show, now: show.convert(now.stage, now.done, now.total)) as told:
        return convert_it(inputs, output, format=format, progress=told, **options)


@contextmanager
def shown(progress: Any, move: Callable[[ProgressBars, Any], None]) -> Iterator[Callable[[Any], None] | None]:
    """Yield what is called with the progress of a run or a conversion: the caller's function, a bar's, or None.

    move: moves the bar. Raises InputError for what is neither a function nor whether to show any.
    """
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise InputError(
            f"progress is {progress!r}; give True for a bar, or a function that is called with what is done"
        )
    if progress is not True:
        yield None if progress is False else progress
        return
    from penstock.tools.base.progress import ProgressBars, bars, compiling_shown

    with bars() as display:
        show = ProgressBars(display)
        with compiling_shown(show):
            yield partial(move, show)


def move_run_bar(show: ProgressBars, now: RunProgress) -> None:
    """Move the bar of a run."""
    show(now.program, now.iteration, now.max_iter, "iterations", f"{now.vertices:,} vertices active")
