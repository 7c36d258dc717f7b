"""Predictions are compared with what happened: damped factors, corrected rates, errors by route."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.engine.session import Session
from penstock.transfer.calibration.feedback import (
    CLIP,
    PAUSE,
    QUANTITIES,
    Feedback,
    corrected,
    factors,
    launches,
    measured,
    observed,
    remembered,
    take_times,
)
from penstock.transfer.calibration.kernel_cost_fit import CostLaw
from penstock.transfer.calibration.prediction_error import accuracy
from penstock.transfer.devices.device import Device
from penstock.transfer.devices.emulated import EmulatedDevice
from penstock.transfer.values.cost import DECODE, DISK, GATHER, KERNEL, LINK, Cost, line_seconds
from penstock.transfer.values.rates import Rates
from penstock.transfer.values.task import TaskRecord
from support.graphs import on_disk, shape
from support.program_cases import check, program_of

RATES = Rates(copy_bytes=1e9, copy_latency=1e-5, line_rate=1e7, sector_rate=2e7, line_runs=((32.0, 1e7), (128.0, 5e6)))
NONE = [(0.0, 0.0)] * len(QUANTITIES)


def record(route: str, predicted: Cost | None, **seconds: float) -> TaskRecord:
    found = TaskRecord(route, "out", (0,), predicted=predicted)
    for name, value in seconds.items():
        setattr(found, f"{name}_seconds", value)
    return found


def seen(route: str, predicted: Cost, happened: Cost) -> TaskRecord:
    return TaskRecord(route, "out", (0,), predicted=predicted, measured=happened)


class Disk:
    busy_seconds = 0.0


def test_seconds_of_threads_and_overlapping_reads_become_seconds_of_the_resource() -> None:
    task = record("filter", Cost(), disk=4.0, decode=3.0, gather=2.0, link=1.0, kernel=0.5)
    assert measured(task, (3, 2), 0.25) == Cost(1.0, 1.0, 1.0, 1.0, 0.5)


def test_further_rounds_are_not_the_predicted_kernel() -> None:
    task = record("filter", Cost(), kernel=3.0)
    task.edges, task.resent = 4, 8
    assert measured(task, (1, 1)).kernel == 1.0


@pytest.mark.parametrize(("link", "of_link"), [(2.0, True), (0.5, False)])
def test_a_kernel_that_reads_in_place_tells_of_what_should_take_longer(link: float, of_link: bool) -> None:
    found = measured(record("zero-copy", Cost(link=link, kernel=1.0), kernel=4.0), (1, 1))
    assert found == (Cost(link=4.0) if of_link else Cost(kernel=4.0))
    modelled = measured(record("zero-copy", Cost(link=link, kernel=1.0), kernel=4.0, link=3.0), (1, 1))
    assert modelled == Cost(link=3.0, kernel=4.0)


def test_only_what_was_predicted_and_measured_counts_and_lines_are_apart() -> None:
    tasks = [
        seen("filter", Cost(link=1.0, kernel=0.5), Cost(link=2.0)),
        seen("compaction", Cost(link=1.0, gather=1.0), Cost(link=1.0, gather=3.0, disk=9.0)),
        seen("zero-copy", Cost(link=1.0), Cost(link=5.0)),
        TaskRecord("filter", "out", (0,)),
    ]
    expected = list(NONE)
    expected[LINK], expected[GATHER] = (2.0, 3.0), (1.0, 3.0)
    assert observed(tasks) == expected
    assert launches(tasks, CostLaw(0.0), LINK) == [(0.0, 1.0, 5.0)]


def test_memory_halves_with_as_much_again_and_fades_where_nothing_is_seen() -> None:
    past, new = list(NONE), list(NONE)
    past[LINK], new[LINK] = (1.0, 2.0), (1.0, 1.0)
    past[GATHER] = (1.0, 3.0)
    found = remembered(past, new)
    assert found[LINK] == (1.5, 2.0)
    assert found[GATHER] == pytest.approx((0.9, 2.7))


def test_tiny_observations_do_not_move_a_factor_and_wild_ones_are_clipped() -> None:
    sums = list(NONE)
    sums[LINK], sums[DISK], sums[GATHER] = (1e-6, 1e-4), (1.0, 1000.0), (1000.0, 1.0)
    found = factors(sums)
    assert found[LINK] == pytest.approx(1.1, abs=0.01)
    assert (found[DISK], found[GATHER]) == (CLIP, 1 / CLIP)
    assert found[DECODE] == 1.0


@given(st.lists(st.floats(1 / CLIP, CLIP), min_size=6, max_size=6))
def test_corrected_rates_take_so_many_times_as_long(by: list[float]) -> None:
    found = corrected(RATES, by, CostLaw(3e-6, 2e-9, 4.0), CostLaw(5e-6, 1e-9, 8.0))
    disk, decode, gather, copy, *_ = by
    ratios = {
        "disk_bytes": disk, "decode_bytes": decode, "gather_bytes": gather, "copy_bytes": copy,
        "kernel_edges": 4.0, "line_rate": 8.0, "sector_rate": 8.0,
    }  # fmt: skip
    for name, factor in ratios.items():
        assert getattr(RATES, name) / getattr(found, name) == pytest.approx(factor)
    assert found.copy_latency == pytest.approx(RATES.copy_latency * copy)
    assert (found.unpack_edges, found.unpack_latency) == (RATES.unpack_edges, RATES.unpack_latency)
    assert (found.kernel_latency, found.line_latency) == (3e-6, 5e-6)
    assert (found.kernel_rows, found.line_rows) == pytest.approx((5e8, 1e9))
    assert found.line_runs == tuple((length, rate / 8.0) for length, rate in RATES.line_runs)


@pytest.mark.parametrize("corrects", [True, False])
def test_a_link_twice_as_slow_is_learnt_and_then_foretold(corrects: bool) -> None:
    """Each iteration predicts by the rates of the moment; what it takes never changes."""
    feedback, device = Feedback(RATES, (1, 1), corrects=corrects), Device()
    error = 1.0
    for _ in range(20):
        rates = feedback.begin(device)
        task = record("filter", Cost(link=1e8 / rates.copy_bytes), link=0.2)
        feedback.note([task])
        feedback.settle(device)
        error = accuracy([task])["filter"].median_error
    assert (error < 0.02) == corrects
    assert feedback.begin(device).copy_bytes == (pytest.approx(5e8, rel=0.02) if corrects else 1e9)
    assert feedback.factors["kernel"] == 1.0


def test_an_error_passed_over_is_forgiven() -> None:
    """A route that was once slow and is not taken any more gets another chance."""
    feedback, device = Feedback(RATES, (1, 1)), Device()
    feedback.begin(device)
    feedback.note([record("compaction", Cost(gather=0.1), gather=0.4)])
    assert feedback.begin(device).gather_bytes < RATES.gather_bytes / 3
    for _ in range(100):
        feedback.note([record("filter", Cost(link=0.1), link=0.1)])
        feedback.begin(device)
    assert feedback.factors["gather"] == pytest.approx(1.0, abs=0.05)


def test_another_program_has_other_kernels() -> None:
    feedback, device = Feedback(RATES, (1, 1)), Device()
    feedback.turn_to("one")
    feedback.begin(device)
    feedback.note([record("filter", Cost(link=0.1, kernel=0.1), link=0.2, kernel=0.2)])
    feedback.settle(device)
    slow = feedback.begin(device)
    assert slow.kernel_edges == pytest.approx(RATES.kernel_edges / 2, rel=0.02)
    heir = Feedback(RATES, (1, 1))
    heir.inherit(feedback)
    assert heir.factors == feedback.factors
    assert heir.factors["link"] > 1.9
    assert heir.factors["kernel"] == 1.0
    assert heir.begin(device) == slow
    heir.turn_to("two")
    assert heir.begin(device).kernel_edges == RATES.kernel_edges
    heir.turn_to("one")
    assert heir.begin(device) == slow


@pytest.mark.parametrize(("launch", "each"), [(4e-5, 3e-9), (2e-2, 2e-8), (0.0, 1e-7)])
def test_launches_and_edges_of_kernels_are_told_apart(launch: float, each: float) -> None:
    """After a few walks every task is foretold within 15 %, whatever its size, though one in seven goes wild."""
    feedback, device, errors = Feedback(RATES, (1, 1)), Device(), []
    draw = np.random.default_rng(3)
    for walk in range(12):
        rates = feedback.begin(device, "pull")
        tasks = []
        for edges in draw.integers(100, 10_000_000, 7).tolist():
            took = (launch + each * edges) * draw.uniform(0.95, 1.05) + (0.03 if len(tasks) == walk % 7 else 0.0)
            foretold = rates.kernel_latency + edges / rates.kernel_edges
            tasks.append(record("resident", Cost(kernel=foretold), kernel=took))
        feedback.note(tasks)
        feedback.settle(device)
        errors.append(accuracy(tasks)["resident"].median_error)
    assert max(errors[4:]) < 0.15 < errors[0]
    assert list(feedback.kernels) == ["pull"]


@pytest.mark.parametrize(("launch", "row", "slower"), [(6e-5, 0.0, 1.0), (0.0, 2e-9, 3.0), (1e-2, 1e-9, 0.4)])
def test_launches_and_lines_read_in_place_are_told_apart(launch: float, row: float, slower: float) -> None:
    """After a few walks every kernel that reads in place is foretold within 15 %, however little it reads."""
    feedback, device, errors = Feedback(RATES, (1, 1)), Device(), []
    draw = np.random.default_rng(3)
    for _ in range(12):
        rates = feedback.begin(device, "push")
        tasks = []
        for rows in draw.integers(10, 1_000_000, 7).tolist():
            lines, run_bytes = np.array([2.0 * rows]), np.array([128.0])
            read = float(RATES.line_seconds(lines, run_bytes)[0])
            took = (launch + row * rows + slower * read) * draw.uniform(0.95, 1.05)
            foretold = float(line_seconds(lines, np.array([float(rows)]), run_bytes, rates)[0])
            tasks.append(record("zero-copy", Cost(link=foretold), kernel=took))
            tasks[-1].rows = rows
        feedback.note(tasks)
        feedback.settle(device)
        errors.append(accuracy(tasks)["zero-copy"].median_error)
    assert max(errors[4:]) < 0.15
    assert feedback.factors["link"] == 1.0


def test_walks_are_learnt_from_when_the_device_has_passed_them() -> None:
    """Until then what was foretold of the next walk rests on what was known when it was planned."""
    feedback, device = Feedback(RATES, (1, 1)), EmulatedDevice(1 << 20)
    feedback.begin(device)
    first, second = (record("filter", Cost(kernel=0.1), kernel=0.2) for _ in range(2))
    first.spans = ((KERNEL, 0.0, 1e300),)
    feedback.note([first])
    rates, basis = feedback.begin(device), feedback.watch()
    assert rates.kernel_edges == RATES.kernel_edges
    assert first.measured is None
    first.spans = ()
    learnt = feedback.begin(device)
    assert learnt.kernel_edges == pytest.approx(RATES.kernel_edges / 2, rel=0.02)
    feedback.note([second], basis)
    assert feedback.begin(device).kernel_edges == pytest.approx(learnt.kernel_edges, rel=0.02)


def test_kinds_of_walks_have_laws_of_their_own() -> None:
    feedback, device = Feedback(RATES, (1, 1)), Device()
    for kind, took in (("push", 0.3), ("pull", 0.1)):
        feedback.begin(device, kind)
        feedback.note([record("filter", Cost(kernel=0.1), kernel=took)])
    found = [feedback.begin(device, kind).kernel_edges for kind in ("push", "pull")]
    assert found == pytest.approx([RATES.kernel_edges / 3, RATES.kernel_edges], rel=0.05)


def test_a_launch_is_not_taken_for_work() -> None:
    tasks = [
        seen("filter", Cost(kernel=3e-3), Cost(kernel=5e-3)),
        seen("filter", Cost(kernel=5e-4), Cost(kernel=2e-3)),
        seen("filter", Cost(link=1.0), Cost(kernel=1.0)),
        TaskRecord("filter", "out", (0,)),
    ]
    tasks[0].rows = 100
    assert launches(tasks, CostLaw(1e-3, 1e-5, 2.0)) == [pytest.approx((100, 5e-4, 5e-3)), (0.0, 0.0, 2e-3)]


def test_reads_that_overlap_count_once() -> None:
    disk = Disk()
    feedback, device = Feedback(RATES, (1, 1), disk), Device()
    disk.busy_seconds = 5.0
    feedback.begin(device)
    feedback.watch()
    disk.busy_seconds = 6.0
    tasks = [record("filter", Cost(disk=0.5), disk=1.5), record("filter", Cost(disk=0.5), disk=0.5)]
    feedback.note(tasks)
    feedback.settle(device)
    assert [task.measured.disk for task in tasks if task.measured] == [0.75, 0.25]


def test_events_become_seconds_once_they_have_passed() -> None:
    device = EmulatedDevice()
    task = record("filter", Cost(link=1.0), kernel=7.0)
    task.spans = ((LINK, 1.0, 3.0), (LINK, 3.0, 4.0), (KERNEL, 4.0, 4.5))
    take_times([task], device)
    assert (task.link_seconds, task.kernel_seconds, task.spans) == (3.0, 0.5, ())


def test_what_starting_a_copy_takes_counts_as_the_links() -> None:
    device = EmulatedDevice(1 << 20)
    ends = [(0.0, 1.0), (1.0 + PAUSE / 2, 2.0), (2.0 + 3 * PAUSE, 3.0)]
    tasks = [record("filter", Cost(), kernel=1.0) for _ in ends]
    for task, (first, last) in zip(tasks, ends, strict=True):
        task.spans = ((KERNEL, first, last), (LINK, first, last))
    again = replace(tasks[1])
    assert take_times(tasks, device) == pytest.approx([0.0, PAUSE / 2, 0.0])
    assert [task.link_seconds for task in tasks] == pytest.approx([last - first for first, last in ends])
    assert take_times([record("resident", None), again], device) == [0.0, 0.0]
    assert measured(tasks[0], (1, 1), gap=0.5) == Cost(link=1.5, kernel=1.0)


@pytest.mark.parametrize(("route", "feedback"), [("auto", True), ("filter", True), ("zero-copy", False)])
def test_a_run_reports_its_errors(tmp_path: Path, route: str, feedback: bool) -> None:
    """Every task that travels has a prediction and, at the latest at the end of the run, its measured seconds."""
    edges = shape("skewed", weights="uint8")
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=32)
    options = {"device": "emulated", "device_edge_memory": 2000, "partition_bytes": 256}
    tuning = {"link_rate": 1e6, "feedback": feedback}
    with Session(graph, tuning=tuning, route=route, **options) as session:
        result = session.run(program_of("sssp", edges))
        assert session._equipment is not None
        known, given = session._equipment.feedback, CostLaw(session.rates.kernel_latency)
    check("sssp", edges, result.fields)
    tasks = [task for record in result.records for task in record.tasks]
    assert tasks
    assert all(task.predicted is not None and task.measured is not None and not task.spans for task in tasks)
    assert all(task.link_seconds > 0 for task in tasks if task.bytes_link)
    assert {task.route for task in tasks if task.bytes_link} <= set(result.prediction)
    assert all(found.tasks > 0 and found.median_error >= 0 for found in result.prediction.values())
    learnt = set(known.factors.values()) != {1.0} or {*known.kernels.values(), *known.lines.values()} - {given}
    assert bool(learnt) == feedback
    assert result.records[-1].summary()["prediction_errors"] is not None
