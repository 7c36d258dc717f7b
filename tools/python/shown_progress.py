"""`progress=True` of calls from Python: a bar of rich on a terminal, and in a notebook that has ipywidgets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.engine.state.records import RunProgress
    from penstock.storage.convert.sort.options import ConvertProgress
    from penstock.tools.base.progress import ProgressBars

STAGES = {"read": "reading", "map": "mapping ids", "out": "writing out-edges", "in": "writing in-edges"}
"""What a stage of a conversion is called."""


@contextmanager
def shown(progress: bool | Callable[[Any], None] | None, kind: str) -> Iterator[Callable[[Any], None] | None]:
    """Yield what is called with the progress of a run or a conversion: the caller's function, a bar's, or None.

    kind: "run" or "convert".
    """
    if progress is None or isinstance(progress, bool):
        if not progress:
            yield None
            return
        from penstock.tools.base.progress import ProgressBars, bars, compiling_shown

        with bars() as display:
            show = ProgressBars(display)
            with compiling_shown(show):
                yield run_bar(show) if kind == "run" else convert_bar(show)
        return
    yield progress


def run_bar(show: ProgressBars) -> Callable[[RunProgress], None]:
    """Return what moves the bar of a run."""

    def move(now: RunProgress) -> None:
        show(now.program, now.iteration, now.max_iter, "iterations", f"{now.vertices:,} vertices active")

    return move


def convert_bar(show: ProgressBars) -> Callable[[ConvertProgress], None]:
    """Return what moves the bars of a conversion."""

    def move(now: ConvertProgress) -> None:
        show(STAGES.get(now.stage, now.stage), now.done, now.total, "bytes" if now.stage == "read" else "edges")

    return move
