"""The stream of edges that a device behind a link does not hold: what comes over the link, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.resources.direction import Direction, Situation, weighs
from penstock.engine.resources.direction_cost import LinkCosts, cheapest, gather_seconds, reading
from penstock.engine.resources.edge_stream import EdgeStream
from penstock.engine.state.state import Frontier
from penstock.storage.format.row_pages import OFFSET_BYTES
from penstock.transfer.planning.plan import pays, routes_of
from penstock.transfer.routes.cel import name as cel
from penstock.transfer.values.rates import LINE_BYTES, SECTOR_BYTES, TASK_SECONDS
from penstock.transfer.values.task import Demand

if TYPE_CHECKING:
    from penstock.engine.kernels.interface import Kernels
    from penstock.engine.resources.direction_cost import LinkReading
    from penstock.engine.resources.ownership import Ownership
    from penstock.engine.state.device_state import VertexState
    from penstock.transfer.values.task import Ints
    from penstock.transfer.values.view import OwnedRows, View

DOUBT = 2.0  # a pull may read so many times what is expected behind row prefixes
SPREAD = 8
"""Vertices of a frontier for each partition: so many are in nearly all of them."""
CARRIER_SECONDS = 5e-4
"""What a task takes that rows follow, at least: 0.38 to 0.6 ms on the hosts of an H100 and an H200."""
MISSED, SOME_LINES = 4, 1 << 14
"""A pull that reads so many times the lines expected, and so many more, was not expected well."""


@dataclass
class LinkStream(EdgeStream):
    """Edges of rows for a device with memory of its own, which a rank has to itself."""

    _asked: tuple[Frontier, bool] | None = field(default=None, init=False)

    def own(self, ownership: Ownership) -> None:
        """Walk the rows that this rank owns; its adjacency has no others, or all."""
        self.owned = ownership.rows(self.index)

    @property
    def linked(self) -> bool:
        """Whether some edges come over the link."""
        return not self.resident

    @property
    def reads_again(self) -> bool:
        """Never: what is read from disk again is not read by cores that compute."""
        return False

    def situated(
        self, seen: Callable[..., Situation], frontier: Frontier, streams: dict[Direction, EdgeStream],
        first: Callable[[EdgeStream], EdgeStream], *, keeps: bool, unvisited: tuple[int, int],
    ) -> Situation:  # fmt: skip
        """The same with the costs of the link, where they are weighed."""
        found = seen(linked=any(stream.linked for stream in streams.values()), unvisited=unvisited[0])
        if not weighs(found, frontier):
            return found
        push = first(streams["push"])
        windows = 1 if push is streams["push"] else len(streams["push"].directory.adjacency.windows)
        return replace(found, link=link_costs_of(push, streams["pull"], frontier, windows))

    def unsettled(self, kernels: Kernels[Any], state: VertexState, scalars: tuple[Any, ...]) -> Demand | None:
        """What reading the rows of all unsettled vertices needs; None where all edges are in memory already."""
        if self.resident:
            return None
        blocks = self._block_marks()
        counts, chunks, sizes = self._tables(blocks)
        table = counts.reshape(-1)
        kernels.count_cond(state, self.index, scalars, sizes, table, chunks, blocks=blocks, function="unsettled")
        vertices, edges, lines, *touched = np.ascontiguousarray(counts.T)
        pending = edges.astype(np.float64)
        asked = self.key, vertices, edges, lines, pending, chunks, self.with_weights
        marked = touched[0] if touched else None
        return Demand(*asked, packable=False, blocks=marked, block_marks=blocks)

    @property
    def _reads_at_once(self) -> bool:
        """Whether all edges may be read in place over the link, in one view: page-locked ones."""
        able = self.linked and self.pipeline.options.route in ("auto", "zero-copy")
        return able and self.pipeline.staging.link.pinned(self.directory.adjacency, self.with_weights) is not None

    def slight(self, frontier: Frontier) -> bool:
        """As of `EdgeStream`; asked often, found once."""
        if self._asked is None or self._asked[0] is not frontier:
            able = self.direction == "push" and frontier.listed and self._reads_at_once
            own = self._own(frontier)
            self._asked = frontier, able and not self._plan_pays(own.vertices, own.edges, self._lines_of(own))
        return self._asked[1]

    def few_behind(self, known: Situation | None, frontier: Frontier) -> LinkReading | None:
        """As of `EdgeStream`; once much more was read than expected, it is always counted."""
        if known is None or known.link is None:
            return None
        if self.expected is not None and self.expected[0].lines_read > MISSED * self.expected[1] + SOME_LINES:
            return None
        read = reading(known.link, *self.progress(known, frontier))
        able = self._reads_at_once and not self._plan_pays(read.rows, DOUBT * read.edges, DOUBT * read.requests)
        return read if able else None

    def _plan_pays(self, rows: float, edges: float, lines: float) -> bool:
        """Whether a plan of so much saves what it takes, over reading it in place; rows may be in any partition."""
        in_place = self._in_place(rows, edges, lines)
        if not pays(in_place, counted=False):
            return False
        rates, size = self.feedback.given, edges * self.edge_bytes
        touched = -math.expm1(-rows / len(self.directory.table))
        gathered = gather_seconds(rates, size, rows) if self.direction == "push" else math.inf
        best = cheapest(routes_of(self.pipeline.options), in_place, touched * self._whole(TASK_SECONDS), gathered)
        placed = float((self.directory.starts >= 0).mean())
        return pays(in_place - (1.0 - placed) * best, counted=False)

    def _in_place(self, rows: float, edges: float, lines: float) -> float:
        """Seconds of reading so much in place."""
        run_bytes = edges * self.edge_bytes / max(1.0, rows) if self.direction == "push" else SECTOR_BYTES
        return float(self.feedback.given.line_seconds(np.float64(lines), np.float64(run_bytes)))

    def _whole(self, task_seconds: float) -> float:
        """Seconds of copying all partitions, in tasks that take so long at least."""
        pieces = self.directory.pieces
        copied = self.index.edges * self.edge_bytes if pieces is None else pieces.layout.nbytes
        tasks = len(self.directory.table) / (self.pipeline.options.combine if pieces is None else 1)
        return max(copied / self.feedback.given.copy_bytes, tasks * task_seconds)

    def carriers_pay(self, frontier: Frontier, sent: int, *, passed: bool) -> bool:
        """As of `EdgeStream`: a frontier that is in nearly all partitions, of edges that may be read in place, too."""
        options, known, parts = self.pipeline.options, self.feedback.carriers, len(self.directory.table)
        able = options.route == "auto" and options.model == "measured" and cel in options.routes
        if not (able and self.directory.pieces is None and frontier.vertices >= SPREAD * parts):
            return False
        everything = frontier.edges >= self.index.edges
        saved = known.saved(frontier.edges, sent, everything=everything, passed=passed)
        return self._whole(CARRIER_SECONDS) <= self._in_place(1, saved, saved * self.edge_bytes / LINE_BYTES)

    def reads_all(self, kernels: Kernels[Any], frontier: Frontier) -> bool:
        """Never: rows are read where they are."""
        return False

    def _read_early(self, frontier: Frontier, vertices: Ints, edges: Ints, lines: Ints) -> tuple[Ints, Ints, Ints]:
        """The same, of which each row takes a short request at least."""
        read, _, _ = super()._read_early(frontier, vertices, edges, lines)
        return read, read, np.minimum(edges, vertices + read * self.edge_bytes // SECTOR_BYTES)

    def _is_packable(self, kernels: Kernels[Any]) -> bool:
        return self.index.whole and super()._is_packable(kernels)

    def _owned_part(self, view: View, own: OwnedRows, kernels: Kernels[Any]) -> View:
        return view if own.e0 <= view.e0 and view.e1 <= own.e1 else replace(view, owned=own).narrowed()


def link_costs_of(push: EdgeStream, pull: EdgeStream, frontier: Frontier, windows: int = 1) -> LinkCosts:
    """What a push of this frontier, and a pull, would find; windows: how many are pushed along, of which `push` is one.

    Where a device has values in pages, rows of an index come over the link, too: for each window.
    """
    assert pull.degrees is not None, "on a device behind a link every stream has them"
    options, rates, pushed, pulled = push.pipeline.options, push.feedback.given, push.now, pull.now
    pages, count = push.index.pages, push.index.vertices
    rows = 0.0 if pages is None else OFFSET_BYTES * count / rates.copy_bytes
    active = 1.0 if pages is None else -math.expm1(-frontier.vertices * pages.rows / count)  # share of pages
    return LinkCosts(
        rates,
        pull.edge_bytes,
        pull.degrees(),
        replace(pushed, fetch_seconds=windows * pushed.fetch_seconds, rows_seconds=windows * rows * active),
        replace(pulled, rows_seconds=rows),
        routes=routes_of(options),
        head=pull.skip,
        at_once=push.slight(frontier),
        glance=push.pipeline.device.glance,
    )
