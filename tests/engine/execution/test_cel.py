"""Routes that add successors to their carriers: answers, accounts, fewer iterations, and what is refused."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.engine import Graph, run
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.program.program import VERTEX, Field, Program, Start
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.reachability import Reachability
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.wcc import WCC
from penstock.engine.programs.widest import WidestPath
from penstock.engine.resources import memory_plan
from penstock.engine.session import Session
from penstock.storage.base.errors import InputError
from support.graphs import in_memory, on_disk, shape, skewed, weighed
from support.oracles import EdgeList, check_sssp
from support.program_cases import start_of
from support.small_host import keeping

on_simulator = pytest.mark.skipif(not seam.SIMULATED, reason="there is a device: tests/gpu")


class Labels(Program):
    """The smallest id that leads to a vertex, its own included; everybody starts."""

    label = Field(VERTEX)
    combine = "min"
    self_combining = True

    def start(self, graph: Graph, state: dict[str, Any]) -> Start:
        """Everybody has his own label."""
        state["label"][:] = np.arange(graph.vertices)
        return Start(everything=True)

    def edge(label):  # type: ignore[no-untyped-def]
        """Travels along an edge: the label."""
        return label


def programs(edges: EdgeList) -> dict[str, Program]:
    source = start_of(edges)
    return {
        "sssp": SSSP(source),
        "narrow": SSSP(source, delta=3.0),
        "reachability": Reachability(source),
        "widest": WidestPath(source),
        "labels": Labels(),
    }


def tasks_of(result: Any) -> list[Any]:
    return [task for record in result.records for task in record.tasks]


@st.composite
def cases(draw: st.DrawFn) -> tuple[EdgeList, dict[str, Any]]:
    """A graph, and how to run on it."""
    vertices, count = draw(st.integers(1, 120)), draw(st.integers(0, 500))
    ends = skewed(vertices, count, draw(st.integers(0, 99)))
    edges = weighed(EdgeList(vertices, *ends, None, draw(st.booleans())), "uint8")
    options = {
        "route": "cel",
        "device_edge_memory": draw(st.integers(2 * 32 * 5, 6000)),
        "partition_bytes": draw(st.integers(1, 600)),
        "tuning": {
            "combine": draw(st.integers(1, 4)),
            "priority": draw(st.booleans()),
            "local_rounds": draw(st.integers(0, 1)),
        },
    }
    return edges, options


@settings(max_examples=25)
@given(
    case=cases(),
    name=st.sampled_from(["sssp", "narrow", "labels"]),
    shelf=st.none() | st.tuples(st.sampled_from([32, 64]), st.integers(1, 3), st.integers(0, 6)),
)
def test_gives_the_answer_and_accounts_for_what_travels(
    case: tuple[EdgeList, dict[str, Any]], name: str, shelf: tuple[int, int, int] | None
) -> None:
    """Bytes and edges of records are those copied; shelf: a host that holds only some partitions, the rest on disk."""
    edges, options = case
    expected = next(iter(run(programs(edges)[name], in_memory(edges), kernels="reference").fields.values()))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if shelf is not None:
            patch.setattr(memory_plan, "divide_host_memory", keeping(*shelf))
        graph = on_disk(edges, Path(folder) / "graph.h5", chunk_edges=32)
        with Session(graph, device="emulated", **options) as session:
            result = session.run(programs(edges)[name])
            loaded, again = session._device.bytes_in, session.run(programs(edges)[name])
            copied = session._device.bytes_in - loaded
            pipeline = session._equipment.pipeline
            assert pipeline.staging.slabs.free == pipeline.staging.slabs.count
    for found in (result, again):
        np.testing.assert_array_equal(next(iter(found.fields.values())), expected)
    tasks = tasks_of(again)
    assert copied == sum(task.bytes_link for task in tasks)
    assert {task.route for task in tasks} <= {"filter", "cel"}
    followers = [task for result_ in (result, again) for task in tasks_of(result_) if task.route == "cel"]
    assert all((task.partitions, task.bytes_link) == ((), 0) for task in followers)
    sent = sum(task.edges for task in tasks)
    assert sent >= sum(record.edges for record in again.records)
    for record in again.records:
        numbers = [number for task in record.tasks for number in task.partitions]
        assert len(numbers) == len(set(numbers))


def path_and_grid() -> dict[str, EdgeList]:
    """A path of 200, and a grid of 16 by 16, both ways along every edge; ids scrambled, weights 1 to 9."""
    at = np.arange(256).reshape(16, 16)
    pairs = [(at[:, :-1], at[:, 1:]), (at[:-1], at[1:])]
    sources, targets = (np.concatenate([pair[side].ravel() for pair in pairs]) for side in (0, 1))
    ends = {"path": (200, np.arange(199), np.arange(1, 200)), "grid": (256, sources, targets)}
    rng = np.random.default_rng(7)
    order = {count: rng.permutation(count) for count in (200, 256)}
    return {
        name: EdgeList(count, order[count][a], order[count][b], rng.integers(1, 10, len(a)).astype(np.uint8), False)
        for name, (count, a, b) in ends.items()
    }


@pytest.mark.parametrize("kind", ["path", "grid"])
@pytest.mark.parametrize("name", ["sssp", "reachability", "widest", "labels"])
def test_long_ways_take_fewer_passes(name: str, kind: str, tmp_path: Path) -> None:
    """Fewer iterations, carriers and bytes than filter alone."""
    edges = path_and_grid()[kind]
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=32)
    options = {"device": "emulated", "device_edge_memory": 1000, "partition_bytes": 128, "direction": "push"}
    alone, more = (run(programs(edges)[name], graph, route=way, **options) for way in ("filter", "cel"))
    assert more.iterations < alone.iterations or name == "sssp"  # few rows of a bucket are in one partition
    carriers = [sum(task.route == "filter" for task in tasks_of(result)) for result in (alone, more)]
    assert carriers[1] < carriers[0]
    assert sum(task.bytes_link for task in tasks_of(more)) < sum(task.bytes_link for task in tasks_of(alone))
    field = next(iter(alone.fields))
    np.testing.assert_array_equal(alone.fields[field], more.fields[field])


@pytest.mark.parametrize("kernels", ["reference", pytest.param("cuda", marks=on_simulator)])
def test_every_kind_of_kernels(kernels: Any, tmp_path: Path) -> None:
    """With a row that is longer than a pack."""
    hub = np.stack([np.full(70, 3), np.arange(70)])
    edges = weighed(EdgeList(70, *np.concatenate([skewed(70, 120, 5), hub, hub[::-1]], axis=1)), "uint8")
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=16)
    options = {"device": "emulated", "route": "cel", "device_edge_memory": 300, "partition_bytes": 64}
    result = run(SSSP(start_of(edges)), graph, kernels=kernels, **options)
    check_sssp(edges, start_of(edges), result.fields["distance"])
    assert any(task.route == "cel" for task in tasks_of(result))


class Sender(Labels):
    def send(label):  # type: ignore[no-untyped-def]
        """What a vertex sends is computed before the walk."""
        return label


@pytest.mark.parametrize(
    ("program", "options", "words"),
    [
        (BFS(0), {}, 'BFS cannot run by route cel.*synchronously.*route="auto"'),
        (WCC(), {}, "WCC cannot"),
        (PageRank(weight=False), {}, "PageRank cannot"),
        (SSSP(0), {"mode": "sync"}, "synchronously"),
        (SSSP(0), {"direction": "pull"}, 'leave out direction="pull"'),
        (Sender(), {}, r"send\(\)"),
    ],
)
def test_what_cannot_follow_is_refused(program: Program, options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        run(program, in_memory(shape("two", weights="uint8")), device="emulated", route="cel", **options)


@pytest.mark.parametrize("direction", ["auto", "push", "pull"])
@pytest.mark.parametrize("kernels", ["host", "reference", "cuda"])
def test_everybody_may_start_an_asynchronous_run(kernels: Any, direction: Any) -> None:
    """A pull of everybody, too, notes who changed; it once ended after one iteration."""
    ends = np.array([[0, 2, 0, 2, 0], [0, 1, 0, 0, 0]])
    device = "emulated" if kernels == "cuda" else "cpu"
    graph = in_memory(EdgeList(3, *ends, None, False))
    result = run(Labels(), graph, device=device, kernels=kernels, direction=direction)
    assert result.fields["label"].tolist() == [0, 0, 0]


class Some(Labels):
    """Rows of two partitions of 32 edges send first, and reach the one between them in the second iteration."""

    def start(self, graph: Graph, state: dict[str, Any]) -> Start:
        """Their labels are larger than those between them, but for two."""
        state["label"][:] = np.where(np.isin(np.arange(graph.vertices) // 4, (0, 2)), 900, 500)
        state["label"][[1, 8]] = 50, 8
        return Start(active=np.array([0, 1, 2, 3, 8, 9, 10, 11]))


def test_rows_are_sent_again_only_where_their_edges_are(tmp_path: Path) -> None:
    """What is resident is read in one view, over partitions that are not wanted: these may have no edges yet."""
    sources = np.repeat(np.arange(40), 8)
    targets = sources.copy()
    for u, v in ((1, 2), (2, 3), (8, 9), (9, 5), (5, 30)):
        targets[u * 8 + 1] = v
    edges = EdgeList(40, sources, targets, None, True)
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=32, both=False)
    expected = run(Some(), in_memory(edges), kernels="reference").fields["label"]
    tuning = {"local_rounds": 1, "combine": 1, "link_rate": 1e5}
    options = {"partition_bytes": 128, "device_edge_memory": 768, "direction": "push", "tuning": tuning}
    over = False
    with Session(graph, device="emulated", kernels="reference", **options) as session:
        for _ in range(2):
            result = session.run(Some())
            np.testing.assert_array_equal(result.fields["label"], expected)
            over |= any(task.route == "resident" and task.partitions == (0, 1, 2) for task in tasks_of(result))
    assert over


@pytest.mark.parametrize("name", ["labels", "widest", "reachability", "sssp"])
def test_the_manager_lets_rows_follow_where_that_pays(name: str, tmp_path: Path) -> None:
    """Over a slow link: labels begin with all edges, which are copied in any case; so their rows follow."""
    edges = path_and_grid()["grid"]
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=32)
    options = {"device_edge_memory": 1000, "partition_bytes": 128, "direction": "push", "tuning": {"link_rate": 3e5}}
    with Session(graph, device="emulated", **options) as session:
        results = [session.run(programs(edges)[name]) for _ in range(4)]
    expected = next(iter(run(programs(edges)[name], in_memory(edges), kernels="reference").fields.values()))
    for result in results:
        np.testing.assert_array_equal(next(iter(result.fields.values())), expected)
    followed = [sum(task.edges for task in tasks_of(result) if task.route == "cel") for result in results]
    for runs in (followed[:1], followed[1:]):  # the first one reads from disk
        assert any(runs) == (name == "labels")
