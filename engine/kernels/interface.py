"""The kernels' interface: what the reference, the host's and a GPU's kernels all offer, and the values they take.

`Kernels`, over the kind of state that they work on (`State` or `DeviceState`), is what callers ask for; those of
programs on whole rows, of lists and of cores have some more. Views, indexes and scalars are those of one program on
one graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from penstock.storage.encoding.payload import BLOCK

if TYPE_CHECKING:
    from penstock.engine.program.bindings import Author
    from penstock.engine.state.fused_iterations import FusedLimits
    from penstock.engine.state.row_blocks import RowBlock
    from penstock.engine.state.row_prefix_cache import RowPrefixCache
    from penstock.engine.state.state import Frontier
    from penstock.storage.format.index import Index
    from penstock.transfer.values.task import TaskRecord
    from penstock.transfer.values.view import View

LEAST_PAIRS = 1 << 13
HALF, LOWER = np.uint64(32), np.uint64(0xFFFFFFFF)
"""Of a key, source << 32 | target: the bits of an end, and the target's."""
STEP_BLOCKS = 256
"""Blocks of a step of a packed sweep (`host/packed_sweep.py`); memory is planned by these sizes. Where the first begins
is found by adding up the sizes of all before it in its chunk."""
TURN_BLOCKS = 16
"""Blocks that are decoded at once: with 2, 4 and 8 a sweep takes up to a tenth longer."""
STEP_EDGES = STEP_BLOCKS * BLOCK
RING = 2 * TURN_BLOCKS * BLOCK
"""Ids of a ring of two turns."""
SCRATCH = RING + BLOCK
"""Ids that a step has room for: a ring, and the residuals of a block."""

WaysName = Literal["forward", "reverse", "both", "undirected"]


class Ways(NamedTuple):
    """forward, reverse: from sources to targets, and back. loops_once: an edge from a vertex to itself goes one way."""

    forward: bool
    reverse: bool
    loops_once: bool


WAYS: dict[WaysName, Ways] = {
    "forward": Ways(forward=True, reverse=False, loops_once=False),
    "reverse": Ways(forward=False, reverse=True, loops_once=False),
    "both": Ways(forward=True, reverse=True, loops_once=False),
    "undirected": Ways(forward=True, reverse=True, loops_once=True),
}
ALONG: dict[str, WaysName] = {"out": "forward", "in": "reverse", "both": "both"}


def ways_along(along: str, *, directed: bool) -> WaysName:
    """Return the ways of a program with this `along`. An undirected edge is in the rows of both ends, a loop once."""
    return ALONG[along] if directed else "undirected"


S = TypeVar("S", contravariant=True)
Scalars = tuple[Any, ...]
"""The program's scalars, as `bindings.scalar_values` gives them."""
Indices = tuple["Index", "Index"]
"""Of the adjacency that is pulled along, and of the one that the program sends along."""


class EdgeView(NamedTuple):
    """Edges [e0, e1) of one adjacency whose rows are in [v0, v1), as kernels take them.

    neighbors[i] and weights[i] belong to edge e0 + i; weights of a run without weights: one item that nothing reads.
    e0, e1: int64; v0, v1: uint64.
    """

    neighbors: Any
    weights: Any
    e0: Any
    e1: Any
    v0: Any
    v1: Any


class PackedView(NamedTuple):
    """The same edges packed, without weights: payloads of chunks, of which the first has edge e0 and on.

    words: uint32; the payload of chunk c of the view begins at words[starts[c]] (int64). chunk_edges: int64.
    """

    words: Any
    starts: Any
    chunk_edges: Any
    e0: Any
    e1: Any
    v0: Any
    v1: Any


class SharedLists(NamedTuple):
    """Vertices and their values in memory of the host; `…_here`: as kernels read and write it in place."""

    ids: NDArray[Any]
    values: NDArray[Any]
    ids_here: Any
    values_here: Any


class VertexArrays(NamedTuple):
    """What a kernel over edges reads and writes of the vertices from `base` (uint64) on, besides their fields.

    sent: what each sends, one item if that is nothing. target: where messages are combined. touched, summary: bitmap of
    the vertices whose target changed, and its second level, which a GPU's has not (there: `touched` once more).
    """

    sent: Any
    target: Any
    touched: Any
    summary: Any
    base: Any


class Kernels(Protocol[S]):
    """The kernels of one program on one device. Only one thread of a process calls them at a time."""

    author: Author

    @property
    def loads(self) -> int:
        """How many kernels have been compiled or loaded so far, where that is counted (on a GPU)."""

    def use(self) -> None:
        """Take the device, or the threads, that they may use; call before a run of kernels."""

    def close(self) -> None:
        """Free what they hold on the device."""

    def exchange_kernels(self) -> Any:
        """Return the kernels by which ranks merge what they have found."""

    # Loops over the edges of a view: push along out-edges, pull along in-edges.

    def send(self, state: S, frontier: Frontier, index: Index, scalars: Scalars) -> None:
        """Compute what the frontier's vertices send, where the program has a `send`."""

    def push(self, view: View, state: S, frontier: Frontier, index: Index, scalars: Scalars) -> None:
        """Send along the frontier's out-edges that the view holds; of a compacted view, along all of them."""

    def unmark_sent(self, view: View, state: S, frontier: Frontier, index: Index) -> None:
        """Let nothing be pending, before a push, of what it sends along rows that the view has whole."""

    def push_resend(
        self, view: View, state: S, frontier: Frontier, index: Index, scalars: Scalars, due: tuple[float, int],
        followed: TaskRecord,
    ) -> None:  # fmt: skip
        """Send again, from what has become pending since the frontier was pushed and has all its edges in the view.

        due: the limit of priorities, and how often, until nothing is pending. Rows and edges are added to those of
        `followed`, the edges also to what the view's record says was sent again.
        """

    def pull(self, view: View, state: S, frontier: Frontier, indices: Indices, scalars: Scalars, skip: int = 0) -> None:
        """Gather along the in-edges that the view holds, less the first `skip` of each row (early exit only)."""

    def relax_unsettled(self, view: View, state: S, index: Index, scalars: Scalars) -> None:
        """Relax the view's rows of unsettled vertices both ways; a vertex that has sent so is pending no more."""

    def pull_unmatched(self, state: S, index: Index, scalars: Scalars) -> None:
        """Gather along the rows that the last pull kept in `state.unmatched`, which kernels of the cores alone do.

        index: of the out-adjacency.
        """

    def record_matched(self, state: S) -> None:
        """Remember the vertices that have a message now; `skip` then passes over them."""

    def cache_row_prefixes(self, view: View, index: Index, heads: RowPrefixCache) -> None:
        """Copy the first edges of the view's rows into the cache."""

    # Bitmaps of vertices: which are pending, which are active.

    def select(self, state: S, index: Index, scalars: Scalars, limit: float) -> Frontier:
        """Move what is pending with a priority below `limit` into the frontier, and list it where it is small."""

    def mark(self, state: S, active: NDArray[Any]) -> None:
        """Make these vertices (less `first`) pending, or those where a mask (bool, from `first` on) is True."""

    def marks(self, state: S) -> NDArray[np.uint32] | NDArray[np.uint64]:
        """Return the bitmap of the active vertices, in host memory; valid until the next select."""

    # Loops over vertices.

    def apply(self, state: S, frontier: Frontier, index: Index, scalars: Scalars) -> None:
        """Turn combined messages into new values and the next pending vertices."""

    def reduce(self, state: S, index: Index, scalars: Scalars) -> None:
        """Leave the Globals' shares of the present values in `state.partial`."""

    # What an iteration needs of each partition; sizes: edges of a partition, of a chunk, of a 128-byte line.

    def count_active(
        self,
        state: S,
        index: Index,
        sizes: tuple[int, int, int],
        table: NDArray[np.int64],
        chunks: NDArray[np.uint8],
        blocks: Any = None,
    ) -> None:
        """Demand of a push: table int64[partitions * 3] (vertices, edges, lines), chunks uint8; of the host, zero.

        blocks: a bitmap of the kernels' device, uint32[ceil(blocks of 256 edges / 32)]; None: not asked for. Bit b & 31
        of word b >> 5 is set where an active row has edges of block b, and no other. The table is then
        int64[partitions * 4], with the marked blocks that begin in the partition.
        """

    def count_cond(
        self,
        state: S,
        index: Index,
        scalars: Scalars,
        sizes: tuple[int, int, int],
        table: NDArray[np.int64],
        chunks: NDArray[np.uint8],
        skip: int = 0,
        blocks: Any = None,
        function: str = "cond",
    ) -> None:
        """Demand of a pull, likewise; skip as in `pull`. function: "unsettled" for the rows of `relax_unsettled`."""

    def add_pending(
        self, state: S, index: Index, scalars: Scalars, partition_edges: int, values: NDArray[np.float64]
    ) -> None:
        """Add the active vertices' pending values to `values`, float64[partitions], where their rows begin."""

    # Several iterations in one call.

    over_links: bool
    """Whether `fused_iterations` may read edges over a link."""
    both_ways: bool
    """Whether `fused_iterations` may be given a second adjacency."""

    def can_fuse(self, frontier: Frontier) -> bool:
        """Whether `fused_iterations` serves the program, and this frontier, if all edges are in memory."""

    def fused_iterations(
        self, view: View, state: S, frontier: Frontier, index: Index, scalars: Scalars, bounds: FusedLimits,
        against: tuple[View, Index] | None = None,
    ) -> tuple[NDArray[np.int64], float]:  # fmt: skip
        """Run iterations from this frontier on, along all edges of a resident adjacency, in one call.

        against: a second adjacency, along which the frontier's messages go too. Returns int64[iterations, 2], vertices
        and edges of every frontier, and the limit at the end. The vertices to go on with are pending; if there was no
        iteration, nothing has changed.
        """

    # Disjoint-set forests: the combiner `union`. The forest is the first field.

    def link_first_neighbors(self, view: View, state: S, index: Index, each: int) -> None:
        """Link the rows of the view with their first `each` neighbors."""

    def link_rows(self, view: View, state: S, index: Index, done_each: int, skipped: Any, symmetric: bool) -> None:
        """Link the view's edges, less the first `done_each` of a row and those inside the tree `skipped`."""

    def mark_outside(self, state: S, index: Index, largest: Any, own: tuple[int, int]) -> None:
        """Make pending every vertex of `own` that has edges and is not in the tree `largest`; these compressed."""

    def link_listed(self, view: View, state: S, frontier: Frontier, index: Index, largest: Any) -> None:
        """Link the rows of the view that lie outside the tree `largest`, which are the frontier's."""

    def linked_outside(self, state: S, own: tuple[int, int], span: tuple[int, int]) -> Any:
        """Return the vertices of a span outside `own` that are no roots, and behind these their parents: one array."""

    def link_pairs(self, state: S, pairs: Any) -> None:
        """Link vertices of the first half of `pairs` with those of the second, each with that in its place."""

    def compress(self, state: S, own: tuple[int, int] | None = None) -> None:
        """Let every vertex point to its root; own: only vertices from the first to before the second."""

    def largest_tree(self, state: S, own: tuple[int, int] | None = None) -> tuple[int, float]:
        """Return the root of (very likely) the largest tree, and about its share of the vertices; these compressed.

        own: of the vertices from the first to before the second that are no roots; (-1, 0) if there are none.
        """


class OpenPairs(NamedTuple):
    """Pairs of vertices whose trees have still to be joined, most of which are listed once.

    ends: (room, 2), of which the first `listed` (int64, one item) are some, and the others 0. latest: uint32, a power
    of two of them: where the last pair with a hash is.
    """

    ends: Any
    listed: Any
    latest: Any

    @classmethod
    def within(cls, size: int, dtype: Any) -> OpenPairs:
        """Room for those that so many bytes hold, or for the fewest that are worth a call."""
        pair = 2 * dtype.itemsize
        slots = 1 << max(LEAST_PAIRS, size // (pair + 4)).bit_length() - 1
        room = max(slots, (size - 4 * slots) // pair)
        return cls(np.zeros((room, 2), dtype), np.zeros(1, np.int64), np.zeros(slots, np.uint32))

    @property
    def free(self) -> int:
        """How many more have room."""
        return len(self.ends) - int(self.listed[0])


class WindowKernels(Kernels[S], Protocol[S]):
    """The kernels of one program where values of vertices may be in pages.

    hot_first: whether the graph's first vertices have the most edges. picks: whether `in_window` picks edges, which is
    only then there.
    """

    hot_first: bool
    picks: bool

    def empty(self, state: S) -> None:
        """Let messages be combined with nothing."""

    def in_window(
        self, view: View, state: S, frontier: Frontier, index: Index, window: tuple[int, int], *, pushes: bool,
        accepted: bool = False, again: bool = False, marks: Any = None,
    ) -> View:  # fmt: skip
        """What a view holds of edges to these vertices; for pushes that of active rows, compacted.

        accepted: only those to vertices that have no message; again: or that have got one in this walk. marks: words of
        a bitmap of the rows that are meant in place of the active ones.
        """

    # Of the cores, where trees are linked (`execution/union_find.py`).

    def link_held(
        self, view: View, state: S, index: Index, held: int, giant: int, pairs: OpenPairs, *, symmetric: bool
    ) -> None:
        """Link the view's edges where the trees of vertices before `held` alone are in memory.

        giant: one of them, in whose tree those behind are that become active; `held`: none yet. pairs: with room for
        one of each edge; gets other pairs of which one is behind. symmetric: whether each edge is in two rows.
        """

    def drop_joined_pairs(self, state: S, held: int, giant: int, pairs: OpenPairs) -> None:
        """Keep of the pairs of `link_held` those that are not joined by what became active since."""

    def link_window(self, view: View, state: S, index: Index, window: tuple[int, int], pairs: OpenPairs) -> bool:
        """Link the view's edges to a window of vertices as far as its trees, and those of the view's rows, lead.

        pairs: with room for one of each edge; gets those that have to be joined elsewhere. Returns whether rows outside
        the window have changed.
        """

    def join_pairs(self, state: S, window: tuple[int, int], pairs: OpenPairs) -> None:
        """Join pairs as far as the trees of a window lead, and leave what remains in their place: 0, 0 if nothing."""

    def compress_held(self, state: S, vertices: tuple[int, int], window: tuple[int, int]) -> bool:
        """Let vertices point to where the trees of a window lead; returns whether this has changed any."""


class BlockKernels(Kernels[S], Protocol[S]):
    """The kernels of one program on a list: `push` and `link_rows` walk blocks of edges, whose items are keys.

    A key is source << 32 | target. The index that these are given is of the degrees of the vertices that send.
    """

    ways: WaysName
    """Which ways messages go."""

    def choose_blocks(self, wanted: NDArray[np.bool_] | None) -> None:
        """Walk only these blocks of `LIST_BLOCK` edges from now on; None: all."""


class WholeRowKernels(Kernels[S], Protocol[S]):
    """The kernels of one program on whole rows: messages side by side in a buffer, or vectors, which `pull` combines.

    And rows as sets of neighbors, oriented and intersected; buffers, counts and rows are the device's.
    """

    def collect(
        self, view: View, state: S, block: RowBlock, walk: int, out: Index, scalars: Scalars, buffer: Any
    ) -> None:
        """Put the messages of the view's edges that belong to the block's rows in their places in the buffer."""

    def apply_rows(
        self, state: S, following: tuple[Any, ...], block: RowBlock, out: Index, scalars: Scalars, buffer: Any
    ) -> None:
        """Run `vertex` on the rows of the block; new values go to `following`, shares of the Globals to `partial`."""

    def clear_partial(self, state: S) -> None:
        """Set the Globals' shares to what changes nothing."""

    def copy_rows(self, view: View, block: RowBlock, walk: int, buffer: Any) -> None:
        """Put the neighbors that the view holds of the block's rows in their places in the buffer."""

    def count_neighbors(self, block: RowBlock, buffer: Any, neighbors: Any) -> None:
        """neighbors[v] = distinct neighbors of the block's rows, the vertices themselves not counted."""

    def keep(self, block: RowBlock, buffer: Any, neighbors: Any, kept: Any) -> None:
        """Append to `kept` the edges that belong to the block's rows."""

    def intersect(self, ones: Any, others: Any, each: int, state: S, scalars: Scalars) -> None:
        """Give the corners of every triangle with its first edge from `ones` to `others` their messages."""

    def count_sides(self, ones: Any, others: Any, sides: Any, other_sides: Any) -> None:
        """Add 1 to each edge of every triangle with its first edge from `ones` to `others`; int32 for each edge."""
