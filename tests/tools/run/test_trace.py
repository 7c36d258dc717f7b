"""Traces: whole files of the trace event format, with named lanes in which nothing overlaps, also of a failed run."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.engine.session import Session
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.base.timeline import Timeline, Work
from penstock.tools import cli
from penstock.tools.run.trace import GROUPS, SLIP, events, open_trace, write
from support.graphs import on_disk, skewed, weighed
from support.oracles import EdgeList
from support.program_cases import program_of
from support.thread_ranks import ThreadRanks, on_ranks

EDGES = weighed(EdgeList(300, *skewed(300, 4000, 3), None, False), "uint8")
Event = dict[str, Any]


def lanes(found: list[Event]) -> dict[str, list[Event]]:
    """Complete events by the name of their thread; every one has its place, its time and its duration."""
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in found if e["name"] == "thread_name"}
    processes = {e["pid"]: e["args"]["name"] for e in found if e["name"] == "process_name"}
    assert list(processes.values()) == [group for group in GROUPS if group in processes.values()]
    by_lane: dict[str, list[Event]] = defaultdict(list)
    for event in found:
        assert event["ph"] in ("X", "M", "C", "i")
        if event["ph"] in ("X", "i"):
            lane = names[event["pid"], event["tid"]]
            assert lane.startswith(processes[event["pid"]])
            assert event["ts"] >= 0
            assert event.get("dur", 0) >= 0
            by_lane[lane].append(event)
    return by_lane


def apart(found: list[Event]) -> None:
    """No event of a lane begins before the one before it has ended (but for rounding); instants take no room."""
    for one, other in pairwise(event for event in found if event["ph"] == "X"):
        assert other["ts"] >= one["ts"] + one["dur"] - 0.002, (one, other)


@pytest.mark.parametrize(
    "options",
    [
        {"host_memory": 48 << 20, "partition_bytes": 1024},
        {"device": "emulated", "partition_bytes": 1024, "device_edge_memory": 12_000, "tuning": {"link_rate": 1e8}},
        {"device": "emulated", "partition_bytes": 1024, "device_edge_memory": 12_000, "route": "compaction"},
    ],
    ids=["disk", "auto", "compaction"],
)
def test_a_run_leaves_named_lanes_without_overlap(tmp_path: Path, options: dict[str, Any]) -> None:
    graph, path = on_disk(EDGES, tmp_path / "g.h5", chunk_edges=256), tmp_path / "t.json"
    with (
        open_trace(path, force=False, facts={"program": "sssp"}) as timeline,
        Session(graph, timeline=timeline, kernels="reference", **options) as session,
    ):
        result = session.run(program_of("sssp", EDGES))
    told = json.loads(path.read_text())
    assert told["otherData"] == {"dropped_events": 0, "program": "sssp"}
    by_lane = lanes(told["traceEvents"])
    for found in by_lane.values():
        apart(found)
    wanted = {"engine: iterations", "engine: programs", "engine: thread 1", "disk: thread 1", "decode: thread 1"}
    wanted |= {"kernel: cpu"} if "device" not in options else {"kernel: emulated:0", "link: to emulated:0"}
    wanted |= {"gather: thread 1"} if options.get("route") == "compaction" else set()
    assert wanted <= set(by_lane)
    iterations = by_lane["engine: iterations"]
    assert [event["args"].get("first", 0) for event in iterations] == list(range(result.iterations))
    assert sum(e["dur"] for e in iterations) == pytest.approx(1e6 * sum(r.seconds for r in result.records), rel=1e-3)
    levels = [e for e in told["traceEvents"] if e["ph"] == "C"]
    edges = [e["args"]["frontier edges"] for e in levels if e["name"] == "frontier edges"]
    assert edges == [record.edges for record in result.records]
    disk = [e["args"]["bytes from disk"] for e in levels if e["name"] == "bytes from disk"]
    assert disk == sorted(disk)
    assert disk[-1:] == [sum(r.bytes_disk for r in result.records)] or not result.bytes_read


def test_a_failed_run_leaves_what_it_did_and_its_own_error(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    path = folder / "t.json"

    def fail(error: BaseException) -> None:
        with open_trace(path, force=False) as timeline:
            assert timeline is not None
            timeline.add(timeline.track("kernel", "cpu"), "push", timeline.began, 0.5)
            if path.exists():
                path.unlink()
                folder.rmdir()
            raise error

    with pytest.raises(KeyboardInterrupt, match="stop"):
        fail(KeyboardInterrupt("stop"))
    assert [e["name"] for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"] == ["push"]
    with pytest.raises(RunError, match="the disk"):
        fail(RunError("the disk"))


def test_nothing_is_traced_unless_asked(tmp_path: Path) -> None:
    with open_trace(None, force=False) as timeline:
        assert timeline is None
    path = tmp_path / "t.json"
    write(Timeline(), path)
    assert json.loads(path.read_text())["traceEvents"] == []
    with pytest.raises(InputError, match="--force"):
        write(Timeline(), path)


def test_what_was_overwritten_is_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    timeline = Timeline(4)
    for number in range(9):
        timeline.add(timeline.track("kernel", "cpu"), "push", timeline.began + number, 0.5, Work(first=number))
    with caplog.at_level("WARNING", logger="penstock"):
        write(timeline, tmp_path / "t.json")
    told = json.loads((tmp_path / "t.json").read_text())
    assert told["otherData"]["dropped_events"] == 5
    assert [e["args"]["first"] for e in told["traceEvents"] if e["ph"] == "X"] == [5, 6, 7, 8]
    assert "the first 5 events" in caplog.text


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 9), st.sampled_from([0.0, SLIP / 2, SLIP])),
        min_size=1,
        max_size=30,
    )
)
def test_clocks_that_slip_do_not_make_events_overlap(spans: list[tuple[int, int, float]]) -> None:
    """Spans one after another, each told up to SLIP early."""
    timeline, moment = Timeline(), 0.0
    for gap, length, slip in spans:
        moment += gap * 1e-4
        timeline.add(timeline.track("kernel", "it"), "push", timeline.began + max(0.0, moment - slip), length * 1e-4)
        moment += length * 1e-4
    found = [event for event in events(timeline) if event["ph"] in ("X", "i")]
    assert len(found) == len(spans)
    apart(found)


def test_the_command_writes_a_trace_and_says_where_it_could_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    on_disk(EDGES, tmp_path / "g.h5")
    arguments = ["run", "bfs", str(tmp_path / "g.h5"), "--source", "0", "--quiet", "--trace"]
    assert cli.run_command([*arguments, str(tmp_path / "t.json")]) == 0
    by_lane = lanes(json.loads((tmp_path / "t.json").read_text())["traceEvents"])
    assert "kernel: cpu" in by_lane
    assert cli.run_command([*arguments, str(tmp_path / "t.json")]) == 2
    assert "--force" in capsys.readouterr().err


def test_every_rank_has_a_process_on_the_first_ones_clock(tmp_path: Path) -> None:
    graph, path = on_disk(EDGES, tmp_path / "g.h5", chunk_edges=256), tmp_path / "t.json"

    def work(ranks: ThreadRanks) -> None:
        with (
            open_trace(None if ranks.rank else path, ranks, force=False) as timeline,
            Session(graph, kernels="reference", threads=1, timeline=timeline, ranks=ranks) as session,
        ):
            session.run(program_of("sweeps", EDGES))

    on_ranks(2, work)
    found = json.loads(path.read_text())["traceEvents"]
    processes = {e["pid"]: e["args"]["name"] for e in found if e["name"] == "process_name"}
    assert [name.split(" on ")[0] for name in processes.values()] == ["rank 0", "rank 1"]
    for pid in processes:
        threads = {e["tid"]: e["args"]["name"] for e in found if e["name"] == "thread_name" and e["pid"] == pid}
        assert {"engine: iterations", "exchange: thread 1", "kernel: cpu"} <= set(threads.values())
        for tid in threads:
            apart([e for e in found if e["ph"] == "X" and (e["pid"], e["tid"]) == (pid, tid)])
        assert min(e["ts"] for e in found if e["pid"] == pid and "ts" in e) >= 0
    exchanged = [[e["ts"] for e in found if e["name"] == "exchange" and e["pid"] == pid] for pid in processes]
    assert len(exchanged[0]) == len(exchanged[1]) > 0
