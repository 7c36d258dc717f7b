"""Which pending vertices are due: the width of the next bucket, and the horizon beyond which none is wanted.

A bucket is narrow while many edges are to be relaxed, wide where few are left.

On skewed graphs nearly all edges belong to vertices of two or three distances (R-MAT, weights 1 to 63: 85 % of them),
and a bucket that holds more than one of these relaxes many edges twice, for no path within a bucket is final before the
bucket is. A hundred distances behind them hold a few edges each, and would take an iteration each.
So a width follows the edges relaxed per unit of distance, as the buckets of ADDS do (Wang, Fussell, Lin, PPoPP 2021).

A run whose answer is wanted only to vertices that are asked for, or to a distance, has a horizon. With priorities what
is beyond it never becomes due, and the run ends when only that is left: no path through a vertex of a larger
distance shortens one (Dijkstra, Numerische Mathematik 1959, ends at a single target likewise). Without priorities
vertices are reached level by level, and the number of the iteration is the distance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.program.program import author_function, fields_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.kernels.interface import Kernels
    from penstock.engine.program.program import Program
    from penstock.engine.resources.edge_stream import EdgeStream
    from penstock.engine.state.device_state import VertexState
    from penstock.engine.state.state import Frontier

ValuesAt = Callable[[str, "NDArray[np.int64]"], "NDArray[Any]"]
"""Returns what a field has at some vertices."""
SHARE = 1 / 2  # of a graph's edges that a bucket may hold before it is narrowed
GROWTH = 8.0  # of edges per unit from one bucket to the next where it is not known
LINKED = 1 / 8  # of the usual width: edges relaxed in vain cost more over a link than iterations do
STEPS = 32  # of the narrowest width that a bucket over a link may always have
SPARSE = 64  # of the narrowest width: a usual one from here on means few edges a vertex, and a start with the widest


@dataclass(slots=True)
class BucketWidth:
    """The width of buckets in a run.

    edges: of the graph. width: the present one, between `narrowest` and `widest`. work: edges relaxed in the present
    bucket. density: edges relaxed per unit of priority in the bucket before; None where that is not known.
    """

    edges: int
    widest: float
    narrowest: float
    width: float
    work: int = 0
    density: float | None = None

    def limit_above(self, lowest: float, *, empty: bool = False) -> float:
        """Begin the bucket that holds the priority `lowest`; return the limit below which priorities are due.

        empty: the one before turned out to hold nothing, which says nothing of this one.
        """
        if self.narrowest < self.widest and not empty:
            self._follow()
        number = lowest / self.width if self.width else math.inf
        above = (math.floor(number) + 1.0) * self.width if math.isfinite(number) else math.inf
        return max(above, math.nextafter(lowest, math.inf))

    def forget(self) -> None:
        """The limit was moved elsewhere: nothing is known of the bucket before."""
        self.work, self.density = 0, None

    def _follow(self) -> None:
        """Choose the width by what the last bucket held, and by how much more that was than in the one before."""
        now = self.work / self.width
        growth = GROWTH if self.density is None else max(1.0, now / max(self.density, 1e-300))
        expected, most = now * growth * growth, self.edges * SHARE
        self.width = min(2 * self.width, self.widest)
        while self.width > self.narrowest and self.width * expected > most:
            self.width = max(self.width / 2, self.narrowest)
        self.work, self.density = 0, now


def bucket_width(usual: float, narrowest: float, edges: int, linked: bool) -> BucketWidth:
    """The widths of a run.

    Parameters
    ----------
    usual, narrowest : float
        `Program.bucket` and `Program.narrowest_bucket`.
    edges : int
        Edges of the graph.
    linked : bool
        Whether edges come over a link.

    Returns
    -------
    BucketWidth
        Fixed where `narrowest` is 0.
    """
    if not narrowest:
        return BucketWidth(edges, usual, usual, usual)
    widest = max(usual * LINKED, narrowest * STEPS) if linked else usual
    widest = max(widest, narrowest)
    return BucketWidth(edges, widest, narrowest, widest if usual >= narrowest * SPARSE else narrowest)


LEAST_FUSED, SHARE_FUSED = 16, 2
"""Iterations in one launch at most, the first time, and later by the part of those that have run: between launches the
horizon is looked at, which takes as long as tens of iterations of a few vertices."""


class Due:
    """Which vertices are due in a run, of those that are pending: those of priorities below `limit`.

    settled_below: no path to a vertex of a lower distance can become shorter. ceiling: priorities from here on need not
    become due; last: iterations that need to run: they may come nearer after every iteration. alone: whether the loop
    may walk other rows, or several iterations, in place of a frontier.
    """

    alone = True

    def __init__(self, program: Program) -> None:
        self._program = program
        self.ceiling = self._last = math.inf
        self._by_priority = author_function(program, "priority") is not None
        self.settled_below = -math.inf
        self._noted = math.nan
        self._began_small = False

    def begin(self, streams: Collection[EdgeStream], edges: int, gathered: Callable[..., NDArray[np.float64]]) -> None:
        """Begin with the first bucket of the program; without buckets all are due.

        streams: of the run; edges: of the graph. gathered: gives numbers of all ranks.
        """
        usual, narrowest, over_link = self._program.bucket, self._program.narrowest_bucket, False
        if narrowest:
            again = any(stream.reads_again for stream in streams)  # an iteration then reads most chunks in any case
            agains, linked = gathered(again, any(stream.linked for stream in streams)).T
            narrowest, over_link = 0.0 if agains.any() else narrowest, bool(linked.any())
            if any(stream.scans for stream in streams):
                usual = narrowest = 0.0  # the fewer iterations, the fewer edges are read: all that is pending is due
        self._bucket = bucket_width(usual, narrowest, edges, over_link)
        self.limit = self._bucket.width or math.inf

    def go_on(self, limit: float) -> None:
        """Go on with the limit that a checkpoint has."""
        self.limit = limit

    def next(self, select: Callable[[], Frontier], kernels: Kernels[Any]) -> Frontier:
        """Select what is due; when nothing is, move the limit to the bucket of the lowest pending priority.

        The first frontier below a limit tells whether fused iterations may move that.
        """
        frontier, empty = select(), False
        while frontier.empty and frontier.rest < self.ceiling:
            above = self._bucket.limit_above(frontier.rest, empty=empty)
            self.settled_below, self.limit = frontier.rest, min(above, self.ceiling)
            frontier, empty = select(), True
        if frontier.vertices and self.limit != self._noted:
            self._noted, self._began_small = self.limit, kernels.can_fuse(frontier)
        self._bucket.work += frontier.edges
        return frontier

    def most_fused(self, left: int, iteration: int) -> int:
        """Return how many of the iterations that are left may run in one launch."""
        return min(left, max(LEAST_FUSED, iteration // SHARE_FUSED)) if self._program.bounded else left

    @property
    def fused_width(self) -> float:
        """The width by which fused iterations may move the limit; 0: they may not."""
        return self._bucket.width if self._began_small else 0.0

    def fused(self, edges: int, limit: float) -> None:
        """Take where fused iterations have moved the limit; edges: of their frontiers after the first."""
        self._bucket.work += edges
        if limit != self.limit:
            self._bucket.forget()
            self.settled_below = self.limit
        self.limit = limit

    def is_over(self, state: VertexState, iteration: int, values_at: ValuesAt) -> bool:
        """Take the horizon from the values that the watched vertices have now; return whether nothing is left in it."""
        horizon = self._program.horizon(self._watched(state, values_at))
        if self._by_priority:
            self.ceiling = math.nextafter(horizon, math.inf)
        else:
            self._last = horizon
        self.limit = min(self.limit, self.ceiling)
        return iteration >= self._last

    def _watched(self, state: VertexState, values_at: ValuesAt) -> NDArray[Any]:
        """The first field's values at the vertices that the program watches, from where the state is."""
        name = next(iter(fields_of(self._program)))
        if not self._program.watched:
            return np.empty(0, state.fields[name].dtype)
        return values_at(name, np.asarray(self._program.watched, np.int64))
