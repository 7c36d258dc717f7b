"""Sessions: shared equipment, the memory budget, and what is refused before anything starts."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from penstock.engine import Field, Graph, Program, Session, Start, run
from penstock.engine import session as session_module
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.from_each import FromEach
from penstock.engine.programs.scc import SCC
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.wcc import WCC
from penstock.engine.resources.config import Config, Tuning
from penstock.storage.base.errors import InputError
from penstock.transfer.devices.cuda import CudaDevice
from penstock.transfer.devices.emulated import EmulatedDevice
from support.faults import open_files, python
from support.graphs import in_memory, on_disk, shape


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return on_disk(shape("skewed", weights="uint8"), tmp_path / "g.h5")


def test_runs_of_one_session_find_the_edges_cached(graph: Graph) -> None:
    with Session(graph) as session:
        first = session.run(BFS(source=0))
        again = session.run(BFS(source=0))
    assert first.bytes_read > 0
    assert again.bytes_read == 0
    assert sum(task.hits for record in again.records for task in record.tasks) > 0


def test_a_run_that_needs_more_gets_new_equipment(graph: Graph) -> None:
    with Session(graph) as session:
        session.run(WCC())
        weighted = session.run(SSSP(source=0))
        assert weighted.bytes_read > 0
        assert session.run(SSSP(source=0)).bytes_read == 0


def test_kernels_of_phases_are_announced_once_for_each_direction(tmp_path: Path, monkeypatch: Any) -> None:
    """Without in-edges SCC pushes along edges and pulls against them: each direction is a class, and none left out."""
    told: list[tuple[str, tuple[str, ...]]] = []

    def announce(asked: Any, *given: Any, **_: Any) -> None:
        if given[-1] is not None:  # as the cores' are
            told.extend((type(asks.program).__name__, tuple(asks.directions)) for asks in asked)

    monkeypatch.setattr(session_module, "announce_run", announce)
    graph = on_disk(shape("skewed"), tmp_path / "g.h5", both=False)
    with Session(graph, kernels="reference") as session:
        session.run(SCC())
        session.run(SCC())
    assert sorted(told) == [(name, (way,)) for name in ("Reach", "Trim") for way in ("pull", "push")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"host_memry": 5}, "unknown option 'host_memry'; the options are .*host_memory"),
        ({"direction": "sideways"}, "'sideways'; choose one of auto, push, pull"),
        ({"threads": 0}, "threads is 0"),
        ({"combine": 1}, "'combine'; combine is an option of tuning: give tuning={'combine': ...}"),
        ({"tuning": {"layer": 1}}, "unknown option 'layer'; the options are combine, .*, layers"),
        ({"tuning": {"combine": 0}}, "combine is 0; it must be at least 1"),
        ({"tuning": {"combine": "4"}}, "combine is '4'; give a number of at least 1"),
        ({"tuning": {"throttle": "x"}}, "throttle is 'x'; give a number"),
        ({"tuning": {"priority": 3}}, "priority is 3; give True or False"),
        ({"shares": 3}, "shares is 3; give a number above zero for each rank"),
        ({"tuning": None}, "tuning is None; give a mapping"),
        ({"tuning": "combine=1"}, "tuning is 'combine=1'; give a mapping"),
        ({"scratch": 3}, "scratch is 3; give a folder"),
        ({"host_memory": "lots"}, "'lots' is not a number with a unit"),
    ],
)
def test_options_are_checked(graph: Graph, options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(WCC(), graph, **options)


IDLE = {
    "route": {"route": "filter"},
    "model": {"tuning": {"model": "published"}},
    "combine": {"tuning": {"combine": 1}},
    "residency": {"tuning": {"residency": "none"}},
    "device_memory": {"device_memory": 1 << 30},
    "device_edge_memory": {"device_edge_memory": 1 << 20},
    "link_rate": {"tuning": {"link_rate": 1e9}},
}


@pytest.mark.parametrize("name", IDLE)
def test_what_would_change_nothing_on_the_device_is_refused(graph: Graph, name: str) -> None:
    """Where edges are read in place nobody chooses how they travel; what is the default may be said all the same."""
    with pytest.raises(InputError, match=rf"^{name} is .*would change nothing: the CPU .*--device emulated or cuda:0"):
        Session(graph, device="cpu", **IDLE[name])
    default = {"tuning": Tuning()} if "tuning" in IDLE[name] else {name: getattr(Config, name)}
    with Session(graph, device="cpu", **default), Session(graph, device="emulated", **IDLE[name]):
        pass
    gpu = EmulatedDevice()
    gpu.idle = CudaDevice.idle
    if name == "link_rate":
        with pytest.raises(InputError, match=r"link_rate .*a GPU's link is as fast as it is"):
            Config(tuning=Tuning(link_rate=1e9)).check_used(gpu)
    else:
        Config.of(**IDLE[name]).check_used(gpu)


def test_pull_needs_in_edges() -> None:
    graph = in_memory(shape("skewed"), both=False)
    with pytest.raises(InputError, match=r"direction=\"both\""):
        run(BFS(source=0), graph, direction="pull")


def test_dijkstra_refuses_negative_weights() -> None:
    graph = Graph.from_arrays([0, 1, 1], [1], np.array([-2.0]))
    with pytest.raises(InputError, match="the graph: the smallest weight is -2, and this program accepts non-negative"):
        run(SSSP(source=0), graph)


def test_programs_by_name_and_by_class(graph: Graph) -> None:
    by_name = run("bfs", graph, source=5)
    by_class = run(BFS, graph, source=5)
    assert by_name.fields["level"].tolist() == by_class.fields["level"].tolist()
    with pytest.raises(InputError, match=r"no program 'dfs' \(did you mean bfs\?\); choose one of adsorption"):
        run("dfs", graph)
    with pytest.raises(InputError, match=r"BFS: .*'source'.*parameters are: source"):
        run("bfs", graph)
    with pytest.raises(InputError, match="vertex 999 is not in the graph: its ids are 0 to 199"):
        run("bfs", graph, source=999)


class Reliable(Program):
    reliability = Field(np.float64, unreached=0.0)
    combine = "max"
    self_combining = True
    needs_weights = True

    def __init__(self, source: int) -> None:
        self.source = source

    def start(self, graph, state):
        state["reliability"][self.source] = 1.0
        return Start(active=np.array([self.source]))

    def edge(reliability, weight):
        return reliability * weight


@pytest.mark.parametrize("kernels", ["reference", "host"])
def test_a_users_program(kernels: str) -> None:
    graph = Graph.from_arrays([0, 2, 3, 4, 4], [1, 2, 3, 3], np.array([0.5, 0.9, 0.9, 0.1]))
    result = run(Reliable(source=0), graph, kernels=kernels)
    assert np.allclose(result.fields["reliability"], [1, 0.5, 0.9, 0.45])
    assert result.top(2) == [(0, 1.0), (2, 0.9)]


def test_what_numba_cannot_compile_is_one_message_for_the_author() -> None:
    class Broken(Reliable):
        def edge(reliability, weight):
            return open(reliability)

    graph = Graph.from_arrays([0, 1, 1], [1], np.array([0.5]))
    with pytest.raises(InputError, match="program Broken: Numba cannot compile one of its functions") as caught:
        run(Broken(source=0), graph)
    assert "\n" not in str(caught.value)
    assert "open" in str(caught.value)
    assert "test_session.py" in str(caught.value)


def test_a_session_that_is_dropped_closes_itself(graph: Graph) -> None:
    before, handles = threading.active_count(), len(open_files(graph.files[0]))
    session = Session(graph)
    session.run(BFS(source=0))
    assert threading.active_count() > before
    del session
    gc.collect()
    assert (threading.active_count(), len(open_files(graph.files[0]))) == (before, handles)


def test_a_program_that_changes_after_it_was_prepared_is_planned_again(graph: Graph) -> None:
    """Where another source is assigned, or one more is appended to the list of them."""
    one, many = BFS(source=0), FromEach([0, 1])
    with Session(graph, threads=1, kernels="reference") as session:
        session.prepare(one, many)
        one.source = 1
        assert session.run(one).fields["level"][1] == 0
        cast("list[int]", many.source).append(2)
        assert session.run(many).fields.keys() == {"distance_0", "distance_1", "distance_2"}


def test_a_closed_session_is_refused(graph: Graph) -> None:
    session = Session(graph, threads=1)
    session.run(BFS(source=0))
    assert repr(session) == f"<Session on 1 thread: {graph!r}>"
    session.close()
    session.close()
    assert repr(session) == f"<Session on 1 thread, closed: {graph!r}>"
    for use in (session.run, session.steps, session.forecast, session.prepare):
        with pytest.raises(InputError, match="this Session is closed; open another one"):
            use(BFS(source=0))


def test_threads_that_share_a_session_take_turns(graph: Graph) -> None:
    before, handles = threading.active_count(), len(open_files(graph.files[0]))
    right = run(BFS(source=0), graph).fields["level"].tolist(), run(WCC(), graph).fields["component"].tolist()
    with Session(graph) as session, ThreadPoolExecutor(6) as pool:
        levels = [pool.submit(session.run, BFS(source=0)) for _ in range(6)]
        components = [pool.submit(session.run, WCC()) for _ in range(6)]
        assert all(done.result().fields["level"].tolist() == right[0] for done in levels)
        assert all(done.result().fields["component"].tolist() == right[1] for done in components)
    assert (threading.active_count(), len(open_files(graph.files[0]))) == (before, handles)


def test_sessions_of_several_threads_run_at_once(graph: Graph) -> None:
    """Each with its own number of threads, in memory and from disk; none waits for another, nor changes its number."""
    before = threading.active_count()
    right = run(BFS(source=0), graph).fields["level"].tolist(), run(SSSP(source=0), graph).fields["distance"].tolist()
    options: list[dict[str, Any]] = [{"threads": 1}, {"threads": 2}, {"host_memory": "64MiB", "threads": 2}, {}]
    ready = threading.Barrier(len(options))

    def work(mine: dict[str, Any]) -> bool:
        with Session(Graph.open(graph.path), device="cpu", **mine) as session:
            ready.wait()
            levels = [session.run(BFS(source=0)).fields["level"].tolist() for _ in range(5)]
            distances = [session.run(SSSP(source=0)).fields["distance"].tolist() for _ in range(5)]
        return all(each == right[0] for each in levels) and all(each == right[1] for each in distances)

    with ThreadPoolExecutor(len(options)) as pool:
        assert all(pool.map(work, options))
    assert threading.active_count() == before


def test_a_run_in_the_middle_of_another_is_refused(graph: Graph) -> None:
    with Session(graph) as session:
        steps = session.steps(BFS(source=0))
        next(steps)
        with pytest.raises(InputError, match=r"in the middle of a run: end it, or close its steps\(\)"):
            session.run(BFS(source=0))
        steps.close()
        session.run(BFS(source=0))
        list(session.steps(BFS(source=0)))


FORKING = """
import os, sys
from penstock.engine import Graph, Session, run
from penstock.storage.base import missing_code
from penstock.engine.programs.bfs import BFS
from penstock.storage.base.errors import InputError

missing_code.FEW = 0
graph = Graph.open(sys.argv[1])
options = {"threads": 2, "kernels": sys.argv[2]}
if sys.argv[3] == "computed":
    import numba, numpy
    @numba.njit(parallel=True)
    def add(values):
        for i in numba.prange(len(values)):
            values[i] += 1
    add(numpy.zeros(8))
session = Session(graph, **options)
session.run(BFS(source=0)) if sys.argv[3] == "computed" else None
child = os.fork()
if child == 0:
    for use in (session.run, lambda program: run(program, graph, **options)):
        try:
            print(len(use(BFS(source=0)).fields["level"]), flush=True)
        except InputError as error:
            print(error, flush=True)
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize(("before", "then"), [("computed", "forked from one whose kernels had run"), ("fresh", "200")])
def test_a_forked_process_opens_its_own_session_before_kernels_have_run(before: str, then: str, graph: Graph) -> None:
    done = python(FORKING, str(graph.files[0]), "host", before)
    theirs, own, code = done.stdout.splitlines()
    assert theirs.startswith("this Session is of process"), done.stderr
    assert then in own
    assert (code, done.stderr) == ("7", "")
