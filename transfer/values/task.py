"""The values of a plan: partition, demand, task, plan, and the record that a task leaves behind.

Owns their shapes and how an adjacency is cut into partitions. Refuses a partition size that is
not a whole number of chunks. Cutting happens at run time from the index, so that the file never
freezes it; a row longer than a partition is split, and the partitions that hold its parts all
name its vertex.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.transfer.values.cost import Cost

if TYPE_CHECKING:
    from penstock.storage.format.index import Index

Direction = str
"""The name of an adjacency: "out", "in", or that of a window."""
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

Span = tuple[int, Any, Any]
"""A resource's number in RESOURCES, and the device's events before and after its work."""

CHUNK_EDGES = 262_144


@dataclass(frozen=True, slots=True)
class Partition:
    """Edges [e0, e1) of one adjacency; v0 is the row of e0, v1 one past the row of e1 - 1."""

    direction: Direction
    number: int
    e0: int
    e1: int
    v0: int
    v1: int


@dataclass(frozen=True)
class PartitionTable:
    """All partitions of one adjacency: int64 arrays of shape (p,), ascending.

    Every partition holds `partition_edges` edges but the last, which may hold fewer.
    """

    direction: Direction
    partition_edges: int
    e0: Ints
    e1: Ints
    v0: Ints
    v1: Ints

    def __len__(self) -> int:
        return len(self.e0)

    def __getitem__(self, number: int) -> Partition:
        e0, e1 = int(self.e0[number]), int(self.e1[number])
        v0, v1 = int(self.v0[number]), int(self.v1[number])
        return Partition(self.direction, number % len(self), e0, e1, v0, v1)

    @cached_property
    def edges(self) -> int:
        """Edges of the whole adjacency."""
        return int(self.e1[-1]) if len(self) else 0

    @cached_property
    def lengths(self) -> Ints:
        """Edges of each partition, int64[p]."""
        return self.e1 - self.e0

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """Every partition's number, ascending."""
        return tuple(range(len(self)))


def partitions(
    index: Index,
    direction: Direction,
    edges: int,
    partition_edges: int,
    chunk_edges: int = CHUNK_EDGES,
) -> PartitionTable:
    """Cut an adjacency of `edges` edges into partitions of `partition_edges` (whole chunks).

    What is in no row at its ends counts with the nearest row.
    """
    if partition_edges <= 0 or partition_edges % chunk_edges:
        raise InputError(
            f"a partition of {partition_edges} edges is not a whole number of chunks of "
            f"{chunk_edges} edges: give --partition-bytes as a multiple of a chunk"
        )
    e0 = np.arange(0, edges, partition_edges, dtype=np.int64)
    e1 = np.minimum(e0 + partition_edges, edges)
    first, last = int(index.bases[0]), index.edges - 1  # in a row: of one rank's, end chunks hold others' edges, too
    v0, v1 = index.rows_of(np.clip(np.concatenate([e0, e1 - 1]), first, max(first, last))).reshape(2, -1)
    v1 += 1
    return PartitionTable(direction, partition_edges, e0, e1, v0, v1)


@dataclass(frozen=True, slots=True)
class Demand:
    """What one iteration needs of every partition of one adjacency: arrays of shape (p,).

    `lines`: 128-byte lines of the active rows, summed over every edge array read. `pending`:
    value waiting in the active vertices (priority order). `wanted_chunks`: uint8, one per chunk
    of the adjacency, nonzero where an active row has edges; None means every chunk of a partition
    that has active edges. `whole`: the iteration walks every edge of every partition, whatever
    the arrays say. `read_edges`: edges expected to be read before pulls leave early; None means
    all active ones. `packable`: active rows may be gathered (pushes along edges only). `marks`: bitmap
    of the active vertices in host memory (uint32 or uint64 words), where a plan gathers their rows. `blocks`: how many
    blocks of 256 edges the active rows touch, and `block_marks` which of the whole adjacency, a bitmap of uint32 words
    on the device; given where edges are unpacked, None: all.
    """

    direction: Direction
    active_vertices: Ints
    active_edges: Ints
    lines: Ints
    pending: Floats
    wanted_chunks: NDArray[np.uint8] | None = None
    with_weights: bool = False
    whole: bool = False
    read_edges: Floats | Ints | None = None
    packable: bool = True
    marks: NDArray[Any] | None = None
    blocks: Ints | None = None
    block_marks: Any = None

    @property
    def wanted(self) -> NDArray[np.bool_]:
        """Which partitions have demand, bool[p]."""
        if self.whole:
            return np.ones(len(self.active_edges), dtype=bool)
        return self.active_edges > 0


def whole_demand(table: PartitionTable, *, edge_bytes: int = 4, with_weights: bool = False) -> Demand:
    """Return the demand of a sweep over every edge; make it once, use it every iteration."""
    edges = table.lengths
    lines = -(-edges * edge_bytes // 128)
    zero = np.zeros(len(table))
    rows = table.v1 - table.v0
    return Demand(table.direction, rows, edges, lines, zero, None, with_weights, whole=True)


@dataclass(frozen=True, slots=True)
class Task:
    """Partitions with consecutive numbers that travel together, and what that should cost."""

    route: str
    partitions: tuple[int, ...]
    cost: Cost


@dataclass(frozen=True, slots=True)
class Plan:
    """The ordered tasks of one iteration over one adjacency.

    `whole`: its one task is the entire adjacency, in one array: resident, or read in place over the link, where no
    partition is looked at (the pipeline's short cut). `carriers`: rows follow its tasks, so what is resident goes
    first: most edges end there.
    """

    direction: Direction
    tasks: tuple[Task, ...]
    whole: bool = False
    carriers: bool = False

    @property
    def resident(self) -> bool:
        """Whether all it needs is one array that is resident."""
        return self.whole and self.tasks[0].route == "resident"


@dataclass(slots=True)
class TaskRecord:
    """What one task did. Mutable: the engine sets `kernel_seconds`, the pipeline all else.

    `edges`: active edges of its partitions (from the demand). `chunks_read`: chunks this task
    read from disk; `hits`: wanted chunks that it found in the cache. `wait_seconds`: how long the
    pipeline stood still for this task's data; zero when everything overlapped. `resent`: edges of its
    newly active rows that were walked once more (set by the engine). `wanted`: how many of `partitions` have active
    edges; a task may reach over others between them. 1 where the demand holds only totals. `lines_read`: aligned
    lines of ids that kernels on a GPU counted as they read them in place, over the link; `lines` is the prediction.
    `bytes_unpacked`: of plain edges that the device unpacked for it; where they travelled packed, `bytes_link` is less.
    Disk, decode and gather seconds are summed over reads and threads. `predicted`: the task's cost in the plan;
    `measured`: the same in what happened, None until the walk is over. `spans`: (resource, first event, last event) of
    work on the device whose seconds are taken when the device has passed them (`feedback.py`). `rows`: active rows of
    its partitions, as the plan counts them: a sweep over all of a partition is one. `walk`: tasks of one walk through a
    plan share the number.
    """

    route: str
    direction: Direction
    partitions: tuple[int, ...]
    edges: int = 0
    bytes_disk: int = 0
    bytes_link: int = 0
    bytes_unpacked: int = 0
    lines: int = 0
    lines_read: int = 0
    chunks_read: int = 0
    hits: int = 0
    disk_seconds: float = 0.0
    decode_seconds: float = 0.0
    gather_seconds: float = 0.0
    link_seconds: float = 0.0
    kernel_seconds: float = 0.0
    unpack_seconds: float = 0.0
    wait_seconds: float = 0.0
    resent: int = 0
    wanted: int = 0
    predicted: Cost | None = None
    measured: Cost | None = None
    spans: tuple[Span, ...] = ()
    rows: int = 0
    walk: int = 0

    def apart(self) -> TaskRecord:
        """Return what was moved, as a task of no partition: none of an iteration's edges were wanted of it."""
        return replace(self, partitions=(), wanted=0, edges=0, lines=0, predicted=None, spans=())
