"""The comparison finds wrong answers, takes medians, and its peers answer as a plain search does."""

from collections import deque
from pathlib import Path

import numpy as np
import pytest
from penstock.storage.ingest.synthetic import rmat
from penstock.tools.bench.compare import READY, Comparison, Penstock, Timing, compare_from_text, write_text
from penstock.tools.bench.peers import Igraph, Networkit, Scipy
from penstock.tools.bench.queries import FROM_TEXT, PAGERANK_SWEEPS, QUERIES, SWEPT
from penstock.tools.bench.system import Implementation, SimpleEdges, TextSystem

INF = np.inf
NO_EDGES = SimpleEdges(*(np.zeros(0, np.int64) for _ in range(3)), vertices=0, directed=True, starts=[])


def compared(systems: list[TextSystem], folder: Path) -> Comparison:
    return compare_from_text(rmat(8, 6, 2, weights=(1, 63)), folder, systems, Timing(1), lambda doing: None)


class Slow:
    """The definition of right: dictionaries and queues."""

    name = "slow"

    def read(self, text: Path, vertices: int) -> None:
        self.vertices = vertices
        self.edges = [tuple(map(int, line.split())) for line in text.read_text().splitlines()]

    def read_weights(self, text: Path) -> None:
        self.weighted = [tuple(map(int, line.split())) for line in text.read_text().splitlines()]

    def queries(self, edges: SimpleEdges) -> dict[str, Implementation]:
        source = edges.starts[0]
        return {
            "bfs": (lambda: self.levels(source), np.asarray),
            "sssp": (lambda: self.distances(source), np.asarray),
            PAGERANK_SWEEPS: (lambda: self.ranks(10), np.asarray),
            "pagerank": (lambda: self.ranks(200), np.asarray),
            "wcc": (self.components, np.asarray),
        }

    def close(self) -> None:
        del self.edges

    def levels(self, source: int) -> list[float]:
        found = [INF] * self.vertices
        found[source] = 0
        queue = deque([source])
        while queue:
            here = queue.popleft()
            for a, b in self.edges:
                if a == here and found[b] == INF:
                    found[b] = found[a] + 1
                    queue.append(b)
        return found

    def distances(self, source: int) -> list[float]:
        found = [INF] * self.vertices
        found[source] = 0
        changed = True
        while changed:
            changed = False
            for a, b, w in self.weighted:
                if found[a] + w < found[b]:
                    found[b] = found[a] + w
                    changed = True
        return found

    def ranks(self, sweeps: int) -> np.ndarray:
        degree = np.bincount([a for a, _ in self.edges], minlength=self.vertices)
        rank = np.full(self.vertices, 1 / self.vertices)
        for _ in range(sweeps):
            new = np.full(self.vertices, 0.15 + 0.85 * rank[degree == 0].sum()) / self.vertices
            for a, b in self.edges:
                new[b] += 0.85 * rank[a] / degree[a]
            rank = new
        return rank

    def components(self) -> list[int]:
        label = list(range(self.vertices))
        changed = True
        while changed:
            changed = False
            for a, b in self.edges:
                low = min(label[a], label[b])
                if label[a] != low or label[b] != low:
                    label[a] = label[b] = low
                    changed = True
        return label


class Wrong(Slow):
    """One answer off in each query."""

    name = "wrong"

    def queries(self, edges: SimpleEdges) -> dict[str, Implementation]:
        source = edges.starts[0]

        def spoil(query: Implementation) -> Implementation:
            def answer(result: object) -> np.ndarray:
                values = np.array(query[1](result), dtype=float)
                values[source] += 1 if values[source] != 0 else 3
                return values

            return query[0], answer

        return {name: spoil(query) for name, query in super().queries(edges).items()}


def test_the_text_is_the_graph_without_parallel_edges(tmp_path: Path) -> None:
    edges, text, weighted = write_text(rmat(8, 6, 2, weights=(1, 63)), tmp_path)
    rows = [tuple(map(int, line.split())) for line in weighted.read_text().splitlines()]
    made = rmat(8, 6, 2, weights=(1, 63)).batch(0)
    assert made.weights is not None
    first: dict[tuple[int, int], int] = {}
    for a, b, w in zip(made.sources, made.targets, made.weights, strict=True):
        first.setdefault((int(a), int(b)), int(w))
    assert rows == [(a, b, w) for (a, b), w in first.items()]
    assert len(edges.sources) == len(rows) < 1536
    assert [row[:2] for row in rows] == [tuple(map(int, x.split())) for x in text.read_text().splitlines()]


@pytest.mark.parametrize("system", [Penstock, Scipy, Networkit, Igraph], ids=lambda system: system.name)
def test_systems_answer_as_the_definition_does(system: type, tmp_path: Path) -> None:
    if system is not Penstock:
        pytest.importorskip(system.name)
    found = compared([Slow(), system()], tmp_path)
    assert (found.wrong, found.failed) == (set(), {})
    assert {READY, "BFS", "SSSP", "WCC"} <= {name for name, times in found.seconds.items() if system.name in times}


def test_wrong_answers_are_shown_as_wrong(tmp_path: Path) -> None:
    found = compared([Slow(), Wrong()], tmp_path)
    assert found.wrong == {(name, "wrong") for name in FROM_TEXT}
    assert sum("wrong" in line for line in found.lines(["slow", "wrong"], list(FROM_TEXT))) == 1 + len(FROM_TEXT)


def test_the_table_has_ratios_of_the_best_peer() -> None:
    found = Comparison(NO_EDGES, {"BFS": {"penstock": 2.0, "a": 8.0, "b": 4.0}})
    shown = found.lines(["penstock", "a", "b"], ["BFS", "WCC"])
    assert shown[2].split() == ["BFS", "2.000", "8.000", "4.000", "2.00", "x"]
    assert shown[3].split() == ["WCC", "-", "-", "-", "-"]


def test_components_are_compared_as_partitions() -> None:
    agree = QUERIES["wcc"].agree
    assert agree(NO_EDGES, np.array([0, 0, 2, 0]), np.array([7, 7, 1, 7]))
    assert not agree(NO_EDGES, np.array([0, 0, 2, 0]), np.array([7, 7, 1, 1]))
    assert agree(NO_EDGES, np.array([9, 3, 9]), np.array([0, 1, 0]))


def test_ranks_may_differ_by_the_tolerance_only() -> None:
    mine = np.full(1000, 1e-3)
    other = mine.copy()
    other[:500] += 1e-6
    for query in (QUERIES["pagerank"], SWEPT[PAGERANK_SWEEPS]):
        assert query.agree(NO_EDGES, mine, mine + 1e-9)
        assert not query.agree(NO_EDGES, mine, other)
    found = Comparison(NO_EDGES)
    for system, levels in (("a", [0.0, INF]), ("b", [0.0, 1.0]), ("c", [0.0]), ("d", [0.0, INF])):
        found.check("bfs", system, np.array(levels), QUERIES["bfs"].agree)
    assert found.wrong == {("bfs", "b"), ("bfs", "c")}
