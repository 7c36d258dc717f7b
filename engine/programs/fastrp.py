"""FastRP: embeddings of vertices by random projections, one sweep over the edges for each step of a random walk.

Chen, Sultan, Tian, Chen, Skiena, "Fast and Accurate Network Embeddings via Very Sparse Random Projection", CIKM 2019,
in the form of Neo4j's library: a vertex begins with numbers that are 0 (two thirds), and else the square root of 3 or
its opposite; in each step it takes the mean of its neighbors' vectors, by weights. The embedding is the sum of these
means, each scaled to length 1 and times the weight of its step. First numbers are hashes of the original ids, so that a
graph in another order, or with other edges, has comparable embeddings.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.parameters import Count, Finite, PositiveCount, check_value
from penstock.engine.program.program import Field, Program, Start, like
from penstock.engine.program.program_description import class_maker
from penstock.engine.program.shuffle import each_hashed, hashed_again
from penstock.engine.programs.weights import counts_by_weight
from penstock.storage.base.errors import InputError
from penstock.storage.format.graph import Graph

SIXTH = np.uint64((1 << 64) // 6)
FILLED = 1 << 18
"""Numbers that are written at once."""


class FastRP(Program):
    """`embedding` (float32, `dimension` numbers); 0 where a vertex has no edges. Direction of edges is ignored.

    steps: the weight of each step's mean, the first of vertices one edge away. seed: of the hashes. weight: whether
    edges count by their weights where the graph has some (False or None: each counts 1). A number takes 12 bytes a
    vertex while it runs.
    """

    embedding = Field(np.float32, shape=(1,))
    part = Field(np.float32, shape=(1,), output=False)
    combine = "sum"
    message_shape = (2,)
    along = "both"
    everywhere = True
    tolerance = 1e-4
    non_negative_weights = True
    by_ranges = True

    def __init__(
        self,
        dimension: PositiveCount = 64,
        steps: tuple[float, ...] = (0.0, 1.0, 1.0),
        seed: Count = 0,
        weight: bool | str | None = True,
    ) -> None:
        if not isinstance(steps, list | tuple) or not steps:
            raise InputError(f"FastRP: steps is {steps!r}; give the weight of each step, as in [0, 1, 1]")
        for one in steps:
            check_value("FastRP: steps", one, Finite)
        self.dimension, self.steps, self.seed = dimension, list(steps), seed
        self.needs_weights, self.max_iter = counts_by_weight(weight), len(steps)
        self.share = 0.0

    def form(self, graph: Graph, mode: str) -> Program:
        """With vectors of so many numbers."""
        made: Program = like(self, _of_dimension(self.dimension))
        return made

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Random numbers, most of them 0."""
        self.share = float(self.steps[0])
        part, step = state["part"], max(1, FILLED // self.dimension)

        def fill(first: int, hashes: NDArray[np.uint64]) -> None:
            for at in range(0, len(hashes), step):
                some = hashes[at : at + step]
                drawn = np.empty((len(some), self.dimension), np.float32)
                for k in range(self.dimension):
                    sixth = hashed_again(some, k + 1) // SIXTH
                    drawn[:, k] = np.sqrt(3.0) * ((sixth == 0).astype(np.int8) - (sixth == 1))
                part[first + at : first + at + len(some)] = drawn

        each_hashed(graph, self.seed, fill)
        return Start(everything=True)

    def edge(message, part, weight):  # type: ignore[no-untyped-def]
        """Along an edge, either way: the vector times the weight, and the weight."""
        last = len(part)
        for k in range(last):
            message[k] = part[k] * weight
        message[last] = weight

    def vertex(embedding, part, incoming, share):  # type: ignore[no-untyped-def]
        """The mean of the neighbors, and the sum with it."""
        total, square = incoming[len(part)], 0.0
        for k in range(len(part)):
            part[k] = incoming[k] / total if total > 0 else 0.0
            square += part[k] * part[k]
        scale = share / square**0.5 if square > 0 else 0.0
        for k in range(len(part)):
            embedding[k] += scale * part[k]
        return embedding, part

    def done(self, iteration: int, totals: dict[str, float]) -> bool:
        """Whether that was the last step; else the weight of the next one."""
        if iteration + 1 >= len(self.steps):
            return True
        self.share = float(self.steps[iteration + 1])
        return False


@class_maker
def _of_dimension(dimension: int) -> type[FastRP]:
    """The program with vectors of so many numbers."""
    fields = {name: Field(np.float32, shape=(dimension,), output=name == "embedding") for name in ("embedding", "part")}
    return type(FastRP.__name__, (FastRP,), {**fields, "message_shape": (dimension + 1,)})
