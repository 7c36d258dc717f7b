"""The comparison finds wrong answers, takes medians, and its peers answer as a plain search does."""

from collections import deque
from pathlib import Path

import numpy as np
import pytest
from penstock.storage.ingest.synthetic import rmat
from penstock.tools import peers
from penstock.tools.compare import Material, agree, compare, first_members, lines, prepare
from penstock.tools.peers import BFS, RANK, RANK_SWEEPS, SSSP, TASKS, WCC, Task

INF = np.inf


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Material:
    return prepare(rmat(8, 6, 2, weights=(1, 63)), tmp_path_factory.mktemp("compare"))


class Slow:
    """The definition of right: dictionaries and queues."""

    name = "slow"

    def load(self, text: Path, vertices: int) -> None:
        self.vertices = vertices
        self.edges = [tuple(map(int, line.split())) for line in text.read_text().splitlines()]

    def load_weights(self, text: Path) -> None:
        self.weighted = [tuple(map(int, line.split())) for line in text.read_text().splitlines()]

    def tasks(self, source: int) -> dict[str, Task]:
        return {
            BFS: Task(lambda: self.levels(source), np.asarray),
            SSSP: Task(lambda: self.distances(source), np.asarray),
            RANK_SWEEPS: Task(lambda: self.ranks(10), np.asarray),
            RANK: Task(lambda: self.ranks(200), np.asarray),
            WCC: Task(self.components, np.asarray),
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
    """One answer off in each task."""

    name = "wrong"

    def tasks(self, source: int) -> dict[str, Task]:
        def spoil(task: Task) -> Task:
            def answer(result: object) -> np.ndarray:
                values = np.array(task.answer(result), dtype=float)
                values[source] += 1 if values[source] != 0 else 3
                return values

            return Task(task.run, answer)

        return {name: spoil(task) for name, task in super().tasks(source).items()}


def test_the_material_is_the_graph_without_parallel_edges(material: Material) -> None:
    rows = [tuple(map(int, line.split())) for line in material.weighted_text.read_text().splitlines()]
    made = rmat(8, 6, 2, weights=(1, 63)).batch(0)
    assert made.weights is not None
    first: dict[tuple[int, int], int] = {}
    for a, b, w in zip(made.sources, made.targets, made.weights, strict=True):
        first.setdefault((int(a), int(b)), int(w))
    assert rows == [(a, b, w) for (a, b), w in first.items()]
    assert material.edges == len(rows) < 1536
    assert [row[:2] for row in rows] == [tuple(map(int, x.split())) for x in material.text.read_text().splitlines()]


@pytest.mark.parametrize("peer", peers.PEERS, ids=lambda peer: peer.name)
def test_peers_answer_as_the_definition_does(peer: type, material: Material) -> None:
    pytest.importorskip(peer.package)
    found = compare([Slow(), peer()], material, repeat=1)
    assert found.wrong == set()
    assert {BFS, SSSP, RANK, WCC} <= {task for task in TASKS if peer.name in found.seconds[task]}


def test_wrong_answers_are_shown_as_wrong(material: Material) -> None:
    found = compare([Slow(), Wrong()], material, repeat=1)
    assert found.wrong == {(task, "wrong") for task in TASKS}
    assert sum("wrong" in line for line in lines(found, ["slow", "wrong"])) == 1 + len(TASKS)


def test_the_table_has_ratios_of_the_best_peer() -> None:
    found = compare([], Material(Path(), Path(), 0, 0, 0), 1)
    for system, took in (("penstock", 2.0), ("a", 8.0), ("b", 4.0)):
        found.note(BFS, system, took)
    shown = lines(found, ["penstock", "a", "b"])
    row = next(line for line in shown if line.startswith(BFS))
    assert row.split() == ["BFS", "2.000", "8.000", "4.000", "2.00", "x"]
    assert next(line for line in shown if line.startswith(WCC)).split() == [WCC, "-", "-", "-", "-"]


def test_components_are_compared_as_partitions() -> None:
    assert agree(WCC, np.array([0, 0, 2, 0]), np.array([7, 7, 1, 7]))
    assert not agree(WCC, np.array([0, 0, 2, 0]), np.array([7, 7, 1, 1]))
    assert first_members(np.array([9, 3, 9])).tolist() == [0, 1, 0]


def test_ranks_may_differ_by_the_tolerance_only() -> None:
    mine = np.full(1000, 1e-3)
    assert agree(RANK, mine, mine + 1e-9)
    other = mine.copy()
    other[:500] += 1e-6
    assert not agree(RANK, mine, other)
    assert not agree(BFS, np.array([0.0, INF]), np.array([0.0, 1.0]))
    assert not agree(BFS, np.array([0.0]), np.array([0.0, 1.0]))
