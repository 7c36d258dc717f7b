"""What makes two graphs the same graph, wherever their files are: sizes, and a digest of what is stored.

Of a file the digest covers the checksums of all chunks, which opening has read anyway; of arrays in memory their bytes.
So a graph converted twice in the same way is the same, and one converted with another encoding or order is another.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.storage.encoding.codec import checksum
from penstock.storage.format.frames import Frames
from penstock.storage.format.graph import Graph


def fingerprint(graph: Graph) -> dict[str, Any]:
    """Vertices, edges, whether directed, size of the left side, and 16 hexadecimal digits of what is stored."""
    parts = [f"{graph.directed} {graph.left} {graph.vertex_dtype} {graph.weight_dtype}", *_rows(graph), *_ids(graph)]
    return {
        "vertices": graph.vertices,
        "edges": graph.edges,
        "directed": graph.directed,
        "content": f"{checksum(chr(10).join(parts).encode()):016x}",
    }


def _rows(graph: Graph) -> list[str]:
    if graph.out.arrays is not None:
        return [graph.graph_id]
    arrays = [(a.neighbors, a.weights, a.degrees) for a in graph.adjacencies]
    stored = [_of_frames(frames) for several in arrays for frames in several if frames is not None]
    return stored + [one.splice.digest for one in graph.adjacencies if one.splice is not None]


def _ids(graph: Graph) -> list[str]:
    original = graph.original
    if original is None:
        return []
    if not isinstance(original, np.ndarray):
        return [_of_frames(frames) for frames in original.arrays]
    if original.dtype.kind == "T":
        return [f"{checksum(chr(0).join(original.tolist()).encode()):016x}"]
    return [f"{checksum(np.ascontiguousarray(original)):016x}"]


def _of_frames(frames: Frames) -> str:
    spec = frames.spec
    return f"{spec.path} {spec.dtype} {spec.items} {spec.encoding} {checksum(frames.checksums):016x}"
