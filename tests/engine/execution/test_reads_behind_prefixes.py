"""Pulls of which little is expected behind row prefixes: read in place at once, without counting; else counted."""

from __future__ import annotations

from typing import Any

import pytest
from penstock.engine import Session
from penstock.engine.kernels.host.launch import HostKernels
from penstock.engine.programs.bfs import BFS
from penstock.engine.resources import link_stream
from penstock.engine.state.records import IterationRecord
from support.graphs import in_memory, skewed
from support.oracles import EdgeList, check_bfs

OPTIONS: dict[str, Any] = {"device": "emulated", "device_edge_memory": 400_000, "partition_bytes": 1 << 20}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows with every count of what a pull wants."""
    calls: list[str] = []
    count_cond = HostKernels.count_cond

    def count(self: HostKernels, *given: Any, **named: Any) -> None:
        calls.append("cond")
        count_cond(self, *given, **named)

    monkeypatch.setattr(HostKernels, "count_cond", count)
    return calls


def pulls() -> list[IterationRecord]:
    """Those of a search that pulls, whose answer is checked."""
    edges = EdgeList(20_000, *skewed(20_000, 300_000, 5), None, False)
    with Session(in_memory(edges), **OPTIONS) as session:
        result = session.run(BFS(int(edges.sources[0])))
    check_bfs(edges, int(edges.sources[0]), result.fields["level"], result.fields["parent"])
    return [record for record in result.records if record.direction == "pull"]


def test_little_is_read_at_once(counted: list[str]) -> None:
    found = pulls()
    assert found
    assert not counted
    assert all([task.route for task in record.tasks] == ["zero-copy"] for record in found)
    assert all(task.predicted is None for record in found for task in record.tasks)


def test_much_is_counted(counted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_stream, "pays", lambda saved, tasks=1, *, counted: True)
    assert len(pulls()) == len(counted) > 0


def test_what_was_expected_badly_is_counted_from_then_on(counted: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU counts the lines that its pulls read."""
    monkeypatch.setattr(link_stream, "SOME_LINES", -1)
    monkeypatch.setattr(link_stream, "MISSED", 0)
    assert len(pulls()) == len(counted) + 1 > 1
