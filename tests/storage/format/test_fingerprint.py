"""What makes two graphs the same."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from penstock.storage.format.fingerprint import fingerprint
from penstock.storage.format.graph import Graph
from support.graphs import in_memory, on_disk, shape
from support.oracles import EdgeList


def test_the_place_of_the_files_does_not_count(tmp_path: Path) -> None:
    edges = shape("skewed", weights="uint8")
    one, again = on_disk(edges, tmp_path / "one.h5"), on_disk(edges, tmp_path / "again.h5")
    shutil.copy(tmp_path / "one.h5", tmp_path / "copy.h5")
    found = fingerprint(one)
    assert found == fingerprint(again) == fingerprint(Graph.open(tmp_path / "copy.h5"))
    assert (found["vertices"], found["edges"], found["directed"]) == (200, 1500, True)
    (tmp_path / "stripe").mkdir()
    striped = on_disk(edges, tmp_path / "striped.h5", stripes=[tmp_path / "stripe", tmp_path])
    assert fingerprint(striped) == found


@pytest.mark.parametrize("stored", [True, False])
def test_anything_else_does(tmp_path: Path, stored: bool) -> None:
    edges = shape("skewed", weights="uint8")
    assert edges.weights is not None
    targets, weights = edges.targets.copy(), edges.weights.copy()
    targets[7], weights[9] = (targets[7] + 1) % edges.vertices, weights[9] + 1
    variants = [
        edges,
        EdgeList(edges.vertices, edges.sources, targets, edges.weights, True),
        EdgeList(edges.vertices, edges.sources, edges.targets, weights, True),
        EdgeList(edges.vertices, edges.sources, edges.targets, None, True),
        EdgeList(edges.vertices, edges.sources, edges.targets, edges.weights, False),
        EdgeList(edges.vertices + 1, edges.sources, edges.targets, edges.weights, True),
    ]
    graphs = [on_disk(v, tmp_path / f"{n}.h5") if stored else in_memory(v) for n, v in enumerate(variants)]
    assert len({str(fingerprint(graph)) for graph in graphs}) == len(variants)


def test_original_ids_count() -> None:
    rows = [0, 1, 2], [1, 0]
    kinds = [None, [7, 9], [7, 10], ["a", "b"], ["a", "c"]]
    found = [fingerprint(Graph.from_arrays(*rows, original_id=ids)) for ids in kinds]
    assert len({one["content"] for one in found}) == len(kinds)
    assert found[1] == fingerprint(Graph.from_arrays(*rows, original_id=np.array([7, 9])))
