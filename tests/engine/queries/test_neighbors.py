"""Sampled neighborhoods: edges of the graph, so many as asked for, equally likely, whatever memory there is."""

from __future__ import annotations

import importlib
import multiprocessing
import pickle
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from penstock.engine import Graph, NeighborSampler, convert, from_edges, sample_neighbors
from penstock.storage.base.errors import BudgetError, InputError
from support.graphs import in_memory, on_disk, shape, weighed
from support.other_processes import send_sample
from support.samples import assert_same


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("direction", ["in", "out"])
def test_samples_are_edges_hop_by_hop(replace: bool, direction: str) -> None:
    edges = shape("skewed")
    graph = in_memory(edges)
    given, fanouts = np.array([3, 0, 17]), (4, 2)
    sample = sample_neighbors(graph, given, fanouts, replace=replace, direction=direction, seed=2)
    near, node = sample.vertex[sample.row], sample.vertex[sample.col]
    pairs = set(zip(edges.sources.tolist(), edges.targets.tolist(), strict=True))
    ends = (near, node) if direction == "in" else (node, near)
    assert set(zip(*(end.tolist() for end in ends), strict=True)) <= pairs
    assert sample.vertex[:3].tolist() == given.tolist()
    assert len(set(sample.vertex.tolist())) == len(sample.vertex) == sum(sample.nodes_per_hop)
    assert len(sample.row) == len(sample.edge) == sum(sample.edges_per_hop)
    np.testing.assert_array_equal(sample.edge_index, [sample.row, sample.col])
    degrees = np.bincount(edges.targets if direction == "in" else edges.sources, minlength=graph.vertices)
    first = 0
    for hop, fanout in enumerate(fanouts):
        asked = range(first, first + sample.nodes_per_hop[hop])
        start = sum(sample.edges_per_hop[:hop])
        of = sample.col[start : start + sample.edges_per_hop[hop]]
        least = np.where(degrees > 0, fanout, 0) if replace else np.minimum(degrees, fanout)
        np.testing.assert_array_equal(
            np.bincount(of, minlength=asked.stop)[first:], least[sample.vertex[first : asked.stop]]
        )
        first = asked.stop
    if not replace:
        assert len(np.unique(sample.edge)) == len(sample.edge)


@pytest.mark.parametrize(("replace", "fanout"), [(False, 3), (True, 2)])
def test_neighbors_are_equally_likely(replace: bool, fanout: int) -> None:
    from scipy.stats import chisquare  # half a second to import

    star = np.arange(1, 9)
    with NeighborSampler(from_edges(star, np.zeros(8, int)), [fanout], replace=replace) as sampler:
        drawn = np.concatenate([sampler.sample([0], seed=seed).edge for seed in range(400)])
    assert chisquare(np.bincount(drawn, minlength=8)).pvalue > 1e-4


def test_neighbors_are_drawn_by_weight() -> None:
    from scipy.stats import chisquare  # half a second to import

    weights = np.array([1.0, 0.0, 2.0, 3.0, 4.0])
    graph = from_edges(np.arange(1, 6), np.zeros(5, int), weights)
    likely = weights / weights.sum()
    first, second = np.meshgrid(likely, likely, indexing="ij")
    pairs = np.where(np.eye(5, dtype=bool), 0.0, first * second / (1 - first))  # one after the other
    for replace, expected in ((True, 2 * likely), (False, pairs.sum(0) + pairs.sum(1))):
        with NeighborSampler(graph, [2], replace=replace, weight=True) as sampler:
            drawn = np.concatenate([sampler.sample([0], seed=seed).edge for seed in range(500)])
        counts = np.bincount(drawn, minlength=5)
        assert counts[1] == 0
        assert chisquare(counts[weights > 0], 500 * expected[weights > 0]).pvalue > 1e-4
    few = sample_neighbors(graph, [0, 3], [5, 9, -1], weight=True)
    assert (few.nodes_per_hop, few.edges_per_hop) == ([2, 3, 0, 0], [4, 0, 0])
    assert sample_neighbors(graph, [0], [-1], weight=True).edges_per_hop == [5]
    with pytest.raises(InputError, match="weight is True, and the graph has no weights"):
        sample_neighbors(in_memory(shape("skewed")), [0], [3], weight=True)


def test_layers_are_blocks_and_data_of_geometric_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = sample_neighbors(in_memory(shape("skewed")), [3, 17], [3, 2], seed=4)
    outer, inner = sample.blocks()
    assert (inner.targets, outer.targets) == (2, inner.sources)
    assert outer.sources == len(sample.node)
    assert len(outer.row) == len(sample.row)
    for block in (outer, inner):
        assert block.col.max() < block.targets <= block.row.max() < block.sources

    class Data:
        def __init__(self, **values: Any) -> None:
            vars(self).update(values)

    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(from_numpy=lambda array: array))
    monkeypatch.setitem(sys.modules, "torch_geometric.data", SimpleNamespace(Data=Data))
    monkeypatch.setitem(sys.modules, "torch_geometric", SimpleNamespace())
    data = sample.to_pyg()
    assert data.n_id is sample.vertex
    assert (data.batch_size, data.num_sampled_edges) == (2, sample.edges_per_hop)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match="pip install torch torch_geometric"):
        sample.to_pyg()


def test_samples_are_the_same_out_of_core(tmp_path: Path) -> None:
    edges = shape("skewed")
    graph = on_disk(edges, tmp_path / "g.h5")
    seeds = np.arange(0, 200, 7)
    expected = sample_neighbors(in_memory(edges), seeds, [5, -1, 3], seed=9)
    with pytest.raises(BudgetError) as refused:
        NeighborSampler(graph, [5], host_memory=2000)
    least = 0
    with NeighborSampler(graph, [5, -1, 3], host_memory=f"{refused.value.least_mib}MiB", threads=1) as whole:
        assert_same(whole.sample(seeds, seed=9), expected)
        least = whole._edges._rows.chunk_edges
    with NeighborSampler(graph, [5, -1, 3]) as sampler:
        sampler._edges.kept, sampler._edges._slab = None, np.empty(3 * least, np.uint32)
        sampler._edges._reader = reader_of(graph)
        assert_same(sampler.sample(seeds, seed=9), expected)


@pytest.mark.parametrize("replace", [False, True])
def test_weighted_samples_are_the_same_out_of_core(tmp_path: Path, *, replace: bool) -> None:
    edges = weighed(shape("skewed"), "uint8")
    graph, seeds = on_disk(edges, tmp_path / "g.h5", chunk_edges=256), np.arange(0, 200, 7)
    expected = sample_neighbors(in_memory(edges), seeds, [5, 3], seed=9, weight=True, replace=replace)
    with NeighborSampler(graph, [5, 3], weight=True, replace=replace) as sampler:
        assert_same(sampler.sample(seeds, seed=9), expected)
        held = sampler._edges
        held.kept = held._weights = None
        held._slab, held._weight_slab = np.empty(3 * 256, np.uint32), np.empty(3 * 256, np.uint8)
        held._reader = reader_of(graph)
        assert_same(sampler.sample(seeds, seed=9), expected)


DAYS = np.random.default_rng(6).integers(0, 100, 1500)


def timed(folder: Path) -> tuple[Any, dict[tuple[int, int], list[int]]]:
    """A graph whose edges have days, in chunks of 256, and the days by both ends."""
    edges = shape("skewed")
    table = np.column_stack([edges.sources, edges.targets, DAYS[: len(edges.sources)]])
    np.savetxt(folder / "t.csv", table, "%d", ",", header="src,dst,day", comments="")
    with mock.patch("penstock.storage.format.adjacency_writer.CHUNK_EDGES", 256):
        convert(folder / "t.csv", folder / "t.h5", edge_properties="day", direction="both", renumber=False)
    held: dict[tuple[int, int], list[int]] = {}
    for u, v, day in table.tolist():
        held.setdefault((u, v), []).append(day)
    return Graph.open(folder / "t.h5"), held


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("direction", ["in", "out"])
def test_edges_are_not_later_than_the_time_of_each_seed(tmp_path: Path, direction: str, replace: bool) -> None:
    graph, held = timed(tmp_path)
    seeds, until, fanouts = [3, 17, 3, 60, 3], [30, 70, 70, 99, -1], [4, 3] if replace else [4, -1, 2]
    with NeighborSampler(graph, fanouts, time="day", direction=direction, replace=replace) as sampler:
        sample = sampler.sample(seeds, until=until, seed=5)
        assert sample.batch is not None
        assert sample.batch[:5].tolist() == [0, 1, 2, 3, 4]
        nodes = list(zip(sample.batch.tolist(), sample.vertex.tolist(), strict=True))
        assert len(set(nodes)) == len(nodes) == sum(sample.nodes_per_hop)
        drawn: dict[tuple[int, int], int] = {}
        for row, col in zip(sample.row.tolist(), sample.col.tolist(), strict=True):
            assert sample.batch[row] == sample.batch[col]
            near, node = int(sample.vertex[row]), int(sample.vertex[col])
            days = held[(near, node) if direction == "in" else (node, near)]
            assert min(days) <= until[sample.batch[col]]
            drawn[col, row] = drawn.get((col, row), 0) + 1
        ways = {
            v: [d for (a, b), held_days in held.items() if (b if direction == "in" else a) == v for d in held_days]
            for v in set(sample.vertex.tolist())
        }
        hop_of = np.repeat(np.arange(len(sample.nodes_per_hop)), sample.nodes_per_hop)
        for place, (seed, vertex) in enumerate(nodes):
            hop = int(hop_of[place])
            if hop < len(fanouts):
                there = sum(day <= until[seed] for day in ways[vertex])
                most = there if fanouts[hop] < 0 else fanouts[hop] if replace and there else min(fanouts[hop], there)
                assert sum(count for (col, _), count in drawn.items() if col == place) == most
        alone = [sampler.sample([seed], until=time, seed=5) for seed, time in zip(seeds, until, strict=True)]
        assert sum(len(one.edge) for one in alone) == len(sample.edge), "a seed draws the same alone"
        pairs = list(zip(seeds, until, strict=True))
        with mock.patch("penstock.engine.queries.neighbors.torch_seed", return_value=5):
            assert_same(sampler(pairs), sample)
        again = sampler.sample_together([seeds, [17]], until=[until, 70], seed=5)
        for few in (70, [until]):
            with pytest.raises(InputError, match="until has 1 entries for 2 batches"):
                sampler.sample_together([seeds, [17]], until=few)
        assert_same(again[0], sample)
        assert_same(pickle.loads(pickle.dumps(sampler)).sample(seeds, until=until, seed=5), sample)
        held_edges = sampler._edges
        held_edges.kept = held_edges._weights = None
        held_edges._slab, held_edges._weight_slab = np.empty(3 * 256, np.uint32), np.empty(3 * 256, np.uint8)
        held_edges._reader = reader_of(sampler.graph)
        assert_same(sampler.sample(seeds, until=until, seed=5), sample)


def test_edges_in_time_are_equally_likely(tmp_path: Path) -> None:
    from scipy.stats import chisquare

    np.savetxt(tmp_path / "s.csv", [(i, 0, i) for i in range(1, 13)], "%d", ",", header="src,dst,day", comments="")
    convert(tmp_path / "s.csv", tmp_path / "s.h5", edge_properties="day", direction="both", renumber=False)
    for replace in (False, True):
        with NeighborSampler(tmp_path / "s.h5", [3], time="day", replace=replace) as sampler:
            drawn = np.concatenate([sampler.sample([0], until=8, seed=seed).node[1:] for seed in range(400)])
        counts = np.bincount(drawn, minlength=13)
        assert (counts[0], counts[9:].sum()) == (0, 0)
        if not replace:
            assert chisquare(counts[1:9]).pvalue > 1e-4


@pytest.mark.parametrize(
    ("options", "until", "message"),
    [
        ({"time": "day"}, None, "time and until belong together"),
        ({}, 3, "time and until belong together"),
        ({"time": "day"}, [3, 4, 5], "until has 3 values; give one, or one for each of 2 sources"),
        ({"time": "other"}, 3, "'other' is no time of edges"),
        ({"time": "day", "weight": True}, 3, "leave these out"),
        ({"time": "day", "where": "day < 3"}, 3, "leave these out"),
    ],
)
def test_bad_times(tmp_path: Path, options: dict[str, Any], until: Any, message: str) -> None:
    graph, _ = timed(tmp_path)
    with pytest.raises(InputError, match=message):
        sample_neighbors(graph, [3, 17], [2], until=until, **options)


def test_a_seed_keeps_all_its_places() -> None:
    graph = in_memory(shape("skewed"))
    once, twice = (sample_neighbors(graph, seeds, [4, -1], seed=3) for seeds in ([3, 17], [3, 17, 3]))
    assert twice.node[:3].tolist() == [3, 17, 3]
    assert twice.nodes_per_hop == [3, *once.nodes_per_hop[1:]]
    pairs = [twice.node[twice.row][twice.col == place].tolist() for place in range(3)]
    assert pairs[0] == pairs[2] == once.node[once.row][once.col == 0].tolist() != []
    assert pairs[1] == once.node[once.row][once.col == 1].tolist()
    assert set(twice.row[twice.row < 3].tolist()) <= {0, 1}  # an edge leads from the first place of a seed


@pytest.mark.parametrize("weight", [False, True])
def test_batches_together_are_those_alone(tmp_path: Path, weight: bool) -> None:
    edges = weighed(shape("skewed"), "uint8")
    graph = on_disk(edges, tmp_path / "g.h5", chunk_edges=256)
    batches = [[3, 17, 60], [17], np.arange(0, 200, 7)]
    sampler = NeighborSampler(graph, [5, -1, 3], weight=weight)
    expected = [sampler.sample(batch, seed=9 + i) for i, batch in enumerate(batches)]
    for _ in range(2):
        for one, other in zip(sampler.sample_together(batches, seed=9), expected, strict=True):
            assert_same(one, other)
        if not weight:
            read_in_chunks(sampler)
    assert sampler.sample_together([]) == []


class Tensor:
    """What a tensor of PyTorch has of an array."""

    def __init__(self, values: Any) -> None:
        self.values, self.detach = np.asarray(values), None
        self.item = self.values.item

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.values


def test_seeds_are_tensors_and_batches_of_them() -> None:
    graph = in_memory(shape("skewed"))
    expected = sample_neighbors(graph, [3, 17], [4, 2])
    for seeds in (Tensor([3, 17]), [Tensor(3), Tensor(17)], np.array([3, 17])):
        assert_same(sample_neighbors(graph, seeds, [4, 2]), expected)
    assert_same(sample_neighbors(graph, Tensor(3), [4, 2]), sample_neighbors(graph, 3, [4, 2]))


def test_a_batch_has_random_numbers_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = NeighborSampler(in_memory(shape("skewed")), [4, 2])
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(randint=lambda end, shape: min(end, 5)))
    assert_same(sampler([3, 17]), sampler.sample([3, 17], seed=5))


@pytest.mark.parametrize("seed", [-1, 1 << 63, 0.5, True])
def test_numbers_that_seed_nothing(seed: Any) -> None:
    with pytest.raises(InputError, match=r"seed is .*; give a whole number from 0 to"):
        sample_neighbors(in_memory(shape("skewed")), [3], [2], seed=seed)


def test_without_torch_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "penstock.engine.queries.pyg", raising=False)
    with pytest.raises(InputError, match="pip install torch"):
        NeighborSampler(in_memory(shape("skewed")), [2])([3])
    with pytest.raises(ImportError, match="torch cannot be imported; pip install torch torch_geometric"):
        importlib.import_module("penstock.engine.queries.pyg")


def read_in_chunks(sampler: NeighborSampler) -> NeighborSampler:
    """The same sampler without the edges that it has in memory."""
    sampler._edges.kept, sampler._edges._slab = None, np.empty(3 * 256, np.uint32)
    sampler._edges._reader = reader_of(sampler.graph)
    return sampler


@pytest.mark.parametrize(("method", "source"), [("fork", "chunks"), ("fork", "memory"), ("spawn", "file")])
def test_other_processes_sample_the_same(tmp_path: Path, method: str, source: str) -> None:
    edges = shape("skewed")
    graph: Any = on_disk(edges, tmp_path / "g.h5", chunk_edges=256)
    sampler = NeighborSampler(in_memory(edges) if source == "memory" else graph, [5, 3])
    if source == "chunks":
        read_in_chunks(sampler)
    expected = sampler.sample([3, 17, 60], seed=9)
    context = multiprocessing.get_context(method)
    receiver, sender = context.Pipe(duplex=False)
    with warnings.catch_warnings(action="ignore"):  # of forks beside threads
        process = context.Process(target=send_sample, args=(sampler, sender))
        process.start()
    sender.close()  # so that a process that ends early is seen at once
    assert receiver.poll(120)
    assert_same(receiver.recv(), expected)
    process.join(60)
    assert process.exitcode == 0
    assert_same(sampler.sample([3, 17, 60], seed=9), expected)


def test_a_sampler_is_made_again_of_its_graph_alone(tmp_path: Path) -> None:
    edges = shape("skewed")
    graph = on_disk(edges, tmp_path / "g.h5")
    for source in (in_memory(edges), graph):
        sampler = NeighborSampler(source, [5, 3], replace=True)
        kept = pickle.dumps(sampler)
        again = pickle.loads(kept)
        assert again._threads == 1
        assert_same(again.sample([3, 17], seed=2), sampler.sample([3, 17], seed=2))
    graph.path.unlink()
    on_disk(shape("path"), tmp_path / "g.h5")
    with pytest.raises(InputError, match="another graph now"):
        pickle.loads(kept)


def reader_of(graph: Any) -> Any:
    from penstock.storage.read.reader import Reader

    return Reader(graph, decode_threads=1)


@pytest.mark.parametrize(
    ("seeds", "fanouts", "options", "message"),
    [
        ([900], [3], {}, "vertex 900 is not in the graph"),
        (None, [3], {}, "seeds are None; give ids"),
        ([0], [], {}, "fanouts is"),
        ([0], [0], {}, "fanouts has 0; give numbers from 1"),
        ([0], [-1], {"replace": True}, "leave replace out"),
        ([0], [3], {"direction": "up"}, "give one of in, out"),
    ],
)
def test_refusals(seeds: Any, fanouts: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        sample_neighbors(in_memory(shape("skewed")), seeds, fanouts, **options)


def test_in_edges_must_be_stored() -> None:
    with pytest.raises(InputError, match="does not store in-edges"):
        sample_neighbors(in_memory(shape("skewed"), both=False), [0], [3])
