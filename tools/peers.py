"""Owns the systems that Penstock is compared with: scipy, networkit and igraph, where installed.

Each is used as its own documentation would have it: its own reader, its own algorithms, all its
threads. Refuses to time: `compare` does, the same way for all. scipy has neither a reader of edge
lists nor a PageRank: numpy reads, and its matrix-vector product sweeps. scipy adds parallel edges up
and networkit drops them, so the edges given must be distinct.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

Values = NDArray[Any]
DAMPING = 0.85
SWEEPS = 10
TOLERANCE = 1e-6

BFS, SSSP, WCC = "BFS", "SSSP", "WCC"
RANK_SWEEPS, RANK = f"PageRank {SWEEPS} sweeps", f"PageRank to {TOLERANCE:g}"
TASKS = (BFS, SSSP, RANK_SWEEPS, RANK, WCC)


@dataclass(frozen=True)
class Task:
    """One algorithm of one system: ``run`` is timed; ``answer`` turns its result into an array.

    Answers: levels and distances as float64 with infinity where not reached, ranks as float64,
    components as any labels; one value per vertex.
    """

    run: Callable[[], Any]
    answer: Callable[[Any], Values]


class System(Protocol):
    """A system to compare: reads text, then offers tasks."""

    name: str

    def load(self, text: Path, vertices: int) -> None:
        """Read an edge list until algorithms can run (timed)."""

    def load_weights(self, text: Path) -> None:
        """Read the same edges with a third column of weights, for SSSP (not timed)."""

    def tasks(self, source: int) -> dict[str, Task]:
        """What this system has, by the names in TASKS."""

    def close(self) -> None:
        """Free everything."""


def package(name: str) -> Any:
    """A package that Penstock does not need; untyped, as far as we are concerned."""
    return importlib.import_module(name)


class ProgramSystem(Protocol):
    """A system that answers what Penstock's programs answer, on the one graph that it was made of."""

    name: str

    def programs(self) -> dict[str, Task]:
        """What this system has, by the names of Penstock's programs."""

    def close(self) -> None:
        """Free everything."""


class Peer:
    """A system in this process: what it holds are its attributes."""

    def close(self) -> None:
        """Forget them."""
        vars(self).clear()


class Scipy(Peer):
    """scipy.sparse.csgraph."""

    name = "scipy"
    package: ClassVar[str] = "scipy"

    def load(self, text: Path, vertices: int) -> None:
        """numpy reads, scipy sorts."""
        sparse = package("scipy.sparse")

        self._vertices = vertices
        ends = np.fromfile(text, np.int64, sep=" ").reshape(-1, 2)
        ones = np.ones(len(ends))
        shape = (vertices, vertices)
        self._out = sparse.coo_array((ones, (ends[:, 0], ends[:, 1])), shape=shape).tocsr()
        self._into = self._out.T.tocsr()

    def load_weights(self, text: Path) -> None:
        """As `load`."""
        sparse = package("scipy.sparse")

        rows = np.fromfile(text, np.int64, sep=" ").reshape(-1, 3)
        places = (rows[:, 0], rows[:, 1])
        shape = (self._vertices, self._vertices)
        self._weighted = sparse.coo_array((rows[:, 2].astype(float), places), shape=shape).tocsr()

    def tasks(self, source: int) -> dict[str, Task]:
        """All of them."""
        csgraph = package("scipy.sparse.csgraph")

        return {
            BFS: Task(
                lambda: csgraph.breadth_first_order(self._out, source),
                lambda found: self._levels(source, *found),
            ),
            SSSP: Task(lambda: csgraph.dijkstra(self._weighted, indices=source), np.asarray),
            RANK_SWEEPS: Task(lambda: self._ranks(0, SWEEPS), np.asarray),
            RANK: Task(lambda: self._ranks(TOLERANCE, 1000), np.asarray),
            WCC: Task(
                lambda: csgraph.connected_components(self._out, connection="weak"),
                lambda found: np.asarray(found[1]),
            ),
        }

    def _ranks(self, tolerance: float, most: int) -> Values:
        degrees = np.asarray(self._out.sum(axis=1)).ravel()
        dangling = degrees == 0
        shares = np.divide(DAMPING, degrees, out=np.zeros_like(degrees), where=~dangling)
        rank = np.full(self._vertices, 1 / self._vertices)
        for _ in range(most):
            given = (1 - DAMPING + DAMPING * rank[dangling].sum()) / self._vertices
            new = self._into @ (rank * shares) + given
            change = np.abs(new - rank).sum()
            rank = new
            if change < tolerance:
                break
        return rank

    def _levels(self, source: int, order: Values, parents: Values) -> Values:
        """Levels from scipy's order and parents, a level at a time."""
        levels = np.full(self._vertices, np.inf)
        levels[source] = 0
        rest = order[1:]
        while len(rest):
            known = levels[parents[rest]]
            done = np.isfinite(known)
            levels[rest[done]] = known[done] + 1
            rest = rest[~done]
        return levels


class Networkit(Peer):
    """networkit, with all its OpenMP threads."""

    name = "networkit"
    package: ClassVar[str] = "networkit"

    def load(self, text: Path, vertices: int) -> None:
        """networkit's own reader."""
        self._graph = self._read(text, vertices)

    def load_weights(self, text: Path) -> None:
        """networkit's own reader."""
        self._weighted = self._read(text, self._graph.numberOfNodes())

    def _read(self, text: Path, vertices: int) -> Any:
        nk = package("networkit")

        graph = nk.graphio.EdgeListReader("\t", 0, directed=True).read(str(text))
        graph.addNodes(max(0, vertices - graph.numberOfNodes()))
        return graph

    def tasks(self, source: int) -> dict[str, Task]:
        """All of them."""
        nk = package("networkit")

        def ranks(tolerance: float, most: int) -> Any:
            spread = nk.centrality.SinkHandling.DistributeSinks
            run = nk.centrality.PageRank(self._graph, DAMPING, tolerance, False, spread)
            run.norm = nk.centrality.Norm.L1_NORM
            run.maxIterations = most
            return run.run()

        def distances(run: Any) -> Values:
            found = np.array(run.getDistances(asarray=True), dtype=float)
            found[found > 1e300] = np.inf
            return found

        return {
            BFS: Task(lambda: nk.distance.BFS(self._graph, source, False).run(), distances),
            SSSP: Task(lambda: nk.distance.Dijkstra(self._weighted, source, False).run(), distances),
            RANK_SWEEPS: Task(lambda: ranks(0, SWEEPS), lambda run: np.array(run.scores())),
            RANK: Task(lambda: ranks(TOLERANCE, 1000), lambda run: np.array(run.scores())),
            WCC: Task(
                lambda: nk.components.WeaklyConnectedComponents(self._graph).run(),
                lambda run: np.array(run.getPartition().getVector()),
            ),
        }


class Igraph(Peer):
    """igraph; its PageRank (PRPACK) solves to its own precision and cannot stop after sweeps."""

    name = "igraph"
    package: ClassVar[str] = "igraph"

    def load(self, text: Path, vertices: int) -> None:
        """igraph's own reader."""
        self._graph = package("igraph").Graph.Read_Edgelist(str(text), directed=True)
        self._graph.add_vertices(max(0, vertices - self._graph.vcount()))

    def load_weights(self, text: Path) -> None:
        """Weights in the order of the edges."""
        self._weights = np.fromfile(text, np.int64, sep=" ").reshape(-1, 3)[:, 2].tolist()

    def tasks(self, source: int) -> dict[str, Task]:
        """All but sweeps."""

        def first(rows: Any) -> Values:
            return np.array(rows[0], dtype=float)

        return {
            BFS: Task(lambda: self._graph.distances(source, mode="out"), first),
            SSSP: Task(lambda: self._graph.distances(source, weights=self._weights, mode="out"), first),
            RANK: Task(lambda: self._graph.pagerank(damping=DAMPING), np.array),
            WCC: Task(
                lambda: self._graph.connected_components(mode="weak"),
                lambda found: np.array(found.membership),
            ),
        }


PEERS = (Scipy, Networkit, Igraph)


def installed() -> list[System]:
    """One of each system that can be imported."""
    return [peer() for peer in PEERS if importlib.util.find_spec(peer.package) is not None]
