"""What exported edges take at least is never more than their file; about as many bytes are foretold as are written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from penstock.engine import Graph, from_edges
from penstock.storage.access.edge_files import ExportOptions, export_edges, exported_size
from penstock.storage.tables.formats import EDGES, formats_of

ENDS = np.random.default_rng(3).integers(0, 2000, (2, 6000))
NAMES = np.array([f"vertex {number}" for number in range(2000)])


def graph(kind: str) -> Graph:
    if kind == "names":
        return from_edges(*NAMES[ENDS])
    return from_edges(*ENDS, ENDS[0] % 100 + 0.5 if kind == "weights" else None, undirected=kind == "undirected")


@pytest.mark.parametrize("kind", ["plain", "weights", "undirected", "names"])
def test_sizes(kind: str, tmp_path: Path) -> None:
    edges = graph(kind)
    for format in formats_of(EDGES):
        if format == "npz" and kind == "names":
            continue
        for both in (False, True)[: 1 + (kind == "undirected")]:
            path = tmp_path / f"edges-{both}"
            export_edges(edges, path, ExportOptions(both), format=format)
            size, found = path.stat().st_size, exported_size(edges, format, both_directions=both)
            assert found.least <= size
            assert size / 4 < found.likely < 4 * size, (format, both)
            path.unlink()
