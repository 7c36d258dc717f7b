"""Route `cel`: rows of partitions that have passed travel again, beside the next carrier.

WolfGraph's Concatenated Edge List (Zhu et al., FGCS 2020). Its carriers are filter tasks; what is added to them is a
Bundle, which no plan holds: the engine finds out during the walk which rows must travel (those of vertices that have
changed, `decisions/cel.md`), and threads gather them from host memory. They are not concatenated there: carriers are
copied from where they lie, and a bundle follows in a copy of its own on the same stream, since another pass of a
carrier through host memory costs more than the second copy's 8 microseconds. The launching thread waits for the
gathering, so that the copy goes right behind the next carrier's and before the one after that. Owns the cutting of what
is too large for its pack, and the transfer. Refuses rows whose edges are not complete in host memory.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.transfer.devices.device import Event
from penstock.transfer.planning.plan import CARRIERS
from penstock.transfer.staging.gather import ActiveRows, CompactedLayout, GatherSource, compacted_layout, count_rows
from penstock.transfer.staging.gather_buffers import GatherBuffer, view_of
from penstock.transfer.staging.in_flight import Transfer
from penstock.transfer.staging.partition_directory import PartitionDirectory
from penstock.transfer.staging.slab_pool import Slab
from penstock.transfer.values.cost import Cost
from penstock.transfer.values.task import Demand, Ints, Partition, Task, TaskRecord
from penstock.transfer.values.view import View

name = "cel"

AHEAD = 2
"""Carriers on their way at once: with the one at work they leave the third slab to a bundle."""

FEW = 1 << 15
"""Edges below which the launching thread gathers sooner than other threads would start."""

NO_CHUNKS = np.zeros(0, dtype=np.int64)
Piece = tuple[Partition, int, int]


@dataclass(frozen=True, slots=True)
class Bundle(Task):
    """Marked rows of `pieces` of partitions, which one pack holds: row parts and edges of each as `plan` has them."""

    pieces: tuple[Partition, ...] = ()
    plan: CompactedLayout | None = None
    rows: ActiveRows | None = None


def start(task: Task, demand: Demand, directory: PartitionDirectory) -> Transfer | None:
    """Gather a bundle and start its copy; None while there is no pack or slab."""
    if not isinstance(task, Bundle):
        raise RuntimeError(f"a plan has a task of route {name}; its carriers go by {CARRIERS[name]}")
    room = directory.staging.take_room(demand.with_weights)
    return None if room is None else Concatenated(task, directory, *room)


def bundles(demand: Demand, directory: PartitionDirectory) -> list[Bundle]:
    """What to gather for marked rows, in as few packs as hold them; the marks may change afterwards.

    demand: exact counts of the marked rows of every partition; all their chunks are `complete`.
    """
    assert demand.marks is not None
    numbers = np.flatnonzero(demand.active_edges)
    if not len(numbers):
        return []
    rows = _copied(demand.marks, directory, int(numbers[0]), int(numbers[-1]))
    found: list[Bundle] = []
    kept: list[Piece] = []
    words = 1
    for piece in _pieces(numbers, demand, directory, rows):
        more = piece[2] + 2 * piece[1]
        if kept and words + more > directory.staging.packs.edges:
            found.append(_bundle(kept, rows))
            kept, words = [], 1
        kept.append(piece)
        words += more
    return [*found, _bundle(kept, rows)]


def _copied(marks: NDArray[Any], directory: PartitionDirectory, first: int, last: int) -> ActiveRows:
    """The marks of these partitions' rows, a copy that nothing else writes."""
    low, high = int(directory.table.v0[first]), int(directory.table.v1[last])
    bits = marks.dtype.itemsize * 8
    words = marks[low // bits : -(-high // bits)].copy()
    return ActiveRows(words, directory.adjacency.index().arrays(), low // bits * bits)


def _pieces(numbers: Ints, demand: Demand, directory: PartitionDirectory, rows: ActiveRows) -> Iterator[Piece]:
    """Partitions with marked rows, cut where one alone is too large for a pack."""
    for number in numbers.tolist():
        part = directory.table[number]
        counts = int(demand.active_vertices[number]), int(demand.active_edges[number])
        if counts[1] + 2 * counts[0] + 1 <= directory.staging.packs.edges:
            yield part, *counts
            continue
        for piece in _cut(part, directory):
            counts = count_rows(rows, piece)
            if counts[1]:
                yield piece, *counts


def _cut(part: Partition, directory: PartitionDirectory) -> list[Partition]:
    """Pieces of a partition each of which fits a pack, even if every row of it has but one edge and is marked."""
    most = max(1, (directory.staging.packs.edges - 1) // 3)
    e0 = np.arange(part.e0, part.e1, most, dtype=np.int64)
    e1 = np.minimum(e0 + most, part.e1)
    index = directory.adjacency.index()
    bounds = zip(e0.tolist(), e1.tolist(), index.rows_of(e0).tolist(), index.rows_of(e1 - 1).tolist(), strict=True)
    return [Partition(part.direction, part.number, a, b, v, w + 1) for a, b, v, w in bounds]


def _bundle(pieces: list[Piece], rows: ActiveRows) -> Bundle:
    parts = tuple(piece[0] for piece in pieces)
    plan = compacted_layout([piece[1] for piece in pieces], [piece[2] for piece in pieces])
    return Bundle(name, (), Cost(), parts, plan, rows)


class Concatenated(Transfer):
    """A bundle, gathered at once, and on its way behind the carrier that was started last."""

    def __init__(self, bundle: Bundle, directory: PartitionDirectory, pack: GatherBuffer, slab: Slab) -> None:
        assert bundle.plan is not None
        self._directory, self._pack = directory, pack
        self._copied: Event = None
        plan, direction = bundle.plan, directory.direction
        record = TaskRecord(bundle.route, direction, (), edges=plan.edges)
        bounds = bundle.pieces[0].v0, bundle.pieces[-1].v1
        super().__init__(view_of(plan, slab, bounds, record), slab=slab)
        try:
            self._gather(bundle)
            link, copies = directory.staging.link, pack.copies(plan, slab)
            self._copied = link.copy_async(record, copies)
        except BaseException:
            self.release()
            raise

    def _gather(self, bundle: Bundle) -> None:
        assert bundle.plan is not None
        assert bundle.rows is not None
        plan, rows, pack, record = bundle.plan, bundle.rows, self._pack, self._view.record
        target = pack.target(plan)
        began = time.perf_counter()
        works, packs, directory = [], self._directory.staging.packs, self._directory
        for at, part in enumerate(bundle.pieces):
            request = directory.request(part.number, part.number, NO_CHUNKS, pack.weights is not None, record)
            host = directory.staging.link.hold(request)
            assert host is not None, "what is complete in host memory needs no room there"
            works.append(packs.gathering(rows, part, GatherSource(*host.arrays, request.e0), plan.place(at), target))
            host.release()  # complete chunks stay for as long as the walk lasts
        if plan.edges < FEW:
            record.gather_seconds = sum(work() for work in works)
        else:
            gathers = [packs.submit(work) for work in works]
            failed = [error for error in (gather.exception() for gather in gathers) if error is not None]
            if failed:
                raise failed[0]
            record.gather_seconds = sum(gather.result() for gather in gathers)
        record.wait_seconds = time.perf_counter() - began

    def view(self) -> View:
        """Order the kernels behind the copy."""
        self._directory.staging.device.follow(self._copied)
        return self._view

    def release(self) -> None:
        """Give pack and slab back; more than once does no harm."""
        if not self._released:
            self._directory.staging.packs.give(self._pack, self._copied)
            super().release()
