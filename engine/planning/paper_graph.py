"""A graph that need not exist, for what a run plans before it reads anything: as many vertices, edges and bytes.

Its edges are those of out-rows, in chunks of equal length, also once more by windows, and it has no weights.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from penstock.storage.format.frames import Frames
from penstock.storage.format.graph import Adjacency, Graph
from penstock.storage.format.row_pages import page_rows
from penstock.storage.format.schema import CHUNK_EDGES, CHUNK_VERTICES, ArraySpec, window_name

ROW_BYTES = 0.7
"""Bytes of a row's degree on disk: 11.4 MB for 16.8 M rows (R-MAT 24 x 2)."""


def paper_graph(vertices: int, edges: int, edge_bytes: float, windows: int = 0) -> Graph:
    """A graph of so many vertices and edges, each of so many bytes on disk; windows: of the file, 0: none."""
    dtype = np.dtype(np.uint32 if vertices <= 1 << 32 else np.uint64)
    neighbors = _frames("out/neighbors", dtype, edges, CHUNK_EDGES, edge_bytes)
    degrees = _frames("out/degrees", np.dtype(np.uint32), vertices, CHUNK_VERTICES, ROW_BYTES)
    out = Adjacency("out", edges, vertices, dtype, None, "packed", CHUNK_EDGES, neighbors=neighbors, degrees=degrees)
    if windows:
        page = page_rows(CHUNK_VERTICES)
        size = -(-vertices // (windows * page)) * page
        out = replace(
            out,
            window_vertices=size,
            windows=tuple(replace(out, direction=window_name("out", number)) for number in range(-(-vertices // size))),
        )
    return Graph(None, vertices, edges, edges, True, out, None, {}, "")


def _frames(path: str, dtype: np.dtype[Any], items: int, chunk: int, item_bytes: float) -> Frames:
    """The frames of an array of so many bytes an item, in no file."""
    lengths = np.full(-(-items // chunk), int(chunk * item_bytes), np.int64)
    zeros = np.zeros(len(lengths), np.int64)
    spec = ArraySpec(path, dtype.name, items, chunk, "packed", 0)
    return Frames(spec, (), zeros, zeros, lengths, zeros.astype(np.uint64), None)
