"""Which wanted partitions of an iteration are left for a later one, because they cost much and would bring little.

Owns that choice, as a pure function: what is pending in every partition, what fetching it takes, what kernels would do
with it, and how often it has waited. Refuses to let a partition wait without end (`MOST` iterations in a row), to leave
an iteration with next to nothing to do, and to save less than an iteration costs. For asynchronous pushes only, whose
messages may come late: who is active in a partition that waits stays pending, and its edges are read once for more of
them. That edges which are in memory should serve as many updates as they can before the disk is asked is the idea of
CLIP (Ai et al., USENIX ATC 2017), which goes over them again; here what is on disk is read later.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from penstock.transfer.values.rates import Rates

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MOST = 4
"""Iterations in a row for which a partition may wait."""
THIN = 0.1
"""Kernel seconds over seconds of fetching below which a partition brings little."""
SHARE = 0.02
"""Share of the iteration's value that must be left for it when the rest waits."""
WORTH = 0.01
"""Seconds of fetching that waiting must spare an iteration, since it adds others."""


@dataclass(frozen=True, slots=True)
class Fetching:
    """Bytes that bringing each partition's wanted edges would move, int64[p]; all 0 for what is where it is read.

    disk, decode: compressed and decoded, of the chunks that no cache holds. link: over the link, by the cheaper of a
    copy and reading in place; 0 on a host.
    """

    disk: Ints
    decode: Ints
    link: Ints

    def seconds(self, rates: Rates) -> Floats:
        """Return the seconds of each partition on its busiest resource, float64[p]; 0 for what needs no disk."""
        apart = (self.disk / rates.disk_bytes, self.decode / rates.decode_bytes, self.link / rates.copy_bytes)
        return np.where(self.disk > 0, np.maximum.reduce(apart), 0.0)


@dataclass(frozen=True, slots=True)
class Prospect:
    """What fetching each partition now would bring, arrays of shape (p,).

    value: what is pending in it. fetch: seconds of fetching it, 0 for what needs no disk. work: seconds of kernels on
    it, 0 where nothing is wanted. waited: iterations in a row for which it has waited.
    """

    value: Floats
    fetch: Floats
    work: Floats
    waited: Ints


def waiting(prospect: Prospect) -> Bools:
    """Return which partitions wait, bool[p]: all those that may, or none; never all that are wanted."""
    wanted = prospect.work > 0
    thin = wanted & (prospect.work < THIN * prospect.fetch) & (prospect.waited < MOST)
    left = wanted & ~thin
    value = prospect.value
    enough = left.any() and value[left].sum() > SHARE * value[wanted].sum()
    return thin if enough and prospect.fetch[thin].sum() > WORTH else np.zeros_like(thin)
