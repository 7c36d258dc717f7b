"""How wide the next bucket of priorities is: narrow while many edges are to be relaxed, wide where few are left.

On skewed graphs nearly all edges belong to vertices of two or three distances (R-MAT, weights 1 to 63: 85 % of them),
and a bucket that holds more than one of these relaxes many edges twice, for no path within a bucket is final before the
bucket is. A hundred distances behind them hold a few edges each, and would take an iteration each.
So a width follows the edges relaxed per unit of distance, as the buckets of ADDS do (Wang, Fussell, Lin, PPoPP 2021).
Pure: numbers in, numbers out. Refuses nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

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
