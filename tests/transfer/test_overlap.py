"""A sweep takes as long as its slowest stage: while one stage is at a piece of work, the others go on.

Disk, decoding and gathering have threads of their own. Each stage is slow in turn: it does not end a piece of work
before the next one is ready, and those behind do not before it is at the next one. A pipeline that takes turns would
stand still. The link and the kernel share a clock that only they move, so that what they take together is read off it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pytest
from penstock.engine import Graph
from penstock.engine.programs.bfs import BFS
from penstock.engine.resources import memory_plan
from penstock.engine.session import Session
from penstock.storage.format.direct_io import DirectFile
from penstock.storage.format.frames import Frames
from penstock.transfer.devices import emulated
from penstock.transfer.pipeline import Pipeline
from penstock.transfer.planning.host_budget import HostBudget
from penstock.transfer.staging import gather_buffers
from penstock.transfer.values.rates import Rates
from penstock.transfer.values.task import Demand, Plan
from penstock.transfer.values.view import View
from support.fakes import SleepingClock
from support.graphs import EdgeList, on_disk

STAGES = ("disk", "decode", "gather", "kernel")
THREADED = ("disk", "decode")
PIECES, STEP = 16, 64
KEPT = PIECES // 4
PATIENCE = 10.0


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """A ring with as many edges as PIECES partitions of one chunk hold."""
    vertices = PIECES * STEP // 8
    sources = np.repeat(np.arange(vertices), 8)
    edges = EdgeList(vertices, sources, (sources + 1) % vertices, None, True)
    return on_disk(edges, tmp_path_factory.mktemp("overlap") / "ring.h5", both=False, chunk_edges=STEP)


@contextmanager
def fed(graph: Graph, patch: pytest.MonkeyPatch, kept: int = KEPT, **options: Any) -> Iterator[Pipeline]:
    """The pipeline of a device that is fed from disk through a host that keeps so many partitions (or all)."""

    def divide(config: Any, needs: Any, graph: Graph, partition_bytes: int) -> HostBudget:
        return HostBudget(STEP, 4, kept, 1, kept == PIECES, 4)

    patch.setattr(memory_plan, "divide_host_memory", divide)
    room = {"device_edge_memory": 4 * STEP * 12, "partition_bytes": 4 * STEP}
    options["tuning"] = {"residency": "none", **options.get("tuning", {})}
    with Session(graph, device="emulated", threads=1, direction="push", **room, **options) as session:
        program = BFS(0)
        yield session._equip(session._asks(program).needs).pipeline


def half(pipeline: Pipeline) -> Demand:
    """A demand for the first four of the eight rows of every partition, which fit a pack one partition at a time."""
    table = pipeline.directory("out").table
    marks = np.full(len(table), 0x0F, dtype=np.uint8).view(np.uint32)
    rows = np.full(len(table), 4)
    edges = rows * 8
    return Demand("out", rows, edges, edges // 8, edges.astype(np.float64), marks=marks)


def walk(pipeline: Pipeline, plan: Plan, demand: Demand, kernel: Callable[[View], None]) -> set[str]:
    """Bring what a plan brings and run `kernel` on every view; the routes taken."""
    for view in pipeline.arrivals(plan, demand):
        assert len(view.neighbors)
        kernel(view)
    return {record.route for record in pipeline.records}


def idle(view: View) -> None:
    """A kernel that takes no time."""


class Course:
    """Counts the work of every stage, and holds it back until the slow one has more to do; `alone`: where it had not.

    total: pieces of work of every stage; those that the host keeps come first and need no disk.
    """

    def __init__(self, slow: str, total: dict[str, int]) -> None:
        self.slow, self.total = slow, total
        self.begun: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        self.alone: list[tuple[str, int, dict[str, int]]] = []
        self._changed = threading.Condition()

    @contextmanager
    def at(self, stage: str) -> Iterator[None]:
        """Do one piece of a stage's work."""
        with self._changed:
            number = self.begun[stage]
            self.begun[stage] += 1
            self._changed.notify_all()
            if not self.alone and not self._changed.wait_for(partial(self._busy, stage, number), PATIENCE):
                self.alone.append((stage, number, dict(self.ended)))
        yield
        with self._changed:
            self.ended[stage] += 1
            self._changed.notify_all()

    def let_decode(self) -> None:
        """Wait until all that was read is at the decoder, where a thread that reads on could overtake another."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.begun["decode"] >= self.ended["disk"], PATIENCE)

    def _busy(self, stage: str, number: int) -> bool:
        """Whether the slow stage need not stand still after this piece of work.

        At the slow stage: the next piece is ready. Behind one with threads of its own: that is at the next piece.
        """
        at, slow = STAGES.index(stage), STAGES.index(self.slow)
        if at == slow:
            return all(self._reached(self.ended, before, stage, number + 2) for before in STAGES[:at])
        if at > slow and self.slow in THREADED:
            return self._reached(self.begun, self.slow, stage, number + 2)
        return True

    def _reached(self, count: Counter[str], before: str, stage: str, pieces: int) -> bool:
        """Whether an earlier stage counts so many pieces of `stage`'s, as far as there are any.

        Gathering is begun by the launching thread, which a kernel of this device holds.
        """
        skipped = max(0, self.total[stage] - self.total[before])
        late = (before, stage) == ("gather", "kernel")
        return count[before] >= min(self.total[before], pieces - late - skipped)


def watch(course: Course, patch: pytest.MonkeyPatch) -> None:
    """Let disk, decoding and gathering report to the course; only one thread reads at a time."""
    turn = threading.Lock()
    reading, decoding, gathering = DirectFile.read, Frames.decode, gather_buffers.gather_rows

    def disk(file: DirectFile, wanted: Any, buffer: memoryview) -> None:
        with turn:
            course.let_decode()
            with course.at("disk"):
                reading(file, wanted, buffer)

    def decode(frames: Frames, chunk: int, *arguments: Any) -> None:
        with course.at("decode"):
            decoding(frames, chunk, *arguments)

    def gather(*arguments: Any) -> None:
        with course.at("gather"):
            gathering(*arguments)

    patch.setattr(DirectFile, "read", disk)
    patch.setattr(Frames, "decode", decode)
    patch.setattr(gather_buffers, "gather_rows", gather)


CASES = [
    (route, slow)
    for route in ("filter", "zero-copy", "compaction")
    for slow in STAGES
    if slow != "gather" or route == "compaction"
]


@pytest.mark.parametrize(("route", "slow"), CASES)
def test_while_one_stage_is_busy_the_others_go_on(
    route: str, slow: str, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the second sweep, when the host keeps a quarter of the partitions: those need neither disk nor decoding."""
    with fed(graph, monkeypatch, route=route) as pipeline:
        demand, rates = half(pipeline), Rates.pcie5(1)
        assert walk(pipeline, pipeline.plan(demand, rates), demand, idle) == {route}
        plan = pipeline.plan(demand, rates)
        from_disk = PIECES - KEPT
        total = {"disk": from_disk, "decode": from_disk, "gather": 0, "kernel": len(plan.tasks)}
        if route == "compaction":
            total["gather"] = PIECES
        course = Course(slow, total)
        watch(course, monkeypatch)

        def kernel(view: View) -> None:
            with course.at("kernel"):
                pass

        assert walk(pipeline, plan, demand, kernel) == {route}
    assert course.alone == []
    assert len(plan.tasks) > from_disk
    assert {stage: course.ended[stage] for stage in STAGES} == total


@pytest.mark.parametrize("slow", ["link", "kernel"])
@pytest.mark.parametrize("kept", [PIECES, PIECES - 1])
@pytest.mark.parametrize(("route", "piece_bytes"), [("filter", 4 * STEP), ("zero-copy", 4 * 128)])
def test_the_link_and_the_kernel_work_at_the_same_time(
    route: str, piece_bytes: int, kept: int, slow: str, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slow one needs a second for each partition, the other one a quarter; kept: what is in host memory already."""
    link, kernel = (1.0, 0.25) if slow == "link" else (0.25, 1.0)
    clock = SleepingClock()
    monkeypatch.setattr(emulated, "time", clock)
    with fed(graph, monkeypatch, kept, route=route, tuning={"link_rate": piece_bytes / link}) as pipeline:
        demand, rates = half(pipeline), Rates.pcie5(1)
        walk(pipeline, pipeline.plan(demand, rates), demand, idle)
        plan = pipeline.plan(demand, rates)
        began = clock.now = pipeline.device.event(None)
        assert walk(pipeline, plan, demand, lambda view: clock.sleep(kernel * len(view.neighbors) / STEP)) == {route}
        took = clock.now - began
    assert PIECES <= took <= PIECES + 2 * (link + kernel)
