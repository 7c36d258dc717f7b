"""What each rank did: known to all of them when a run is over, by iteration."""

from __future__ import annotations

import numpy as np
import pytest
from penstock.engine.ranks.communicator import gather_bytes
from penstock.engine.ranks.reports import clocks_ahead, gather_reports, gather_timelines
from penstock.engine.session import Session
from penstock.engine.state.records import COLUMNS, IterationRecord
from penstock.engine.state.result import Result
from penstock.storage.base.timeline import Timeline, Work
from penstock.transfer.values.task import TaskRecord
from support.graphs import in_memory, on_disk
from support.program_cases import CASES, program_of, tangle
from support.thread_ranks import ThreadRanks, on_ranks

SMALL = tangle(directed=True, core=24, tail=6, count=70)


def _record(rank: int, number: int) -> IterationRecord:
    record = IterationRecord(number, "pull", 3, 9, seconds=0.5, exchange_seconds=0.25)
    task = TaskRecord("filter", ("in", False), (0,), 9)
    task.bytes_disk, task.kernel_seconds = 1000 * (rank + 1), 0.125
    record.tasks.append(task)
    return record


def test_texts_of_any_length_are_gathered() -> None:
    found = on_ranks(3, lambda ranks: gather_bytes(ranks, b"x" * ranks.rank))
    assert found == [[b"", b"x", b"xx"]] * 3


def test_reports_are_the_same_in_all_ranks() -> None:
    def work(ranks: ThreadRanks):
        return gather_reports(ranks, f"cpu {ranks.rank}", [_record(ranks.rank, number) for number in range(4)])

    for reports in on_ranks(2, work):
        assert [one.device for one in reports] == ["cpu 0", "cpu 1"]
        assert [one.bytes_disk for one in reports] == [4000, 8000]
        facts = reports[1].facts()
        assert (facts["rank"], facts["tasks"], facts["seconds"], facts["exchange_seconds"]) == (1, 4, 2.0, 1.0)
        assert facts["busy_seconds"]["kernel"] == 0.5
        assert facts["peak_memory_bytes"] > 0
        assert set(reports[1].by_iteration()) == set(COLUMNS)
        assert reports[1].by_iteration()["bytes_disk"] == [2000] * 4


def test_a_run_without_iterations_has_reports() -> None:
    reports = on_ranks(2, lambda ranks: gather_reports(ranks, "cpu", []))[0]
    assert [one.facts()["tasks"] for one in reports] == [0, 0]


def test_a_run_reports_all_ranks_and_what_all_have_read(tmp_path) -> None:
    graph = on_disk(SMALL, tmp_path / "small.h5", chunk_edges=16)

    def work(ranks: ThreadRanks) -> Result:
        with Session(graph, ranks=ranks, kernels="reference", threads=1) as session:
            return session.run(program_of("sweeps", SMALL))

    one, two = on_ranks(2, work)
    assert one.bytes_read == two.bytes_read == sum(report.bytes_disk for report in one.ranks) > 0
    assert [report.bytes_disk for report in one.ranks] == [sum(r.bytes_disk for r in x.records) for x in (one, two)]
    with Session(graph, kernels="reference", threads=1) as session:
        assert session.run(program_of("sweeps", SMALL)).ranks == ()


@pytest.mark.parametrize("name", ["pagerank", "cdlp", "triangles"])
def test_every_kind_of_exchange_is_timed_and_stamped(name: str) -> None:
    def work(ranks: ThreadRanks):
        timeline = Timeline()
        with Session(in_memory(SMALL), ranks=ranks, kernels="reference", threads=1, timeline=timeline) as session:
            return session.run(CASES[name][0]()).records, list(timeline.spans())

    for records, spans in on_ranks(2, work):
        assert sum(record.exchange_seconds > 0 for record in records) == len(records) > 0
        assert sum(span.group == "exchange" for span in spans) >= len(records)


def test_a_clock_that_may_be_the_same_is_taken_for_it() -> None:
    moments = np.array([[[0.0, 1.0], [2.0, 3.0]], [[0.5, 1.1], [2.2, 3.1]]])
    assert clocks_ahead(moments).tolist() == [0.0, 0.0]


def test_the_tightest_collectives_tell_how_far_clocks_are_apart() -> None:
    begins, durations, late = np.array([0.0, 5.0, 9.0]), np.array([2.0, 0.02, 3.0]), np.array([1.0, 0.0, 0.5])
    first = np.stack([begins, begins + durations], axis=1)
    other = np.stack([begins + late, begins + durations], axis=1) + 100.0
    ahead = clocks_ahead(np.stack([first, other]))
    assert ahead[0] == 0.0
    assert abs(ahead[1] - 100.0) <= 0.02


def test_all_ranks_have_all_timelines() -> None:
    def work(ranks: ThreadRanks):
        timeline = Timeline(4)
        for number in range(ranks.rank + 4):
            timeline.add(timeline.track("kernel", "cpu"), f"push {ranks.rank}", float(number), 0.5, Work(items=number))
        return gather_timelines(ranks, timeline)

    for found in on_ranks(2, work):
        assert [(one.rank, one.ahead, one.timeline.dropped) for one in found] == [(0, 0.0, 0), (1, 0.0, 1)]
        assert [span.began for span in found[1].timeline.spans()] == [1.0, 2.0, 3.0, 4.0]
        assert {span.name for span in found[1].timeline.spans()} == {"push 1"}
