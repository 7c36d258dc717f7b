"""Heat simulation: temperatures of vertices that edges conduct heat between, step by step in time.

Newton's law on a network, each vertex having the heat capacity 1 and each edge its weight as conductance g:

    dT(v)/dt = sum over edges {u, v} of g(u, v) * (T(u) - T(v)),

that is dT/dt = -L T with the graph's weighted Laplacian L. A step of the explicit Euler method is

    T(v) <- T(v) + h * sum g(u, v) * (T(u) - T(v)) = (1 - h G(v)) * T(v) + h * sum g(u, v) * T(u),

G(v) being the sum of g at v, without self-loops, which move nothing: an average of v and its neighbors if
h <= 1 / max G. Then no temperature leaves the range of the first ones, and the step is stable. Larger steps are
refused. h = 1 / (2 max G), the default, lets no difference change its sign (the eigenvalues of h L are between 0 and
1). Heat is conserved but for fixed temperatures.

Heat simulation is a benchmark of CuSha (HS; Khorasani, Vora, Gupta, Bhuyan, HPDC 2014) and of Garaph (Ma et al., USENIX
ATC 2017). CuSha's public code (github.com/farkhor/CuSha) has BFS, SSSP and PageRank only, so this is the textbook's
method, with the stopping rule of that code: a run ends when no vertex changes by the tolerance. CuSha adds up in-edges
of directed graphs; here an edge conducts both ways, since heat is not conserved otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.parameters import Count, Finite, NonNegative, Positive
from penstock.engine.program.program import Field, Global, Program
from penstock.engine.program.program_description import variant
from penstock.engine.programs.conductance import (
    Conductance,
    Looped,
    SelfLoops,
    any_conducts,
    largest_conductance,
)
from penstock.engine.programs.given_values import Given, bytes_to_translate, given_values
from penstock.engine.programs.weights import counts_by_weight
from penstock.storage.base.errors import InputError
from penstock.storage.format.graph import Graph

HELD = -1.0
"""Stands for the conductance of a vertex whose temperature is fixed."""
DOWN = 1 - 1e-5
"""So that a bound is within the bound also when its first six digits are taken."""


class Heat(Program):
    """`temperature` (float64). initial: original id -> first temperature, ambient: that of all others (0).

    fixed: id -> temperature that is held for ever. Arrays of a number for every vertex, in the order of `Result.ids`
    and NaN where none is given, will do. time_step: h of the file; by default half of the stable bound. max_iter: steps
    at most. tol: stop when no temperature changes by more in a step; 0 runs exactly max_iter steps. weight: whether
    weights are the conductances (False or None: each edge conducts 1). `time`: simulated time after the first step and
    after the last.
    """

    temperature = Field(np.float64)
    conductance = Field(np.float64, output=False)
    tolerance = 1e-9
    single = True
    extendable = ("max_iter", "tol")
    measures = ("time",)
    by_ranges = True
    phase_names = ("self-loops", "conductances", "steps")

    def __init__(
        self,
        initial: Given | None = None,
        fixed: Given | None = None,
        ambient: Finite = 0.0,
        time_step: Positive | None = None,
        max_iter: Count = 1000,
        tol: NonNegative = 1e-6,
        weight: bool | str | None = True,
    ) -> None:
        if initial is None and fixed is None:
            raise InputError("heat needs temperatures: give some vertices one with --initial, or --fixed, or both")
        self.initial, self.fixed, self.ambient = initial, fixed, ambient
        self.working_bytes = bytes_to_translate(initial, fixed)
        self.time_step, self.max_iter, self.tol = time_step, max_iter, tol
        self.needs_weights = counts_by_weight(weight)
        self.loops, self.time = False, list[float]()

    def may_run(self, graph: Graph) -> Iterable[Program]:
        """Adding up conductances, and the steps."""
        sums = SelfLoops(self.needs_weights), Conductance(self.needs_weights)
        return *sums, Diffusion(self, 1.0), variant(Diffusion, Looped)(self, 1.0)

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """Look for self-loops, add up the conductances of other edges, then step."""
        temperature, conductance = state["temperature"], state["conductance"]
        held, degrees = given_values(graph, self.fixed, "fixed")
        if first == 0:
            temperature[:] = self.ambient
            places, values = given_values(graph, self.initial, "initial")
            temperature[places] = values
            temperature[held] = degrees
            yield SelfLoops(self.needs_weights)
            self.loops = any_conducts(conductance)
        if first <= 1:
            yield Conductance(self.needs_weights)
        conductance[held] = HELD
        kind = variant(Diffusion, Looped) if self.loops else Diffusion
        diffusion = kind(self, self._step(graph, conductance))
        yield diffusion
        self.converged = diffusion.converged
        self.time = [diffusion.time_step, diffusion.time_step * diffusion.steps] if diffusion.steps else []

    def _step(self, graph: Graph, conductance: NDArray[Any]) -> float:
        """The time step. Raises InputError for one that is not stable."""
        largest = largest_conductance(graph, conductance)
        if self.time_step is None:
            return 0.5 / largest if largest > 0 else 1.0
        if self.time_step * largest > 1:
            raise InputError(
                f"time step {self.time_step:g} is not stable on this graph: it must be at most "
                f"{DOWN / largest:.6g}, the inverse of the largest sum of conductances at a vertex, {largest:.6g}; "
                "give a smaller --time-step, or none"
            )
        return self.time_step


class Diffusion(Program):
    """The last phase of heat: a step of time in each iteration."""

    temperature = Field(np.float64)
    conductance = Field(np.float64, constant=True)
    combine = "sum"
    along = "both"
    everywhere = True
    accumulator = "temperature"
    by_ranges = True
    non_negative_weights = True
    extendable = ("max_iter", "tol")

    def __init__(self, whole: Heat, time_step: float) -> None:
        self.time_step, self.max_iter, self.tol = float(time_step), whole.max_iter, whole.tol
        self.needs_weights = whole.needs_weights
        self.steps = 0

    def send(temperature):  # type: ignore[no-untyped-def]
        """What an edge of conductance 1 brings."""
        return temperature

    def edge(sent, weight):  # type: ignore[no-untyped-def]
        """Travels along an edge, either way."""
        return sent * weight

    def vertex(sent, conductance, incoming, time_step):  # type: ignore[no-untyped-def]
        """The temperature after a step; a fixed one stays."""
        if conductance < 0:
            return sent
        return (1 - time_step * conductance) * sent + time_step * incoming

    @Global(np.float64, combine="max")
    def change(temperature, sent):  # type: ignore[no-untyped-def]
        """The largest change in a step."""
        return abs(temperature - sent)

    def done(self, iteration: int, totals: dict[str, float]) -> bool:
        """Whether no temperature changed by the tolerance."""
        self.steps = iteration + 1
        return bool(totals["change"] < self.tol)
