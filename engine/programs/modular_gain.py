"""Modularity in whole numbers: how weights become such, how fine gains are compared, how communities are looked for.

Sums of whole numbers do not depend on their order, and no rounding differs between processors: so every device, and any
number of threads, finds the same communities.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.vertex_ranges import each_range, over_ranges
from penstock.storage.base.errors import InputError

if TYPE_CHECKING:
    from penstock.storage.format.graph import Graph

LARGEST_GAIN = 61
"""Bits of a gain: as whole numbers, gains differ by less than an int64 holds."""
FINEST = 20
"""Bits of a gain behind the binary point, at most."""
MIXER = 0x45D9F3B
"""Factor of a hash of 32 bits (as used by Thomas Mueller), whose products an int64 holds."""
EXACT = 50
"""Bits of 2m, at most, so that float64 counts it exactly."""
TURNS = ((1 << 14, 8), (1 << 17, 4), (math.inf, 2))
"""For graphs of fewer edges: in how many sweeps every vertex may move once."""

MOST_TURNS = 128
"""The same where fewer do not suffice: so few vertices move at once that each gains."""


@dataclass(frozen=True)
class Search:
    """How communities are looked for.

    resolution: above 1 for more and smaller communities. seed: of the hash. tol: a round of sweeps that
    raises modularity by no more ends a level. sweeps: most of a level; 0: none moves. by_weight: whether edges count by
    their weights. scale: what weights are multiplied by. level: number of the level, from 0. directed: whether gains
    follow the directions of edges.
    """

    resolution: float
    seed: int
    tol: float
    sweeps: int
    by_weight: bool
    scale: float = 1.0
    level: int = 0
    directed: bool = False

    def salt(self, number: int) -> int:
        """What distinguishes the hash of a round of sweeps."""
        return ((self.seed * 1_000_003 + self.level) * 1_000_003 + number * 40_503) & 0xFFFFFFFF


def fixed_point(graph: Graph, *, by_weight: bool) -> float:
    """A power of two by which weights are multiplied before they are rounded, so that sums of them are exact.

    1 for whole weights; others are rounded to 2m / 2^49 or, of more than 2^13 vertices, to less exact numbers: a
    message holds a community and a sum. Raises InputError for weights that are negative.
    """
    if not by_weight or graph.weight_range is None:
        return 1.0
    least, mean, _ = graph.weight_range
    if least < 0:
        raise InputError(
            f"the graph has the weight {least:g}, and modularity has no meaning for negative weights; run it with "
            "--no-weight, or leave such edges out"
        )
    bits = min(EXACT, 63 - id_bits(graph.vertices)) - 1
    total = 2.0 * max(mean, 0.0) * graph.edges
    assert graph.weight_dtype is not None
    if total == 0 or (graph.weight_dtype.kind == "u" and total < 2.0**bits):
        return 1.0
    return 2.0 ** math.floor(bits - math.log2(total))


def id_bits(vertices: int) -> int:
    """Bits of a community in a message, and of a number that is none."""
    return max(1, vertices.bit_length())


def turns(edges: int) -> int:
    """In how many sweeps every vertex may move once: more of them where few vertices could all follow each other."""
    return next(count for most, count in TURNS if edges < most)


def fine_bits(resolution: float, whole: int) -> int:
    """Bits of gains behind the binary point. Raises InputError for a resolution too large to compare gains."""
    bits = min(FINEST, LARGEST_GAIN - math.ceil(math.log2(max(1.0, resolution) * max(2, whole))))
    if bits < 0:
        raise InputError(
            f"resolution {resolution:g} is too large for edges whose weights sum to {whole // 2}; give less than "
            f"{2.0**LARGEST_GAIN / max(2, whole):.3g}"
        )
    return bits


def turn_of(rank: NDArray[Any], salt: int, count: int, out: NDArray[Any]) -> None:
    """Set `out` to the turn, from 0 to `count` - 1, that a hash gives every rank."""

    def fill(first: int, last: int) -> None:
        x = (rank[first:last].astype(np.int64) ^ salt) & 0xFFFFFFFF
        for _ in range(2):
            x = (((x >> 16) ^ x) * MIXER) & 0xFFFFFFFF
        out[first:last] = (x >> 16) % count

    each_range(fill, len(rank))


def squares(total: NDArray[np.int64]) -> int:
    """The sum of the squares of strengths together, exactly; each is below 2^53."""
    half = (1 << 27) - 1

    def of_range(first: int, last: int) -> int:
        high, low = total[first:last] >> 27, total[first:last] & half
        small = low * low
        return (
            (int((high * high).sum()) << 54)
            + (int((high * low).sum()) << 28)
            + (int((small >> 27).sum()) << 27)
            + int((small & half).sum())
        )

    return sum(over_ranges(of_range, len(total)))


def modularity(inner: int, square: int, whole: int, resolution: float) -> float:
    """inner / 2m - resolution * sum of (K_c / 2m)^2, of exact sums: amounts within communities, `squares`, whole = 2m.

    By direction, less the squares of B_c: sum of K_c^2 - B_c^2, four times the products of what leaves and enters c.

    Newman, Girvan, Phys. Rev. E 2004.
    """
    return inner / whole - resolution * (square / whole**2)
