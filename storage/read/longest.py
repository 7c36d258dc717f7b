"""The longest read and the longest payload of a graph's edges: what the buffers of a reader hold."""

from penstock.storage.encoding.codec import payload_bytes
from penstock.storage.format.frames import Frames
from penstock.storage.format.graph import Graph
from penstock.storage.format.read_plan import MOST_BYTES, PAGE


def longest_read(graph: Graph) -> int:
    """Return the bytes that the longest read can take: a full merged read, or one long frame; page-aligned."""
    longest = max((int(frames.lengths.max()) for frames in _edge_frames(graph) if len(frames.lengths)), default=0)
    return -(-max(longest, MOST_BYTES) // PAGE) * PAGE + PAGE


def longest_payload(graph: Graph) -> int:
    """Return the bytes that the longest frame decompresses to.

    A decoder has room for so many, and so has zstd where it stops before them.
    """
    specs = [frames.spec for frames in _edge_frames(graph)]
    return max((payload_bytes(spec.encoding, spec.kind, spec.chunk_items) for spec in specs), default=0)


def _edge_frames(graph: Graph) -> list[Frames]:
    """The frames of all neighbors and weights."""
    arrays = [frames for adjacency in graph.adjacencies for frames in (adjacency.neighbors, adjacency.weights)]
    return [frames for frames in arrays if frames is not None]
