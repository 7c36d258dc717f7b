"""Stores of PyTorch Geometric on a graph file: its loaders give edges of the graph, and rows of the features."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock import engine
from penstock.engine import FeatureRows, Graph, NeighborSampler, from_edges
from penstock.storage.base.errors import InputError
from support.graphs import on_disk, shape

pytestmark = pytest.mark.filterwarnings("ignore")
with warnings.catch_warnings(action="ignore"):  # PyTorch Geometric uses what PyTorch no longer wants
    torch = pytest.importorskip("torch")
    loaders = pytest.importorskip("torch_geometric.loader")

ENDS = np.random.default_rng(1).integers(0, 400, (2, 4000)) * 3  # ids with gaps
X = np.random.default_rng(2).random((1200, 16), np.float32)


def stores_of(folder: Path, fanouts: list[int], **options: Any) -> tuple[Any, Any]:
    np.save(folder / "x.npy", X)
    from_edges(*ENDS).save(folder / "g.h5")
    sampler = NeighborSampler(folder / "g.h5", fanouts, **options)
    features: Any = engine.pyg_stores(
        sampler, x=FeatureRows(folder / "x.npy", host_memory="266KiB"), y=torch.arange(1200)
    )
    return features


@pytest.mark.parametrize(("workers", "method"), [(0, None), (2, "fork"), (2, "spawn")])
def test_a_neighbor_loader_samples_the_file(tmp_path: Path, workers: int, method: str | None) -> None:
    stores = stores_of(tmp_path, [5, 3])
    ids, edges = torch.from_numpy(np.unique(ENDS)), set(zip(*ENDS.tolist(), strict=True))
    loader = loaders.NeighborLoader(
        stores,
        [5, 3],
        input_nodes=ids,
        neighbor_sampler=stores[1],
        batch_size=90,
        num_workers=workers,
        multiprocessing_context=method,
    )
    seen = []
    for batch in loader:
        seen += batch.n_id[: batch.batch_size].tolist()
        np.testing.assert_array_equal(batch.y, batch.n_id)
        np.testing.assert_array_equal(batch.x, X[batch.n_id])
        assert set(zip(*batch.n_id[batch.edge_index].tolist(), strict=True)) <= edges
    assert seen == ids.tolist()


def test_all_edges_are_those_of_the_graph(tmp_path: Path) -> None:
    stores = stores_of(tmp_path, [-1])
    assert sorted(zip(*(one.tolist() for one in stores[1].get_edge_index(None, "coo")), strict=True)) == sorted(
        zip(*ENDS.tolist(), strict=True)
    )
    row, pointers, _ = stores[1].csc()
    assert (len(row), len(pointers)) == (4000, 1201)
    assert stores[0].get_tensor(None, "x", index=None).shape == stores[0].get_tensor_size(None, "x") == (1200, 16)
    with pytest.raises(InputError, match="only read here"):
        stores[1].put_edge_index((row, row), None, "coo")


def test_a_link_loader_samples_both_ends(tmp_path: Path) -> None:
    stores = stores_of(tmp_path, [5, 3])
    loader = loaders.LinkLoader(
        stores,
        link_sampler=stores[1],
        edge_label_index=(None, torch.from_numpy(ENDS)),
        batch_size=500,
        neg_sampling="binary",
    )
    batch = next(iter(loader))
    assert batch.edge_label.tolist() == [1.0] * 500 + [0.0] * 500
    np.testing.assert_array_equal(batch.n_id[batch.edge_label_index[:, :500]], ENDS[:, :500])


def test_vertices_with_names_go_by_their_numbers(tmp_path: Path) -> None:
    graph: Graph = from_edges(*(ENDS // 3).astype(str))
    sampler = NeighborSampler(graph, [3])
    stores: Any = engine.pyg_stores(sampler, y=np.arange(graph.vertices))
    loader = loaders.NeighborLoader(
        stores, [3], input_nodes=torch.arange(50), neighbor_sampler=stores[1], batch_size=50
    )
    batch = next(iter(loader))
    assert batch.n_id[:50].tolist() == list(range(50))
    np.testing.assert_array_equal(batch.y, batch.n_id)
    ids = graph.original_ids()
    pairs = set(zip(*(ENDS // 3).astype(str).tolist(), strict=True))
    assert set(zip(*ids[batch.n_id[batch.edge_index].numpy()].tolist(), strict=True)) <= pairs


def test_a_batch_is_that_of_a_data_loader(tmp_path: Path) -> None:
    sampler = NeighborSampler(on_disk(shape("skewed"), tmp_path / "g.h5"), [5, 3])
    loader = torch.utils.data.DataLoader(torch.arange(100), batch_size=40, collate_fn=sampler)
    torch.manual_seed(3)
    first = [one.node.tolist() for one in loader]
    torch.manual_seed(3)
    assert [one.node.tolist() for one in loader] == first
    assert [one.node.tolist() for one in loader] != first


def test_nodes_without_edges_are_alone(tmp_path: Path) -> None:
    stores = stores_of(tmp_path, [5, 3])
    ids = torch.tensor([1, 3, 2, 6, 1])
    (batch,) = loaders.NeighborLoader(stores, [5, 3], input_nodes=ids, neighbor_sampler=stores[1], batch_size=9)
    assert batch.n_id[:5].tolist() == ids.tolist()
    assert not set(batch.edge_index.unique().tolist()) & {0, 2, 4}
    assert set(zip(*batch.n_id[batch.edge_index].tolist(), strict=True)) <= set(zip(*ENDS.tolist(), strict=True))
    (alone,) = loaders.NeighborLoader(stores, [5, 3], input_nodes=ids[:1], neighbor_sampler=stores[1], batch_size=9)
    assert (alone.n_id.tolist(), alone.num_edges) == ([1], 0)


@pytest.mark.parametrize("links", [False, True])
def test_neighborhoods_end_at_the_times_of_seeds(tmp_path: Path, links: bool) -> None:
    days = np.random.default_rng(3).integers(0, 100, ENDS.shape[1])
    table = np.column_stack([*ENDS, days])
    np.savetxt(tmp_path / "p.csv", table, "%d", ",", header="src,dst,day", comments="")
    engine.convert(tmp_path / "p.csv", tmp_path / "p.h5", edge_properties="day", direction="both")
    stores: Any = engine.pyg_stores(NeighborSampler(tmp_path / "p.h5", [5, 3], time="day"), y=torch.arange(1200))
    seeds = torch.tensor([3, 1, 60, 3])  # 1 has no edges
    given: dict[str, Any] = {"batch_size": 9}
    if links:
        ends = torch.stack([seeds, seeds.flip(0)])
        given |= {"link_sampler": stores[1], "edge_label_index": (None, ends), "neg_sampling": "binary"}
        given |= {"edge_label_time": torch.tensor([20, 50, 90, 0])}
        (batch,) = loaders.LinkLoader(stores, **given)
        times = torch.tensor([20, 50, 90, 0])
        np.testing.assert_array_equal(batch.n_id[batch.edge_label_index[:, :4]], ends)
    else:
        times = torch.tensor([20, 50, 90, -1])
        given |= {"neighbor_sampler": stores[1], "input_nodes": seeds, "time_attr": "day", "input_time": times}
        (batch,) = loaders.NeighborLoader(stores, [5, 3], **given)
        assert batch.n_id[:4].tolist() == seeds.tolist()
        assert batch.batch[:4].tolist() == [0, 1, 2, 3]
        assert 3 not in batch.batch[4:].tolist()
    assert batch.num_edges > 0
    row, col = batch.edge_index
    np.testing.assert_array_equal(batch.batch[row], batch.batch[col])
    held: dict[tuple[int, int], int] = {}
    for u, v, day in table.tolist():
        held[u, v] = min(day, held.get((u, v), 100))
    for u, v, place in zip(batch.n_id[row].tolist(), batch.n_id[col].tolist(), batch.batch[row].tolist(), strict=True):
        assert held[u, v] <= times[place]


def test_refusals(tmp_path: Path) -> None:
    sampler = NeighborSampler(on_disk(shape("skewed"), tmp_path / "g.h5"), [5, 3])
    with pytest.raises(InputError, match="give one at least"):
        engine.pyg_stores(sampler)
    with pytest.raises(InputError, match="features have 7 rows, and the graph has nodes up to"):
        engine.pyg_stores(sampler, y=np.arange(7))
