"""The longest frame of a graph's edges and what decodes it: what the buffers of a reader hold."""

from penstock.storage.encoding.codec import payload_bytes
from penstock.storage.format.frames import Frames
from penstock.storage.format.graph import Graph

ZSTD_BYTES = 512 << 10
"""What zstd's tables and its input take in one decoder."""


def longest_frame(graph: Graph) -> int:
    """Return the bytes of the longest frame."""
    return max((int(frames.lengths.max()) for frames in _edge_frames(graph) if len(frames.lengths)), default=0)


def decoder_bytes(graph: Graph) -> int:
    """Return the bytes that a decoder of any frame takes.

    It has room for the longest that a frame decompresses to, and so has zstd where it stops before that.
    """
    specs = [frames.spec for frames in _edge_frames(graph)]
    longest = max((payload_bytes(spec.encoding, spec.kind, spec.chunk_items) for spec in specs), default=0)
    return 2 * longest + ZSTD_BYTES


def _edge_frames(graph: Graph) -> list[Frames]:
    """The frames of all neighbors and weights."""
    arrays = [frames for adjacency in graph.adjacencies for frames in (adjacency.neighbors, adjacency.weights)]
    return [frames for frames in arrays if frames is not None]
