"""Pushes over a link: read in place at once where a plan would not pay, else counted and planned."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from penstock.engine import Session
from penstock.engine.kernels.host.launch import HostKernels
from penstock.engine.programs.sssp import SSSP
from penstock.engine.resources import link_stream
from penstock.engine.resources.link_stream import LinkStream
from penstock.engine.state.result import Result
from penstock.engine.state.state import Frontier
from support.graphs import in_memory, skewed
from support.oracles import EdgeList

SOURCES, TARGETS = skewed(4_000, 60_000, 5)
EDGES = EdgeList(4_000, SOURCES, TARGETS, np.arange(len(SOURCES)) % 60 + 1, False)
OPTIONS: dict[str, Any] = {"device": "emulated", "device_edge_memory": 200_000, "partition_bytes": 1 << 20}


def run(monkeypatch: pytest.MonkeyPatch) -> tuple[Result, list[int], list[Frontier]]:
    """The result, the edges of frontiers that were counted, and of those that were asked about and listed."""
    counted: list[int] = []
    asked: list[Frontier] = []
    count, slight = HostKernels.count_active, LinkStream.slight

    def counts(self: HostKernels, *given: Any) -> None:
        counted.append(1)
        count(self, *given)

    def asks(self: LinkStream, frontier: Frontier) -> bool:
        asked.append(frontier)
        return slight(self, frontier)

    monkeypatch.setattr(HostKernels, "count_active", counts)
    monkeypatch.setattr(LinkStream, "slight", asks)
    with Session(in_memory(EDGES), **OPTIONS) as session:
        result = session.run(SSSP(int(SOURCES[0])))
    return result, counted, asked


def test_a_plan_that_would_not_pay_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    result, counted, asked = run(monkeypatch)
    assert len(counted) == len({id(one) for one in asked if not (one.listed or one.everything)})
    at_once = [record.tasks for record in result.records if record.tasks and record.tasks[0].rows]
    assert at_once
    assert all(task.bytes_link == 128 * task.lines for tasks in at_once for task in tasks if task.route == "zero-copy")


def test_one_that_pays_is_made_and_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run(monkeypatch)[0]
    monkeypatch.setattr(link_stream, "pays", lambda saved, tasks=1, *, counted: True)
    planned, counted, _ = run(monkeypatch)
    assert counted
    assert np.array_equal(planned.fields["distance"], expected.fields["distance"])


def test_it_is_asked_once_of_a_frontier(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[float] = []
    monkeypatch.setattr(link_stream, "pays", lambda saved, tasks=1, *, counted: calls.append(saved) is not None)
    asked = run(monkeypatch)[2]
    listed = {id(one): one for one in asked if one.listed}
    assert listed
    assert len(calls) <= len(asked)
