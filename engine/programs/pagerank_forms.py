"""The forms of PageRank: what runs for a graph, a mode and parameters (`pagerank.py` chooses).

Two ways to the answer. Sweeps (power iteration): every vertex, every iteration, pulled where in-edges are stored.
Residual push (Δ-PageRank; Andersen, Chung, Lang, FOCS 2006): only vertices with enough unsent rank act, asynchronous in
spirit. The residual form solves the system without dangling mass and scales the sum to 1 at the end, which is the same
thing when dangling vertices spread by the teleport vector.

Each in two kinds. Unweighted, an edge carries 1 / out-degree of its source's rank; weighted, its weight / the sum of
its source's out-weights (`outgoing`, which a phase before adds up). Parallel edges count each. A vertex is dangling if
that degree or that sum is 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.earlier_answer import ANSWER_BYTES, Answer, EarlierAnswer
from penstock.engine.program.parameters import Count, NonNegative, Share
from penstock.engine.program.program import Field, Global, Program, Start, like
from penstock.engine.program.program_description import variant
from penstock.engine.program.vertex_ids import vertices_of
from penstock.engine.program.vertex_ranges import over_ranges
from penstock.engine.programs.weights import counts_by_weight, damping_of
from penstock.storage.base.errors import InputError, brief
from penstock.storage.format.graph import Graph

Vector = NDArray[np.float64]
Given = Mapping[Any, float] | Vector | None
"""Original id -> weight; or an array (vertices,) of weights in the order of internal ids; None: the same for all."""


def fill_shares(graph: Graph, given: Given, name: str, vector: Vector) -> None:
    """Set `vector`, float64 (vertices,), to the shares that weights give; `name`: the parameter that they come from.

    Raises InputError for weights that are negative, not finite or all zero, and for what is none of these.
    """
    vector[:] = 0.0 if given is not None else 1 / max(1, graph.vertices)
    if given is None:
        return
    if isinstance(given, np.ndarray) and given.shape == vector.shape:
        vector += given
        for at in over_ranges(lambda first, last: _first_wrong(vector, first, last), len(vector)):
            if at is not None:
                raise _refused(f"{name}[{at}]", given[at])
    elif isinstance(given, Mapping):
        for vertex, weight in given.items():
            if not (isinstance(weight, int | float | np.number) and weight >= 0 and np.isfinite(weight)):
                raise _refused(f"{name} of vertex {vertex}", weight)
        places, inverse = np.unique(vertices_of(graph, list(given)), return_inverse=True)
        vector[places] = np.bincount(inverse, list(given.values()))
    else:
        raise InputError(f"{name} {brief(repr(given))} is no mapping; write {{id: weight}}, as networkx has it")
    with np.errstate(over="ignore"):
        total = float(vector.sum())
    if total == 0:
        raise InputError(f"{name} has no positive weight: give at least one vertex a weight above 0")
    if not np.isfinite(total):
        raise InputError(f"the weights of {name} add up to {total}; give smaller ones")
    vector /= total


def _first_wrong(vector: Vector, first: int, last: int) -> int | None:
    """The first vertex of a range whose weight is none."""
    part = vector[first:last]
    wrong = np.flatnonzero(~(np.isfinite(part) & (part >= 0)))
    return first + int(wrong[0]) if len(wrong) else None


def _refused(what: str, weight: Any) -> InputError:
    return InputError(f"{what} is {weight}; it must be a number of at least 0")


Form = TypeVar("Form", bound="Ranking")


class Ranking(Program):
    """What all forms have: their parameters (see `PageRank`)."""

    tolerance = 1e-9
    single: ClassVar[bool] = True
    extendable: ClassVar[tuple[str, ...]] = ("max_iter", "tol")
    earlier: Answer = None

    def __init__(
        self,
        damping: Share = 0.85,
        tol: NonNegative = 1e-6,
        max_iter: Count = 100,
        personalization: Given = None,
        *,
        alpha: Share | None = None,
        weight: bool | str | None = True,
        dangling: Given = None,
        nstart: Given = None,
        earlier: Answer = None,
    ) -> None:
        self.damping = damping_of(damping, alpha, usual=0.85)
        self.tol = tol
        self.max_iter = max_iter
        self.personalization = personalization
        self.needs_weights = counts_by_weight(weight)
        self.lost_to, self.nstart = dangling, nstart
        if earlier is not None:
            self.earlier, self.working_bytes = str(earlier), ANSWER_BYTES + 8
        if nstart is not None or earlier is not None:
            self.starts_anywhere = False
        self.base_rank = 0.0
        self.least = 0.0

    def like(self, form: type[Form]) -> Form:
        """Another form with the same parameters, and whatever else was set on this one."""
        return like(self, form)


class Sweeps(Ranking):
    """Power iteration from equal ranks."""

    rank = Field(np.float64)
    combine = "sum"
    everywhere = True
    accumulator = "rank"
    starts_anywhere = True
    by_ranges = True

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Every vertex has the same rank, or that of `nstart`."""
        self.base_rank = (1 - self.damping) / max(1, graph.vertices)
        if self.earlier is not None:
            ranks = np.full(graph.vertices, 1 / max(1, graph.vertices))
            EarlierAnswer(self, graph, self.earlier, "rank").fill(ranks)
            fill_shares(graph, ranks, "earlier", state["rank"])
        elif self.nstart is None:
            state["rank"][:] = 1 / max(1, graph.vertices)
        else:
            fill_shares(graph, self.nstart, "nstart", state["rank"])
        return Start(everything=True)

    def send(rank, degree):  # type: ignore[no-untyped-def]
        """What a vertex gives each of its out-neighbors, before damping; without any its rank, for `change`."""
        return rank / degree if degree > 0 else rank

    def edge(sent):  # type: ignore[no-untyped-def]
        """Travels along an edge, unchanged."""
        return sent

    def vertex(incoming, dangling, base_rank, damping, vertices):  # type: ignore[no-untyped-def]
        """The new rank."""
        return base_rank + damping * (incoming + dangling / vertices)

    @Global(np.float64)
    def dangling(rank, degree):  # type: ignore[no-untyped-def]
        """Rank of the vertices without out-edges."""
        return rank if degree == 0 else 0.0

    @Global(np.float64)
    def change(rank, sent, degree):  # type: ignore[no-untyped-def]
        """L1 change of a sweep."""
        return abs(rank - (sent * degree if degree > 0 else sent))

    def done(self, iteration: int, totals: dict[str, float]) -> bool:
        """Whether the last sweep changed little enough."""
        return totals["change"] < self.tol


class PersonalizedPageRank(Sweeps):
    """Sweeps with a teleport vector of the user's."""

    starts_anywhere = False
    by_ranges = True
    teleport = Field(np.float64, constant=True, output=False)

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Every vertex has the same rank; the teleport vector is set."""
        fill_shares(graph, self.personalization, "personalization", state["teleport"])
        return super().start(graph, state)

    def vertex(incoming, teleport, dangling, damping):  # type: ignore[no-untyped-def]
        """The new rank."""
        return (1 - damping + damping * dangling) * teleport + damping * incoming


class DanglingPageRank(PersonalizedPageRank):
    """Sweeps whose dangling vertices spread by a vector of their own."""

    by_ranges = True
    refuge = Field(np.float64, constant=True, output=False)

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Every vertex has the same rank; both vectors are set."""
        fill_shares(graph, self.lost_to, "dangling", state["refuge"])
        return super().start(graph, state)

    def vertex(incoming, teleport, refuge, dangling, damping):  # type: ignore[no-untyped-def]
        """The new rank."""
        return (1 - damping) * teleport + damping * (dangling * refuge + incoming)


class ResidualPageRank(Sweeps):
    """PageRank by residual push."""

    rank = Field(np.float64)
    residual = Field(np.float64, output=False)
    everywhere = False
    accumulator = ""
    order_free = True
    by_ranges = True
    dangling = None  # type: ignore[assignment]
    change = None  # type: ignore[assignment]
    tolerance = 1e-6
    extendable = ("max_iter",)
    working_bytes = 1

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Every vertex holds its own share, unsent."""
        count = max(1, graph.vertices)
        self.teleport_into(graph, state["rank"])
        state["residual"][:] = state["rank"]
        self.least = self.tol * (1 - self.damping) / count
        return Start(active=state["residual"] > self.least)

    def teleport_into(self, graph: Graph, out: NDArray[np.float64]) -> None:
        """Set `out` to what each vertex gets by teleport."""
        out[:] = (1 - self.damping) / max(1, graph.vertices)

    def send(residual, degree, damping):  # type: ignore[no-untyped-def]
        """What an active vertex gives each of its out-neighbors."""
        return damping * residual / degree if degree > 0 else 0.0

    def vertex(rank, residual, incoming, is_active):  # type: ignore[no-untyped-def]
        """New rank and what is unsent of it."""
        return rank + incoming, (incoming if is_active else residual + incoming)

    def pending(residual):  # type: ignore[no-untyped-def]
        """What waits to be sent."""
        return residual

    def active(residual, least):  # type: ignore[no-untyped-def]
        """Active while it holds enough that is unsent."""
        return residual > least

    def done(self, iteration: int, totals: dict[str, float]) -> bool:
        """Runs until no vertex is active."""
        return False

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Scale the sum to 1, which spreads the dangling vertices' rank."""
        return {"rank": scaled(state["rank"])}


class ResidualPersonalizedPageRank(ResidualPageRank):
    """Residual push with a teleport vector of the user's."""

    starts_anywhere = False

    def teleport_into(self, graph: Graph, out: NDArray[np.float64]) -> None:
        """Set `out` to what each vertex gets by teleport."""
        fill_shares(graph, self.personalization, "personalization", out)
        out *= 1 - self.damping


class WeightedSweeps(Sweeps):
    """Sweeps by weight: an edge carries its weight's share of `outgoing`."""

    outgoing = Field(np.float64, constant=True, output=False)

    def send(rank, outgoing):  # type: ignore[no-untyped-def]
        """What a vertex gives along an edge of weight 1, before damping; without any its rank, for `change`."""
        return rank / outgoing if outgoing != 0 else rank

    def edge(sent, weight):  # type: ignore[no-untyped-def]
        """Travels along an edge: its share."""
        return sent * weight

    @Global(np.float64)
    def dangling(rank, outgoing):  # type: ignore[no-untyped-def]
        """Rank of the vertices whose out-weights sum to 0."""
        return rank if outgoing == 0 else 0.0

    @Global(np.float64)
    def change(rank, sent, outgoing):  # type: ignore[no-untyped-def]
        """L1 change of a sweep."""
        return abs(rank - (sent * outgoing if outgoing != 0 else sent))


class WeightedResidualPageRank(WeightedSweeps, ResidualPageRank):
    """Residual push by weight."""

    by_ranges = True
    dangling = None  # type: ignore[assignment]
    change = None  # type: ignore[assignment]

    def send(residual, outgoing, damping):  # type: ignore[no-untyped-def]
        """What an active vertex gives along an edge of weight 1."""
        return damping * residual / outgoing if outgoing != 0 else 0.0

    def finish(self, graph: Graph, state: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Leave the ranks as they are: the program whose phase this is scales them."""
        return {"rank": state["rank"]}


class CancellingSweeps(WeightedSweeps):
    """Sweeps by weights that may be below 0: their sum may be 0 where there are edges, and then nothing is sent."""

    accumulator = ""

    def send(rank, outgoing):  # type: ignore[no-untyped-def]
        """What a vertex gives along an edge of weight 1, before damping."""
        return rank / outgoing if outgoing != 0 else 0.0

    @Global(np.float64)
    def change(rank, old_rank):  # type: ignore[no-untyped-def]
        """L1 change of a sweep."""
        return abs(rank - old_rank)


def form_of(program: Ranking, *, asynchronous: bool, weighted: bool, below_zero: bool = False) -> type[Sweeps]:
    """The form that runs with a program's parameters; below_zero: weights may be.

    Raises InputError for parameters that it does not know.
    """
    if asynchronous:
        for name, value in (("dangling", program.lost_to), ("nstart", program.nstart)):
            if value is not None:
                raise InputError(f"PageRank takes {name} in sweeps only; run it with --mode sync, or without {name}")
        kind: type[Sweeps] = ResidualPageRank if program.personalization is None else ResidualPersonalizedPageRank
        return variant(kind, WeightedResidualPageRank) if weighted else kind
    kind = Sweeps if program.personalization is None else PersonalizedPageRank
    kind = kind if program.lost_to is None else DanglingPageRank
    return variant(kind, CancellingSweeps if below_zero else WeightedSweeps) if weighted else kind


def scaled(rank: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks, divided by their sum in place."""
    total = float(rank.sum())
    if total > 0:
        rank /= total
    return rank
