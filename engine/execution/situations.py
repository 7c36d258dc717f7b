"""What the direction rule looks at in a run: where edges are, what is read over a link or from disk, how far it is.

Of several ranks each says what it sees, and all of them look at the same. Those whose edges come over a link predict
the seconds of their own part; the slowest one's count, since all wait for it. Ranks on cores, and those whose edges are
on their device already, have no say in that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from penstock.engine.resources.direction import Situation, can_choose, weighs
from penstock.engine.resources.direction_cost import least_pull_seconds, pull_seconds, push_seconds
from penstock.engine.state.state import Frontier

if TYPE_CHECKING:
    from penstock.engine.execution.run_parts import RunParts
    from penstock.engine.ranks.communicator import Communicator
    from penstock.engine.resources.edge_stream import EdgeStream

SELECTIVE = ("min", "max", "or")
"""Combiners whose pushes write only what changes a vertex."""
WORTH = 2
"""Numbers of a rank's own view of a direction: seconds of a push and of a pull."""


def situation_of(run: RunParts, frontier: Frontier, first: Callable[[EdgeStream], EdgeStream]) -> Situation:
    """What this rank sees of a frontier; first: the stream that a walk along one begins with."""
    streams, rows = run.streams, run.state.unmatched
    walked = next(iter(streams.values()))
    seen = partial(
        Situation,
        run.graph.vertices,
        run.graph.edges,
        run.unexplored,
        run.program.early_exit,
        "pull" in streams,
        run.forced,
        from_disk=any(stream.from_disk for stream in streams.values()),
        kept=rows.used if rows is not None and rows.complete else None,
        selective=run.program.combine in SELECTIVE,
        leaves_rows=run.author.has_suffices,
    )
    unvisited = max(0, run.unvisited), max(0, run.unvisited - (run.graph.without_edges or 0))
    return walked.situated(seen, frontier, streams, first, keeps=rows is not None, unvisited=unvisited)


def seen_by_all(found: Situation, seconds: tuple[float, float], ranks: Communicator) -> Situation:
    """What all ranks see, from what each of them does; seconds: of a push and a pull here, NaN where not weighed."""
    kept = math.nan if found.kept is None else found.kept
    ours = np.array([kept, found.from_disk, found.linked, found.on_cores, *found.fetched, *seconds], dtype=np.float64)
    numbers = ranks.gather_numbers(ours)
    all_kept, from_disk, linked, on_cores, *fetched = numbers[:, :-WORTH].T
    weighed = numbers[~np.isnan(numbers[:, -1]), -WORTH:]
    return replace(
        found,
        kept=None if np.isnan(all_kept).any() else int(all_kept.sum()),
        from_disk=bool(from_disk.any()),
        linked=bool(linked.any()),
        on_cores=bool(on_cores.all()),
        fetched=(float(fetched[0].sum()), float(fetched[1].sum())),
        seconds=(float(weighed[:, 0].max()), float(weighed[:, 1].max())) if len(weighed) else None,
    )


def certainly_pushed(found: Situation, before: Situation, frontier: Frontier) -> Situation | None:
    """What all ranks see of a frontier that is pushed whatever each of them sees, so that none needs to ask; else None.

    before: what all have seen in an earlier iteration of this run. What was not on disk then is not on disk now.
    """
    if not before.linked or before.from_disk:
        return None
    small = replace(found, linked=True, from_disk=False, on_cores=False, kept=None)
    return small if can_choose(small) and not weighs(small, frontier) else None


def own_seconds(
    situation: Situation, streams: tuple[EdgeStream, EdgeStream], frontier: Frontier
) -> tuple[float, float]:
    """What a push and a pull would take this rank, NaN where its link was not weighed; streams: of the two.

    A pull that cannot be shorter than the push counts with the least that it may take.
    """
    link = situation.link
    if link is None:
        return math.nan, math.nan
    push = push_seconds(link, *streams[0].progress(situation, frontier))
    known, part = streams[1].progress(situation, frontier)
    least = least_pull_seconds(link, known)
    return push, pull_seconds(link, known, part) if least < push else least
