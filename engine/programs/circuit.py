"""Circuit simulation: the potentials of nodes between fixed ones, in a network of conductances (direct current).

Kirchhoff's current law: at a node v whose potential is not fixed the currents along its edges add up to 0,

    sum over edges {u, v} of g(u, v) * (V(u) - V(v)) = 0,   so that   V(v) = sum g(u, v) * V(u) / G(v),

g being the weights of the edges, which conduct both ways, and G(v) their sum at v. The solution exists and is the only
one if some path of conductances above 0 leads from every node to a fixed potential; other nodes are refused, or left
without an answer.

Circuit simulation is a benchmark of CuSha (CS; Khorasani, Vora, Gupta, Bhuyan, HPDC 2014) and of Garaph (Ma et al.,
USENIX ATC 2017), as vertex programs that repeat an update of V from its neighbors. CuSha's public code
(github.com/farkhor/CuSha) has BFS, SSSP and PageRank only. Repeating the equation above (Jacobi's method) takes a
number of sweeps that grows with the square of the diameter. Here the same equations are solved by conjugate gradients
(Hestenes, Stiefel 1952) with G as preconditioner. Each iteration is one sweep and one reduction: the length of the step
and the next direction follow from the same sums (Saad, SIAM J. Sci. Stat. Comput. 1985; Meurant, Parallel Computing
1987).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.parameters import Count, NonNegative
from penstock.engine.program.program import Field, Global, Program, Start, weighted
from penstock.engine.program.program_description import variant
from penstock.engine.program.vertex_ids import vertex_column
from penstock.engine.program.vertex_ranges import mask_of, over_ranges, set_where
from penstock.engine.programs.conductance import (
    Conductance,
    Looped,
    SelfLoops,
    any_conducts,
    largest_conductance,
)
from penstock.engine.programs.given_values import Given, bytes_to_translate, given_values
from penstock.engine.programs.weights import Sums, counts_by_weight
from penstock.storage.base.errors import InputError, brief
from penstock.storage.format.graph import Graph


class Circuit(Program):
    """`potential` (float64). fixed: original id -> potential that is held, or an array of a number for every vertex, in
    the order of `Result.ids` and NaN where none is held.

    max_iter: iterations at most (100,000). tol: stop when the currents that do not add up to 0, divided by the roots of
    G, are below this part of the first ones (L2 norm; 1e-8). floating: whether nodes without a path to a fixed
    potential are left without an answer (-infinity in `fields`); else they are refused. weight: whether weights are
    the conductances (False or None: each edge conducts 1). `residual`: that part after the first iteration and after
    the last.
    """

    potential = Field(np.float64, unreached=-np.inf)
    remainder = Field(np.float64, output=False)
    heading = Field(np.float64, output=False)
    product = Field(np.float64, output=False)
    conductance = Field(np.float64, output=False)
    grounded = Field(np.uint32, output=False)
    tolerance = 1e-6
    single = True
    extendable = ("max_iter", "tol")
    measures = ("residual",)
    by_ranges = True
    phase_names = ("grounded nodes", "self-loops", "conductances", "first currents", "conjugate gradients")

    def __init__(
        self,
        fixed: Given,
        max_iter: Count = 100_000,
        tol: NonNegative = 1e-8,
        floating: bool = False,
        weight: bool | str | None = True,
    ) -> None:
        self.fixed, self.max_iter, self.tol, self.floating = fixed, max_iter, tol, floating
        self.needs_weights = counts_by_weight(weight)
        self.working_bytes = bytes_to_translate(fixed)
        self.loops, self.residual = False, list[float]()

    def may_run(self, graph: Graph) -> Iterable[Program]:
        """The search for nodes with a path, three sums, and the iterations."""
        sums = (kind(self.needs_weights) for kind in (SelfLoops, Conductance, Arriving))
        return Grounded(self, graph), *sums, Conjugate(self), variant(Conjugate, Looped)(self)

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """Find nodes with a path to a fixed potential and self-loops, add up, then iterate."""
        held, volts = given_values(graph, self.fixed, "fixed")
        if first == 0:
            if len(held) == 0 and graph.vertices:
                raise InputError("a circuit needs a fixed potential: give at least one vertex a potential with --fixed")
            state["potential"][held] = volts
            state["grounded"][held] = 1
            yield Grounded(self, graph)
            if not self.floating:
                _check_grounded(graph, state["grounded"])
        if first <= 1:
            yield SelfLoops(self.needs_weights)
            self.loops = any_conducts(state["conductance"])
        if first <= 2:
            yield Conductance(self.needs_weights)
            largest_conductance(graph, state["conductance"])
            _hold(state, held)
        if first <= 3:
            yield Arriving(self.needs_weights)
            _clear(state["remainder"], state["conductance"])
        conjugate = (variant(Conjugate, Looped) if self.loops else Conjugate)(self)
        yield conjugate
        self.converged = conjugate.converged and not conjugate.stalled
        self.residual = conjugate.residual

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """The potentials; none where there is no path to a fixed one."""
        potential, grounded = state["potential"], state["grounded"]
        set_where(potential, lambda first, last: grounded[first:last] == 0, -np.inf)
        return {"potential": potential}


class Grounded(Program):
    """The first phase of a circuit: nodes to which conductances above 0 lead from a fixed potential."""

    grounded = Field(np.uint32)
    combine = "or"
    along = "both"
    by_ranges = True
    self_combining = True
    non_negative_weights = True

    def __init__(self, whole: Circuit, graph: Graph) -> None:
        lowest = graph.weight_range[0] if weighted(whole, graph) and graph.weight_range is not None else 1
        self.needs_weights = not lowest > 0

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """From the fixed potentials."""
        grounded = state["grounded"]
        return Start(active=mask_of(lambda first, last: grounded[first:last] != 0, graph.vertices))

    def edge(grounded, weight):  # type: ignore[no-untyped-def]
        """Travels along an edge, either way: that there is a path."""
        return grounded if weight > 0 else np.uint32(0)

    def cond(grounded):  # type: ignore[no-untyped-def]
        """Only nodes without a path so far take part."""
        return grounded == 0


class Arriving(Sums):
    """The fourth phase: the currents that fixed potentials drive into their neighbors, whose potentials are 0."""

    remainder = Field(np.float64)
    potential = Field(np.float64, constant=True)
    accumulator = "remainder"
    along = "both"

    def edge(potential, weight):  # type: ignore[no-untyped-def]
        """Travels along an edge, either way."""
        return potential * weight


class Conjugate(Program):
    """The last phase: conjugate gradients, a sweep in each iteration.

    remainder: the current r that does not add up to 0; heading: the direction p; product: A p, A being the Laplacian
    without fixed nodes. Vertices take the step of the last iteration when the next one begins, since its length is
    known then; sums of r, p and A p are those of the same moment. stalled: rounding left no direction.
    """

    potential = Field(np.float64)
    remainder = Field(np.float64)
    heading = Field(np.float64)
    product = Field(np.float64)
    conductance = Field(np.float64, constant=True)
    combine = "sum"
    along = "both"
    everywhere = True
    by_ranges = True
    extendable = ("max_iter", "tol")

    def __init__(self, whole: Circuit) -> None:
        self.max_iter, self.tol, self.needs_weights = whole.max_iter, whole.tol, whole.needs_weights
        self.step = self.turn = 0.0
        self.began, self.stalled = 0.0, False
        self.residual: list[float] = []

    def send(remainder, heading, product, conductance, step, turn):  # type: ignore[no-untyped-def]
        """The next direction."""
        if conductance <= 0:
            return 0.0 * remainder
        return (remainder - step * product) / conductance + turn * heading

    def edge(sent, weight):  # type: ignore[no-untyped-def]
        """Travels along an edge, either way."""
        return sent * weight

    def vertex(potential, remainder, heading, product, conductance, incoming, step, turn):  # type: ignore[no-untyped-def]
        """The step whose length is known now; the next direction, and its product."""
        if conductance <= 0:
            return potential, remainder, heading, product
        moved = potential + step * heading
        left = remainder - step * product
        ahead = left / conductance + turn * heading
        return moved, left, ahead, conductance * ahead - incoming

    @Global(np.float64)
    def unbalanced(remainder, conductance):  # type: ignore[no-untyped-def]
        """Squared norm of r in the inverse of G."""
        return remainder * (remainder / conductance) if conductance > 0 else 0.0

    @Global(np.float64)
    def curvature(heading, product):  # type: ignore[no-untyped-def]
        """Of p and A p."""
        return heading * product

    @Global(np.float64)
    def crossed(remainder, product, conductance):  # type: ignore[no-untyped-def]
        """Of r and A p, in the inverse of G."""
        return remainder * (product / conductance) if conductance > 0 else 0.0

    @Global(np.float64)
    def squared(product, conductance):  # type: ignore[no-untyped-def]
        """Of A p with itself, in the inverse of G."""
        return product * (product / conductance) if conductance > 0 else 0.0

    def done(self, iteration: int, totals: dict[str, float]) -> bool:
        """Whether the currents add up to 0; else the length of the step, and how much of p the next direction keeps."""
        now, curvature = totals["unbalanced"], totals["curvature"]
        if not math.isfinite(now + curvature):
            raise InputError(
                f"currents outgrew the numbers of the run after {iteration + 1} iterations; give smaller potentials or "
                "conductances, or leave out --precision single"
            )
        if iteration == 0:
            self.began = now
        part = math.sqrt(now / self.began) if self.began > 0 else 0.0
        self.residual = [*self.residual[:1], part]
        if now == 0 or part <= self.tol:
            return True
        if curvature <= 0:
            self.stalled = True
            return True
        self.step = now / curvature
        after = now - 2 * self.step * totals["crossed"] + self.step * self.step * totals["squared"]
        self.turn = max(0.0, after) / now
        return False


def _hold(state: dict[str, NDArray[Any]], held: NDArray[np.int64]) -> None:
    """Leave nodes alone whose potential is fixed, or that have no path to one: they get no conductance."""
    conductance, grounded = state["conductance"], state["grounded"]
    conductance[held] = 0.0
    set_where(conductance, lambda first, last: grounded[first:last] == 0, 0.0)


def _clear(remainder: NDArray[Any], conductance: NDArray[Any]) -> None:
    """Drop the currents of nodes without a conductance."""
    set_where(remainder, lambda first, last: conductance[first:last] <= 0, 0.0)


def _check_grounded(graph: Graph, grounded: NDArray[Any]) -> None:
    """Raise InputError where a node has no path to a fixed potential."""
    found = over_ranges(lambda first, last: first + np.flatnonzero(grounded[first:last] == 0)[:1], graph.vertices)
    at = next((int(places[0]) for places in found if len(places)), None)
    if at is not None:
        several = graph.vertices - int(np.count_nonzero(grounded))
        named = brief(str(vertex_column(graph)[at]))
        raise InputError(
            f"vertex {named} and {several - 1:,} others have no path of conductances above 0 to a "
            "fixed potential, so theirs are not determined: fix one in each component with --fixed, or leave such "
            "vertices without an answer (floating=True, by --set)"
        )
