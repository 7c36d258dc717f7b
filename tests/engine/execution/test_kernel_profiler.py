"""A watched run: the same answer, spans whose sums are the records', and nothing at all without a timeline."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from penstock.engine import Session
from penstock.engine.execution.kernel_profiler import KernelProfiler
from penstock.storage.base.timeline import Span, Timeline
from penstock.transfer.devices import cuda
from penstock.transfer.devices.emulated import EmulatedDevice
from support.graphs import in_memory, on_disk, shape, skewed, weighed
from support.oracles import EdgeList
from support.program_cases import check, program_of

EDGES = weighed(EdgeList(300, *skewed(300, 4000, 3), None, False), "uint8")
LINKED = {"device": "emulated", "partition_bytes": 1024, "device_edge_memory": 12_000, "direction": "push"}
CASES: list[dict[str, Any]] = [
    {},
    {"host_memory": 48 << 20, "partition_bytes": 1024},
    {**LINKED, "route": "compaction", "tuning": {"link_rate": 1e9}},
    {**LINKED, "route": "zero-copy", "tuning": {"link_rate": 1e9}},
    {**LINKED, "route": "filter"},
    {**LINKED, "route": "cel"},
]
FOLLOWING = ("unmark_sent", "push_resend")
"""Kernels of what follows a carrier: one of each beside the carrier's."""


def seconds(spans: list[Span], group: str) -> float:
    return sum(span.seconds for span in spans if span.group == group)


@pytest.mark.parametrize("options", CASES, ids=lambda options: options.get("route", str(len(options))))
def test_spans_add_up_to_the_records(tmp_path: Path, options: dict[str, Any]) -> None:
    graph, timeline = on_disk(EDGES, tmp_path / "g.h5", chunk_edges=256), Timeline()
    with Session(graph, timeline=timeline, kernels="reference", **options) as session:
        result = session.run(program_of("sssp", EDGES))
    check("sssp", EDGES, result.fields)
    spans, tasks = list(timeline.spans()), [task for record in result.records for task in record.tasks]
    assert seconds(spans, "gather") == pytest.approx(sum(task.gather_seconds for task in tasks), rel=1e-9)
    assert seconds(spans, "link") == pytest.approx(sum(task.link_seconds for task in tasks), rel=1e-6, abs=1e-9)
    copied = sum(task.bytes_link for task in tasks)
    assert sum(span.work.bytes for span in spans if span.group == "link") == copied
    if "device" not in options:
        assert seconds(spans, "disk") == pytest.approx(sum(task.disk_seconds for task in tasks), rel=1e-9)
        assert seconds(spans, "decode") == pytest.approx(sum(task.decode_seconds for task in tasks), rel=1e-9)
    walked = [span for span in spans if span.group == "kernel" and " " in span.name]
    first = Counter(span.name.split()[1] for span in walked if not span.name.startswith(FOLLOWING))
    assert first == Counter(task.route for task in tasks if task.route != "cel")
    assert sum(span.seconds for span in walked) <= sum(task.kernel_seconds for task in tasks)
    iterations = [span for span in spans if span.track == "iterations"]
    assert [(s.work.first, s.work.items, s.seconds) for s in iterations] == [
        (record.number, record.edges, record.seconds) for record in result.records
    ]
    for span in spans:
        assert 0 <= span.iteration <= len(result.records)


def test_without_a_timeline_kernels_are_called_as_they_are() -> None:
    graph = in_memory(shape("two"))
    with Session(graph, kernels="reference") as session:
        program = program_of("bfs", shape("two"))
        assert type(session._loop(program).kernels).__name__ == "ReferenceKernels"
        assert session._watch is None


def test_an_error_in_a_kernel_passes_through() -> None:
    class Kernels:
        author = "somebody"

        def push(self, number: int) -> int:
            return 1 // number

        def use(self) -> None:
            """Nothing."""

    timeline = Timeline()
    seen = (watch := KernelProfiler(timeline, EmulatedDevice())).kernels(Kernels())
    assert (seen.push(1), seen.author) == (1, "somebody")
    with pytest.raises(ZeroDivisionError):
        seen.push(0)
    seen.use()
    watch.settle()
    assert [span.name for span in timeline.spans()] == ["push"]


def test_a_gpus_kernels_are_told_by_its_events_and_ranges() -> None:
    """With a stand-in for CUDA: the device's events are the host's, ranges are kept in a list."""

    class Kernels:
        def apply(self) -> np.ndarray:
            return np.ones(3)

    timeline, device = Timeline(), EmulatedDevice()
    ranges: list[str] = []
    found = SimpleNamespace(RangePush=ranges.append, RangePop=lambda: ranges.append("end"))
    device.range = partial(cuda.CudaDevice.range, SimpleNamespace(_ranges=found))
    watch = KernelProfiler(timeline, device)
    watch.kernels(Kernels()).apply()
    assert list(timeline.spans()) == []
    watch.settle()
    (span,) = timeline.spans()
    assert (span.group, span.track, span.name) == ("kernel", "emulated:0", "apply")
    assert ranges == ["apply", "end"]


def test_the_timeline_is_part_of_the_memory_budget(tmp_path: Path) -> None:
    graph = on_disk(EDGES, tmp_path / "g.h5", chunk_edges=256)
    held = []
    for timeline in (None, Timeline()):
        with Session(graph, timeline=timeline, kernels="reference", host_memory=64 << 20) as session:
            session.run(program_of("sssp", EDGES))
            held.append(session._equipment.needs.fixed)
    assert held[1] - held[0] == Timeline().nbytes
