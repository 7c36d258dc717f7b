"""What the direction rule looks at in a run: where edges are, what is read over a link or from disk, how far it is.

Of several ranks each says what it sees, and all of them look at the same. Those whose edges come over a link predict
the seconds of their own part; the slowest one's count, since all wait for it. Ranks on cores, and those whose edges are
on their device already, have no say in that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from penstock.engine.resources.direction import Situation, can_choose, weighs
from penstock.engine.resources.direction_cost import (
    DirectionSide,
    LinkCosts,
    Progress,
    least_pull_seconds,
    own_part,
    pull_seconds,
    push_seconds,
)
from penstock.engine.state.state import Frontier
from penstock.storage.format.row_pages import OFFSET_BYTES
from penstock.transfer.planning.plan import routes_of

if TYPE_CHECKING:
    from penstock.engine.execution.run_parts import RunParts
    from penstock.engine.ranks.communicator import Communicator
    from penstock.engine.resources.edge_stream import EdgeStream

SELECTIVE = ("min", "max", "or")
"""Combiners whose pushes write only what changes a vertex."""
WORTH = 2
"""Numbers of a rank's own view of a direction: seconds of a push and of a pull."""

WIDE = 15
"""A frontier of more than this part of the edges leaves few vertices behind that nothing was found for."""
REUSED = 0.25
"""Share of a pull's first reading that counts where what is read stays in memory: pulls of the next iterations read the
same rows, while a push of many vertices, and the pull that follows at the widest frontier, read both adjacencies."""


class Situations:
    """What this rank sees in a run; first: the stream that a walk along one begins with."""

    def __init__(self, run: RunParts, first: Callable[[EdgeStream], EdgeStream]) -> None:
        self._first = first
        self._on_cores = all(stream.pipeline.device.reads_host for stream in run.streams.values())
        # a pull on the cores looks at no empty row
        self._edgeless = (run.graph.without_edges or 0) if self._on_cores else 0

    def now(self, run: RunParts, frontier: Frontier) -> Situation:
        """What is seen of this frontier."""
        streams, rows = run.streams, run.state.unmatched
        absent = [stream for stream in streams.values() if not stream.resident]
        situation = Situation(
            run.graph.vertices,
            run.graph.edges,
            run.unexplored,
            run.program.early_exit,
            "pull" in streams,
            run.forced,
            bool(absent) and not self._on_cores,
            max(0, run.unvisited - self._edgeless),
            self._on_cores,
            from_disk=any(stream.from_disk for stream in absent),
            kept=rows.used if rows is not None and rows.complete else None,
            selective=run.program.combine in SELECTIVE,
            leaves_rows=run.author.has_suffices,
        )
        if not absent:
            return situation
        if weighs(situation, frontier):
            push = self._first(streams["push"])
            windows = 1 if push is streams["push"] else len(streams["push"].directory.adjacency.windows)
            return replace(situation, link=link_costs_of(push, streams["pull"], frontier, windows))
        if situation.on_cores and situation.from_disk and can_choose(situation):
            found = fetched_of(streams["push"], streams["pull"], frontier, situation.unvisited, rows is not None)
            return replace(situation, fetched=found)
        return situation


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
    push = push_seconds(link, *progress_of(situation, streams[0], frontier))
    known, part = progress_of(situation, streams[1], frontier)
    least = least_pull_seconds(link, known)
    return push, pull_seconds(link, known, part) if least < push else least


def progress_of(situation: Situation, stream: EdgeStream, frontier: Frontier) -> tuple[Progress, Frontier]:
    """How far a search has come in the rows that a stream has, and the frontier's part of them."""
    known = Progress(situation.vertices, situation.edges, situation.unvisited, situation.unexplored_edges)
    if stream.owned is None or stream.index.edges == situation.edges:
        return known, frontier
    rows = (stream.owned.v1 - stream.owned.v0) / max(1, situation.vertices)
    return own_part(known, frontier, rows, stream.index.edges / max(1, situation.edges))


def link_costs_of(push: EdgeStream, pull: EdgeStream, frontier: Frontier, windows: int = 1) -> LinkCosts:
    """What a push of this frontier, and a pull, would find; windows: how many are pushed along, of which `push` is one.

    Where a device has values in pages, rows of an index come over the link, too: for each window.
    """
    assert pull.degrees is not None, "on a device behind a link every stream has them"
    options, rates, pushed, pulled = push.pipeline.options, push.feedback.given, side_of(push), side_of(pull)
    pages, count = push.index.pages, push.index.vertices
    rows = 0.0 if pages is None else OFFSET_BYTES * count / rates.copy_bytes
    active = 1.0 if pages is None else -math.expm1(-frontier.vertices * pages.rows / count)  # share of pages
    return LinkCosts(
        rates,
        pull.edge_bytes,
        pull.degrees,
        replace(pushed, fetch_seconds=windows * pushed.fetch_seconds, rows_seconds=windows * rows * active),
        replace(pulled, rows_seconds=rows),
        routes=routes_of(options),
        head=pull.skip,
        at_once=push.slight(frontier),
        glance=push.pipeline.device.glance,
    )


def fetched_of(
    push: EdgeStream, pull: EdgeStream, frontier: Frontier, unvisited: int, keeps: bool
) -> tuple[float, float]:
    """What reading from disk takes a push of this frontier, and a pull, on the cores: in edges pushed meanwhile.

    keeps: whether a pull keeps the rows that it reads in vain. After one of a wide frontier there is room for them, and
    the iterations that follow read nothing, while a push leaves it to the next of them to read everything.
    """
    rate = push.feedback.given.kernel_edges
    sides = (side_of(push), frontier.vertices), (side_of(pull), unvisited)
    found = [side.fetch_seconds * side.touched(rows) * rate for side, rows in sides]
    wide = keeps and frontier.edges * WIDE > pull.index.edges
    return found[0], found[1] * (REUSED if wide else 1.0)


def side_of(stream: EdgeStream) -> DirectionSide:
    """Where a stream's edges are now; reckoned anew where that has changed."""
    changes = sum(cache.changes for cache in stream.caches)
    if stream.side is None or stream.side[0] != changes:
        stream.side = changes, _side_of(stream)
    return stream.side[1]


def _side_of(stream: EdgeStream) -> DirectionSide:
    directory = stream.directory
    edges = max(1, stream.index.edges)
    chunks, here = -(-edges // stream.chunk_edges), float(directory.table.lengths[stream.here].sum()) / edges
    pieces, plain = directory.pieces, edges * stream.edge_bytes
    copied = 1.0 if pieces is None else pieces.layout.nbytes / plain
    if not stream.from_disk:
        return DirectionSide(chunks, here, copied=copied)
    rates, adjacency = stream.feedback.given, directory.adjacency
    if stream.pipeline.device.reads_host:
        lacking = 1.0 - float(directory.held(stream.with_weights).mean())
    else:
        source = directory.staging.link if pieces is None else directory.staging.packed_link
        held = directory.filled(source.complete(adjacency, stream.with_weights))
        lacking = (1.0 - here) * (1.0 - float(held.mean()))
    sizes = adjacency.chunk_bytes(stream.with_weights)
    seconds = max(float(sizes.sum()) / rates.disk_bytes, plain * copied / rates.decode_bytes)
    cache = stream.pipeline.cache if stream.pipeline.device.reads_host else stream.pipeline.source.cache
    again = REUSED if stream.direction == "pull" and cache is not None and cache.whole else 1.0
    return DirectionSide(chunks, here, seconds * lacking * again, copied)
