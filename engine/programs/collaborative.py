"""Collaborative filtering: ratings explained by a short vector per user and per item.

Gradient descent on all ratings at once, Lux's CF (Jia et al., PVLDB 2017, eq. 2-5), on a bipartite graph (edges lead
from users to items, or are undirected) whose weights are the ratings: predicted(u, i) = mean + bias(u) + bias(i) +
vector(u) . vector(i), minimizing the squared errors plus `regularization` times the squares of all vectors and biases
(Koren, Bell, Volinsky, IEEE Computer 2009, for the biases). Lux's one step for all is too short for rarely rated items
and too long for popular ones; here each number's step is divided by its own curvature, and steps keep some of their
momentum (Polyak 1964).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.parameters import Count, NonNegative, Positive, PositiveCount, Share
from penstock.engine.program.program import Field, Global, Program, Start, like
from penstock.engine.program.program_description import class_maker
from penstock.engine.program.vertex_ids import in_original_order, original_order, vertices_of
from penstock.storage.base.errors import InputError
from penstock.storage.format.graph import Graph

if TYPE_CHECKING:
    from penstock.engine.state.result import Result

DRAWN = 1 << 13
"""Vertices whose first vectors are drawn together."""


class CollaborativeFiltering(Program):
    """`vector` (float64, rank + 1 numbers): the factors, and last the bias. `rmse`: a list of errors, epoch by epoch,
    each of the vectors with which the epoch began.

    rank: how many factors. max_iter: epochs. regularization, rate, momentum: see the file. seed: of the first vectors,
    normal numbers of deviation `spread` in the order of the original ids. tol: stop when an epoch lowers the error by
    less.
    """

    vector = Field(np.float64, shape=(9,))
    velocity = Field(np.float64, shape=(9,), output=False)
    squared = Field(np.float64, output=False)
    combine = "sum"
    message_shape = (19,)
    along = "both"
    everywhere = True
    needs_weights = True
    tolerance = 1e-6
    measures = ("rmse",)
    by_ranges = True

    def __init__(
        self,
        rank: PositiveCount = 8,
        max_iter: Count = 100,
        regularization: Positive = 12.0,
        rate: NonNegative = 0.2,
        momentum: Share = 0.8,
        tol: NonNegative = 0.0,
        seed: Count = 0,
        spread: NonNegative = 0.1,
    ) -> None:
        self.rank, self.max_iter = rank, max_iter
        self.regularization, self.rate, self.momentum = regularization, rate, momentum
        self.tol, self.seed, self.spread = tol, seed, spread
        self.mean = 0.0
        self.ends = 0
        self.rmse: list[float] = []

    def form(self, graph: Graph, mode: str) -> Program:
        """With vectors of the wanted rank. Raises InputError for graphs that are no ratings."""
        if graph.weight_dtype is None:
            raise InputError(
                "collaborative filtering needs ratings, that is a graph with weights; convert a table of users, items "
                "and ratings with --bipartite --weights --direction both"
            )
        return like(self, _of_rank(self.rank))

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Small random factors, no bias."""
        assert graph.weight_range is not None
        self.mean, self.ends, self.rmse = graph.weight_range[1], graph.edges * (2 if graph.directed else 1), []
        random = np.random.default_rng(self.seed)
        order = None if in_original_order(graph) else original_order(graph)
        for first in range(0, graph.vertices, DRAWN):
            last = min(first + DRAWN, graph.vertices)
            place = slice(first, last) if order is None else order[first:last]
            drawn = np.zeros((last - first, self.rank + 1))
            drawn[:, : self.rank] = random.normal(0.0, self.spread, (last - first, self.rank))
            state["vector"][place] = drawn
        return Start(everything=True)

    def edge(message, vector, target_vector, weight, mean):  # type: ignore[no-untyped-def]
        """Along a rating, either way: the error times the factors, the factors' squares, the error, its square, 1."""
        last = len(vector) - 1
        error = weight - mean - vector[last] - target_vector[last]
        for k in range(last):
            error -= vector[k] * target_vector[k]
        for k in range(last):
            message[k] = error * vector[k]
            message[last + k] = vector[k] * vector[k]
        message[2 * last] = error
        message[2 * last + 1] = error * error
        message[2 * last + 2] = 1.0

    def vertex(vector, velocity, incoming, rate, momentum, regularization):  # type: ignore[no-untyped-def]
        """A step down the gradient, each number at its own pace."""
        last = len(vector) - 1
        for k in range(last + 1):
            gradient, curvature = incoming[2 * last], incoming[2 * last + 2]
            if k < last:
                gradient, curvature = incoming[k], incoming[last + k]
            step = rate * (gradient - regularization * vector[k]) / (curvature + regularization)
            velocity[k] = momentum * velocity[k] + step
            vector[k] += velocity[k]
        return vector, velocity, incoming[2 * last + 1]

    @Global(np.float64)
    def squared_error(squared):  # type: ignore[no-untyped-def]
        """Squared errors; every rating is met from both its ends."""
        return squared

    def done(self, iteration: int, totals: dict[str, float]) -> bool:
        """Note the epoch's error; whether it hardly fell, or with `tol` 0, whether this was the last epoch."""
        self.rmse.append(float(np.sqrt(totals["squared_error"] / max(1, self.ends))))
        if self.tol == 0:
            return iteration + 1 >= self.max_iter
        return len(self.rmse) > 1 and self.rmse[-2] - self.rmse[-1] < self.tol


@class_maker
def _of_rank(rank: int) -> type[CollaborativeFiltering]:
    """The program with vectors of `rank` factors and a bias."""
    fields = {name: Field(np.float64, shape=(rank + 1,), output=name == "vector") for name in ("vector", "velocity")}
    body = {**fields, "squared": CollaborativeFiltering.squared, "message_shape": (2 * rank + 3,)}
    return type("CollaborativeFiltering", (CollaborativeFiltering,), body)


def predicted(result: Result, pairs: NDArray[Any]) -> NDArray[np.float64]:
    """Predicted ratings, float64 (n,), for pairs of original ids, (n, 2), user and item.

    Raises InputError for strangers. In a bipartite graph the first of a pair is always looked up among the users.
    """
    vector, program = result.fields["vector"], result.program
    assert isinstance(program, CollaborativeFiltering)
    ends = []
    for side, ids in zip(("source", "target"), np.asarray(pairs).T, strict=True):
        prefix = "" if result.graph.left is None else f"{side}:"
        names = [f"{prefix}{one}" if prefix else one for one in ids.tolist()]
        ends.append(vector[vertices_of(result.graph, names)])
    one, other = ends
    found: NDArray[np.float64] = np.einsum("ij,ij->i", one[:, :-1], other[:, :-1]) + one[:, -1] + other[:, -1]
    return found + program.mean
