"""Louvain and Leiden: the same communities however run, of the modularity that definition and networkx say."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import networkx as nx
import numpy as np
import pytest
from penstock.engine import Session, from_edges, run, session
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.programs.leiden import Leiden
from penstock.engine.programs.louvain import Louvain
from penstock.engine.programs.modular_gain import fine_bits, fixed_point, modularity, squares
from penstock.engine.programs.rows_in_memory import RowsInMemory
from penstock.engine.state import row_blocks
from penstock.storage.base.errors import InputError
from penstock.storage.convert import contract
from support import catalogue_oracles as right
from support.graphs import in_memory, on_disk, shape, skewed, weighed
from support.oracles import EdgeList
from support.program_cases import tangle

PROGRAMS = ("louvain", "leiden")
KARATE = nx.karate_club_graph()


def check(edges: EdgeList, program: Louvain, community: np.ndarray, *, weighted: bool = True) -> None:
    """Check communities and the modularity that the program states."""
    resolution = program.resolution
    right.check_communities(edges, community.astype(np.int64), weighted=weighted, resolution=resolution)
    stated = program.modularity[-1] if program.modularity else 0.0
    if isinstance(program, Leiden):
        assert right.are_connected(edges, community.astype(np.int64), weighted=weighted)
    assert stated == pytest.approx(right.modularity(edges, community, weighted=weighted, resolution=resolution))


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("directed", [True, False])
def test_every_way_gives_the_answer(directed: bool, name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Plain Python, compiled, from disk in blocks of a few messages, with levels in files: the same communities.

    The first run has its rows in memory; there is no room for those of the others.
    """
    if not directed:
        request.getfixturevalue("unfused")
    edges = tangle(directed=directed)
    first = run(name, in_memory(edges))
    check(edges, first.program, first.fields["community"])
    assert first.program.modularity == sorted(first.program.modularity)
    assert len(first.program.modularity) > 1
    graph = on_disk(edges, tmp_path / "g.h5", chunk_edges=16)
    few = mock.patch(
        "penstock.engine.execution.whole_rows.block_capacity",
        lambda indexes, most: row_blocks.block_capacity(indexes, 64),
    )
    no_rows = mock.patch.object(RowsInMemory, "bytes_for", return_value=1 << 60)
    for way in ({"kernels": "reference"}, {"threads": 1, "partition_bytes": 200}):
        with few, no_rows, mock.patch.object(contract, "EDGE_BYTES", 1 << 40):
            again = run(name, graph, **way)
        np.testing.assert_array_equal(again.fields["community"], first.fields["community"])
        assert again.program.modularity == first.program.modularity
    assert [path.name for path in tmp_path.iterdir()] == ["g.h5"]


@pytest.mark.skipif(not seam.SIMULATED, reason="there is a device: tests/gpu")
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("directed", [True, False])
def test_simulated_gpu(directed: bool, name: str) -> None:
    edges = tangle(directed=directed, core=9, tail=2, count=20)
    found = run(name, in_memory(edges), tol=0.01, device="emulated", kernels="cuda")
    check(edges, found.program, found.fields["community"])
    again = run(name, in_memory(edges), tol=0.01).fields["community"]
    np.testing.assert_array_equal(found.fields["community"], again)


@pytest.mark.parametrize("name", PROGRAMS)
def test_by_direction(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The modularity is networkx's of the directed graph, and its own Louvain finds no better one; however run."""
    size = {"core": 9, "tail": 2, "count": 20} if seam.SIMULATED else {}
    for edges in (tangle(directed=True), tangle(directed=True, **size)):
        peer = nx.MultiDiGraph()
        peer.add_nodes_from(range(edges.vertices))
        peer.add_weighted_edges_from(zip(*(side.tolist() for side in edges.arcs), strict=True))
        found = run(name, in_memory(edges), directed=True, resolution=1.1)
        community = found.fields["community"]
        sets = [set(np.flatnonzero(community == one).tolist()) for one in np.unique(community)]
        assert found.program.modularity[-1] == pytest.approx(nx.community.modularity(peer, sets, resolution=1.1))
        theirs = nx.community.louvain_communities(peer, seed=1, resolution=1.1)
        assert found.program.modularity[-1] > nx.community.modularity(peer, theirs, resolution=1.1) - 0.02
    ways: list[dict[str, Any]] = [{"kernels": "reference"}, {"threads": 1, "partition_bytes": 200}]
    ways += [{"device": "emulated", "kernels": "cuda"}] if seam.SIMULATED else []
    graph = on_disk(edges, tmp_path / "g.h5", chunk_edges=16)
    monkeypatch.setattr(RowsInMemory, "bytes_for", lambda *_: 1 << 60)
    monkeypatch.setattr(contract, "EDGE_BYTES", 1 << 40)
    for way in ways:
        again = run(name, graph, directed=True, resolution=1.1, **way)
        np.testing.assert_array_equal(again.fields["community"], community)
        assert again.program.modularity == found.program.modularity
    flat = in_memory(tangle(directed=False))
    same = [run(name, flat, directed=directed).fields["community"] for directed in (True, False)]
    np.testing.assert_array_equal(*same)


@pytest.mark.parametrize("kind", ["empty", "one-loop", "isolated", "star-in", "loops", "parallel"])
def test_small_shapes(kind: str) -> None:
    edges = shape(kind, weights="uint8")
    for program in (Louvain(), Leiden()):
        run(type(program)(directed=True), in_memory(edges))
        check(edges, program, run(program, in_memory(edges)).fields["community"])


@pytest.mark.parametrize("seed", [4, 11])
def test_parts_that_are_the_answer_keep_their_balances(seed: int) -> None:
    """Random graphs with a level whose parts are its vertices, and whose communities are fewer."""
    sources, targets = np.random.default_rng(seed).integers(0, 20, (2, 60))
    found = run("leiden", from_edges(sources, targets), directed=True)
    groups: dict[int, set[int]] = {}
    for vertex, group in found.to_dict().items():
        groups.setdefault(int(group), set()).add(vertex)
    peer = nx.MultiDiGraph(list(zip(sources.tolist(), targets.tolist(), strict=True)))
    assert isinstance(found.program, Leiden)
    assert found.program.modularity[-1] == pytest.approx(nx.community.modularity(peer, groups.values()))


def test_karate_club() -> None:
    """As networkx computes it, and as good as its own Louvain; other seeds and resolutions give other communities."""
    graph = from_edges(np.array(KARATE.edges()), undirected=True)
    found = {}
    for seed, resolution in ((0, 1.0), (1, 1.0), (0, 2.0)):
        result = run("louvain", graph, seed=seed, resolution=resolution)
        groups = [set(np.flatnonzero(result.fields["community"] == name)) for name in set(result.fields["community"])]
        wanted = nx.community.modularity(KARATE, groups, weight=None, resolution=resolution)
        assert result.program.modularity[-1] == pytest.approx(wanted)
        found[seed, resolution] = result
    assert found[0, 1.0].program.modularity[-1] > 0.41
    assert len(set(found[0, 2.0].fields["community"])) > len(set(found[0, 1.0].fields["community"]))


@pytest.mark.parametrize("weights", ["float64", "uint8"])
def test_weights(weights: str) -> None:
    """Fractions count as such, and weights scaled by a power of two change nothing."""
    edges = tangle(directed=False, weights=weights)
    assert edges.weights is not None
    program = Louvain()
    found = run(program, in_memory(edges)).fields["community"]
    check(edges, program, found)
    scaled = EdgeList(edges.vertices, edges.sources, edges.targets, edges.weights * 0.25, edges.directed)
    np.testing.assert_array_equal(run("louvain", in_memory(scaled)).fields["community"], found)
    alone = Louvain(weight=False)
    check(edges, alone, run(alone, in_memory(edges)).fields["community"], weighted=False)


def test_weights_that_cannot_be() -> None:
    graph = from_edges([0, 1, 2], [1, 2, 0], [1.0, -0.5, 2.0], undirected=True)
    with pytest.raises(InputError, match=r"weight -0.5.*weight=False"):
        run("louvain", graph)
    assert run("louvain", graph, weight=False).fields["community"].tolist() == [0, 0, 0]
    zeros = from_edges([0, 1], [1, 2], [0.0, 0.0], undirected=True)
    assert run("louvain", zeros).fields["community"].tolist() == [0, 1, 2]
    assert fixed_point(zeros, by_weight=True) == 1.0
    huge = from_edges([0, 1], [1, 2], [1e300, 3e299], undirected=True)
    assert run("louvain", huge).fields["community"].tolist() == [0, 0, 0]


def test_what_is_refused(tmp_path: Path) -> None:
    edges = tangle(directed=False)
    with pytest.raises(InputError, match="resolution 1e\\+17 is too large"):
        run("louvain", in_memory(edges), resolution=1e17)
    with pytest.raises(InputError, match="without checkpoints"):
        run("louvain", in_memory(edges), checkpoint=tmp_path / "kept")
    with pytest.raises(InputError, match="whole rows"):
        run("louvain", from_edges([0, 1], [1, 2], undirected=True, layout="list"))


def test_a_session_goes_on_after_it() -> None:
    """Edges of earlier runs make room for it; what reads the number of bytes goes on counting."""
    edges = tangle(directed=False)
    with Session(in_memory(edges)) as session:
        before = session.run(Louvain()).fields["community"]
        session.run(Louvain(seed=1))
        np.testing.assert_array_equal(session.run(Louvain()).fields["community"], before)


def test_leidens_communities_are_connected() -> None:
    ends = skewed(200, 300, 3)
    edges = EdgeList(200, ends[0], ends[1], None, False)
    graph = in_memory(edges)
    for resolution in (0.1, 1.1):
        found = run("leiden", graph, resolution=resolution)
        check(edges, found.program, found.fields["community"])


def test_modularity_is_exact() -> None:
    """Sums of squares far beyond 2^64."""
    random = np.random.default_rng(1)
    total = random.integers(0, 1 << 45, 200)
    whole = int(total.sum())
    square = sum(int(one) ** 2 for one in total)
    assert squares(total) == square
    assert modularity(whole, square, whole, 1.0) == 1.0 - square / whole**2
    assert fine_bits(1.0, whole) == 61 - whole.bit_length()


def test_levels_have_room_on_a_device_that_has_it_for_the_graph(tmp_path: Path) -> None:
    """Chunks of levels are no larger than those of the graph: here 4 MiB of the usual ones would not fit."""
    edges = weighed(EdgeList(300, *skewed(300, 3000, 5), None, False), "uint8")
    graph = on_disk(edges, tmp_path / "graph.h5", chunk_edges=1 << 8)
    options = {"route": "filter", "device_edge_memory": 1 << 14, "partition_bytes": 1 << 10}
    found = run("louvain", graph, device="emulated", **options).fields["community"]
    np.testing.assert_array_equal(found, run("louvain", graph, device="cpu").fields["community"])


def test_the_c_library_keeps_no_large_block_of_a_level() -> None:
    """Buffers of each level have other sizes; kept, those of earlier levels come on top (`campaigns/test_peaks.py`)."""
    with mock.patch.object(session, "keep_no_large_blocks") as chosen:
        run("leiden", from_edges(*np.array(KARATE.edges).T, undirected=True))
    assert chosen.called
