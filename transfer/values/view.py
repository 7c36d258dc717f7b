"""A view: edges as a device sees them.

Owns the shape of what the engine pulls. Refuses nothing; the route that makes a view guarantees
it. Only edges of active rows may be read: other positions may hold leftovers of an earlier use of
the slab.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.transfer.values.task import TaskRecord


@dataclass(frozen=True, slots=True)
class OwnedRows:
    """The rows [v0, v1) of an adjacency, whose edges are [e0, e1): those that one rank walks."""

    v0: int
    v1: int
    e0: int
    e1: int


@dataclass(frozen=True, slots=True)
class Payloads:
    """Where the payloads of a partition's chunks are among its words: that of chunk c begins at word `starts[c]`.

    starts: int64. chunk_edges: edges of every chunk but the last.
    """

    starts: NDArray[np.int64]
    chunk_edges: int


@dataclass(frozen=True, slots=True)
class View:
    """Edges [e0, e1) of one adjacency, whose rows lie in [v0, v1); `neighbors[i]` is edge e0 + i.

    The first and last row may begin before e0 and end after e1: a row can be split between views.
    `neighbors` and `weights` are arrays of the device (numpy on the host), shape (e1 - e0,).
    A compacted view (`staging/gather.py`; e0 = 0, e1 = its edges) brings its own index: `rows` (A,), its row parts'
    vertices, every one active, and `offsets` (A + 1,) into `neighbors`, both of the vertex type; both are None where
    the graph's index applies. A row may be split over several compacted views, so degrees come from the graph's index.
    Only pushes are ever given one: a pull reads few edges of many rows, which compaction cannot know beforehand.
    `payloads`: given where edges are packed and no device unpacks them; `neighbors` are then words of payloads.
    `record`: this task's record; the engine sets its `kernel_seconds`. The arrays are valid until
    the next view is asked for.
    owned: of the view only these rows count, None: all. Kernels that sum floats cut the whole view into blocks, so that
    a sum does not depend on who owns what; in rows beside the owned ones they may then leave any value.
    """

    e0: int
    e1: int
    v0: int
    v1: int
    neighbors: NDArray[Any]
    weights: NDArray[Any] | None
    record: TaskRecord
    rows: NDArray[Any] | None = None
    offsets: NDArray[Any] | None = None
    payloads: Payloads | None = None
    owned: OwnedRows | None = None

    def narrowed(self) -> View:
        """The same without what is not owned."""
        own = self.owned
        return self if own is None else replace(self.part(own.e0, own.e1, (own.v0, own.v1)), owned=None)

    def part(self, e0: int, e1: int, rows: tuple[int, int] | None = None) -> View:
        """The edges of the view that are among [e0, e1), whose rows are among `rows` if these are known."""
        v0, v1 = rows or (self.v0, self.v1)
        e0 = min(max(self.e0, e0), self.e1)
        e1 = max(min(self.e1, e1), e0)
        v0 = min(max(self.v0, v0), self.v1)
        here = slice(e0 - self.e0, e1 - self.e0)
        return replace(
            self,
            e0=e0,
            e1=e1,
            v0=v0,
            v1=max(min(self.v1, v1), v0),
            neighbors=self.neighbors[here],
            weights=None if self.weights is None else self.weights[here],
        )
