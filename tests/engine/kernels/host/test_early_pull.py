"""Pulls that leave rows early, and the rows that they keep: against pushes, in memory and from disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine.kernels.host import launch
from penstock.engine.kernels.host.launch import HostKernels
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.reachability import Reachability
from penstock.engine.resources import direction
from penstock.engine.session import Session
from penstock.engine.state.result import Result
from penstock.engine.state.unmatched_rows import UnmatchedRows
from support.covering import covering
from support.graphs import in_memory, on_disk, skewed
from support.oracles import EdgeList
from support.small_host import CHUNK, small_memory

GRAPHS = {
    "undirected": EdgeList(5000, *skewed(5000, 30000, 5), None, False),
    "directed": EdgeList(5000, *skewed(5000, 30000, 6), None, True),
}


def answers(result: Result) -> list[bytes]:
    return [result.fields[name].tobytes() for name in sorted(result.fields)]


def count_kept(patch: pytest.MonkeyPatch) -> list[int]:
    """How many items every pull along kept rows had."""
    found: list[int] = []
    pull = HostKernels.pull_unmatched

    def counted(kernels: HostKernels, state: Any, *arguments: Any) -> None:
        found.append(state.unmatched.used)
        pull(kernels, state, *arguments)

    patch.setattr(HostKernels, "pull_unmatched", counted)
    return found


@covering("program, kind, block", [BFS, Reachability], GRAPHS, [64, 65536])
def test_kept_rows_give_the_answers_of_pushes(
    kind: str, program: Any, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where blocks of edges cut most rows, so that a vertex has several pieces."""
    monkeypatch.setattr(direction, "FEWEST", 0)
    monkeypatch.setattr(direction, "KEPT_COST", 0.0)
    monkeypatch.setattr(launch, "SMALL", 1)
    monkeypatch.setattr(launch, "SMALLEST_BLOCK", block)
    monkeypatch.setattr(launch, "LARGEST_BLOCK", block)
    kept = count_kept(monkeypatch)
    graph = in_memory(GRAPHS[kind])
    with Session(graph, direction="push") as session:
        pushed = answers(session.run(program(4000)))
    assert not kept
    with Session(graph) as session:
        assert answers(session.run(program(4000))) == pushed
    with Session(graph, direction="pull") as session:
        assert answers(session.run(program(4000))) == pushed
    assert kept


def test_without_room_for_all_the_graph_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = count_kept(monkeypatch)
    graph = in_memory(GRAPHS["undirected"])
    with Session(graph, direction="pull") as session:
        first = answers(session.run(BFS(4000)))
    assert max(kept) > 40
    kept.clear()
    little = UnmatchedRows(np.empty(40, np.uint32), np.zeros(10, np.int64))
    monkeypatch.setattr(UnmatchedRows, "with_room", lambda *_: little)
    with Session(graph, direction="pull") as session:
        assert answers(session.run(BFS(4000))) == first
    assert all(used <= 40 for used in kept)


def test_a_search_from_disk_reads_the_graph_about_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory holds a part of the edges only; after the widest frontier nothing is read."""
    kept = count_kept(monkeypatch)
    small_memory(monkeypatch, 8 * CHUNK, 3, 2)
    edges = GRAPHS["undirected"]
    with Session(in_memory(edges), direction="push") as session:
        expected = answers(session.run(BFS(4000)))
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=CHUNK)
    with Session(graph) as session:
        result = session.run(BFS(4000))
        assert answers(result) == expected
        assert kept
    assert sum(task.chunks_read for record in result.records for task in record.tasks) < 2 * graph.out.chunks
    assert [record.bytes_disk for record in result.records].count(0) == len(kept)
