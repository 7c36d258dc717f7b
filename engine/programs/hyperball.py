"""HyperBall: how many vertices are within each distance of a vertex, estimated for all vertices in a few sweeps.

Boldi and Vigna, "In-Core Computation of Geometric Centralities with HyperBall", ICDM Workshops 2013: the set of the
vertices that reach a vertex in t steps is a HyperLogLog counter (Flajolet et al., AofA 2007), and that of t + 1 steps
is the union of those of the in-neighbors, the largest of each register. So one sweep over the edges grows all balls by
a step; the sizes give the neighborhood function, and centralities as sums over distances. Sizes by Ertl's estimator
("New cardinality estimation algorithms for HyperLogLog sketches", arXiv 1702.01284, algorithm 6), which needs no
corrections for small or large sets. A register is a byte below 128, eight of them are in an integer: its largest
number of each byte is computed in all eight at once.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.parameters import Count, Range
from penstock.engine.program.program import Field, Global, Program, Start, like
from penstock.engine.program.program_description import class_maker
from penstock.engine.program.shuffle import each_hashed
from penstock.engine.program.vertex_ranges import each_range
from penstock.storage.format.graph import Graph

State = dict[str, NDArray[Any]]
Registers = Annotated[int, Range(4, 12)]

PER_WORD = 8
"""Registers in an integer."""
LOG2M = 8
SIZE = 1 << LOG2M
"""Registers of a vertex, unless others are asked for."""
FILLED = 1 << 18
"""Registers that are written at once."""
LONGEST = 48
"""The largest value of a register: 2^(12 + 48) vertices and more could not be told apart."""
ALPHA = 0.5 / math.log(2.0)
"""Ertl's constant."""
MOST = 0.9
"""Share of the pairs that are within the effective diameter."""

_HIGH = np.uint64(0x8080808080808080)
_LOW = np.uint64(0x7F)
_BYTE, _SEVEN, _LAST = np.uint64(8), np.uint64(7), np.uint64(LONGEST)
_NONE, _ONE = np.uint64(0), np.uint64(1)
_UNIT = float(1 << LONGEST)


class HyperBall(Program):
    """`harmonic`, `closeness`, `reachable` (float64, estimates), `farthest` (uint32): of the vertices that reach one.

    reachable: how many these are, with the vertex. farthest: a distance that one of them has, the largest that grew the
    estimate. log2m: each vertex has 2^log2m registers of a byte, and twice that while it runs; the relative standard
    error of a count of vertices is 1.04 / sqrt(2^log2m), and vertices near each other err alike. seed: of the hash.
    reverse: of the vertices that a vertex reaches, which needs no in-edges. max_iter: distances beyond are not counted.
    Edges count as hops.

    Measures: `neighborhood` (pairs within each distance, from 0), `effective_diameter` (within which 90 % of the pairs
    are), `average_distance`, `diameter_at_least` (certain), `standard_error`.
    """

    registers = Field(np.uint64, shape=(SIZE // PER_WORD,), output=False)
    harmonic = Field(np.float64)
    closeness = Field(np.float64)
    reachable = Field(np.float64, fill=1.0)
    farthest = Field(np.uint32)
    combine = "merge"
    message_shape = (SIZE // PER_WORD,)
    everywhere = True
    tolerance = 1e-9
    by_ranges = True
    measures = ("neighborhood", "effective_diameter", "average_distance", "diameter_at_least", "standard_error")
    unit, alpha = _UNIT, ALPHA

    def __init__(
        self, log2m: Registers = LOG2M, seed: Count = 0, reverse: bool = False, max_iter: Count = Program.max_iter
    ) -> None:
        self.log2m, self.seed, self.reverse, self.max_iter = log2m, seed, reverse, max_iter
        self.size = 1 << log2m
        self.neighborhood: list[float] = []
        self.effective_diameter: list[float] = []
        self.average_distance: list[float] = []
        self.diameter_at_least: list[float] = []
        self.standard_error: list[float] = []

    def form(self, graph: Graph, mode: str) -> Program:
        """With so many registers, and with or against the edges."""
        return like(self, _of_size(self.log2m, "in" if self.reverse else "out"))

    def start(self, graph: Graph, state: State) -> Start:
        """Each ball has its vertex alone."""
        self.neighborhood = [float(graph.vertices)]
        registers, step = state["registers"], FILLED // self.size

        def fill(first: int, found: NDArray[np.uint64]) -> None:
            balls = np.zeros((step, self.size // PER_WORD), np.uint64)
            for at in range(0, len(found), step):
                place, value = registers_of(found[at : at + step], self.log2m)
                word, byte = place // PER_WORD, (place % PER_WORD).astype(np.uint64)
                rows = np.arange(len(place))
                balls[rows, word] = value << (_BYTE * byte)
                registers[first + at : first + at + len(place)] = balls[: len(place)]
                balls[rows, word] = 0

        each_hashed(graph, self.seed, fill)
        return Start(everything=True)

    def edge(message, registers, farthest, iteration):  # type: ignore[no-untyped-def]
        """The ball of the source, if it grew in the last step; else the target's has it already."""
        for k in range(len(message)):
            message[k] = registers[k] if farthest == iteration else _NONE

    def merge(one, other):  # type: ignore[no-untyped-def]
        """The larger of every two bytes."""
        above = ((one | _HIGH) - other) & _HIGH  # where it is not below
        mask = (above - (above >> _SEVEN)) | above
        return (one & mask) | (other & ~mask)

    def vertex(  # type: ignore[no-untyped-def]
        registers, harmonic, closeness, reachable, farthest, incoming, iteration, size, unit, alpha
    ):
        """The union of the balls, and what it adds to the sums; `closeness` has the sum of the distances until then."""
        grown = False
        for k in range(len(registers)):
            one, other = registers[k], incoming[k]
            above = ((one | _HIGH) - other) & _HIGH
            mask = (above - (above >> _SEVEN)) | above
            union = (one & mask) | (other & ~mask)
            grown = grown or union != one
            registers[k] = union
        if not grown:
            return registers, harmonic, closeness, reachable, farthest
        total, empty = _NONE, 0
        for k in range(len(registers)):
            rest = registers[k]
            for _ in range(8):
                total += _ONE << (_LAST - (rest & _LOW))
                empty += 1 if rest & _LOW == _NONE else 0
                rest >>= _BYTE
        share = empty / size
        powers, factor, before = share, 1.0, -1.0
        while powers != before:
            share *= share
            before = powers
            powers += share * factor
            factor += factor
        found = max(reachable, alpha * size * size / (size * powers + (float(total) / unit - empty)))
        step = iteration + 1
        return registers, harmonic + (found - reachable) / step, closeness + (found - reachable) * step, found, step

    @Global(np.float64)
    def pairs(reachable):  # type: ignore[no-untyped-def]
        """Pairs within the distances so far."""
        return reachable

    @Global(np.float64, combine="max")
    def last(farthest):  # type: ignore[no-untyped-def]
        """The last step in which a ball grew."""
        return farthest

    def done(self, iteration: int, totals: dict[str, float]) -> bool:
        """Note the pairs; whether no ball grew."""
        if totals["last"] <= iteration:
            return True
        self.neighborhood.append(totals["pairs"])
        return False

    def finish(self, graph: Graph, state: State) -> State:
        """The measures, and closeness as networkx scales it."""
        self._measure()
        closeness, reachable, others = state["closeness"], state["reachable"], max(1, graph.vertices - 1)

        def scale(first: int, last: int) -> None:
            distances, ball = closeness[first:last], reachable[first:last]
            ball = np.minimum(ball, graph.vertices)
            counted = distances > 0
            near = ball[counted] - 1.0
            scaled = distances.copy()
            scaled[counted] = near / distances[counted] * (near / others)
            reachable[first:last], closeness[first:last] = ball, scaled

        each_range(scale, graph.vertices)
        return {name: state[name] for name in ("harmonic", "closeness", "reachable", "farthest")}

    def _measure(self) -> None:
        """What the neighborhood function tells of the graph."""
        pairs = np.array(self.neighborhood)
        self.standard_error = [1.04 / math.sqrt(self.size)]
        if not len(pairs) or pairs[-1] <= 0:
            return
        self.diameter_at_least = [float(len(pairs) - 1)]
        self.effective_diameter = [effective_diameter(pairs)]
        if pairs[-1] > pairs[0]:
            steps = np.diff(pairs)
            self.average_distance = [float((steps * np.arange(1, len(pairs))).sum() / steps.sum())]


def registers_of(found: NDArray[np.uint64], log2m: int) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Which register each hash belongs to, and its value: the place of the first 1 bit of the other bits, from 1."""
    place = (found & np.uint64((1 << log2m) - 1)).astype(np.int64)
    rest = found >> np.uint64(log2m)
    lowest = rest & (~rest + _ONE)
    value = np.frexp(lowest.astype(np.float64))[1].astype(np.uint64)
    value[(lowest == _NONE) | (value > _LAST)] = _LAST
    return place, value


def effective_diameter(pairs: NDArray[np.float64]) -> float:
    """The distance within which MOST of the pairs are, linear between whole ones; pairs: within each distance."""
    wanted = MOST * pairs[-1]
    above = int(np.searchsorted(pairs, wanted))
    if above == 0:
        return 0.0
    return float(above - (pairs[above] - wanted) / (pairs[above] - pairs[above - 1]))


@class_maker
def _of_size(log2m: int, along: str) -> type[HyperBall]:
    """The program with so many registers, whose messages go so."""
    words = (1 << log2m) // PER_WORD
    registers = Field(np.uint64, shape=(words,), output=False)
    return type("HyperBall", (HyperBall,), {"registers": registers, "message_shape": (words,), "along": along})
