"""Route `cel`: rows of partitions that the walk has passed travel again, beside the next carrier.

WolfGraph's Concatenated Edge List (Zhu et al., FGCS 2020). Its carriers are filter tasks; what is added to them is a
Bundle, which no plan holds: the engine finds out during the walk which rows must travel (those of vertices that have
changed, `decisions/cel.md`), and threads gather them from host memory. They are not concatenated there: carriers are
copied from where they lie, and a bundle follows in a copy of its own on the same stream, since another pass of a
carrier through host memory costs more than the second copy's 8 microseconds. The launching thread waits for the
gathering, so that the copy goes right behind the next carrier's and before the one after that. Owns the cutting of what
is too large for its pack, and the parcel. Refuses rows whose edges are not complete in host memory.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.transfer.planning.plan import CARRIERS
from penstock.transfer.staging.compacted_layout import CompactedLayout, compacted_layout
from penstock.transfer.staging.gather import ActiveRows, GatherSource, count_rows
from penstock.transfer.staging.gather_buffers import GatherBuffer
from penstock.transfer.staging.host_to_device import LinkReader
from penstock.transfer.staging.in_flight import Transfer
from penstock.transfer.staging.partition_directory import PartitionDirectory
from penstock.transfer.staging.slab_pool import Slab
from penstock.transfer.staging.staged_reader import StagedReader
from penstock.transfer.values.cost import LINK, Cost
from penstock.transfer.values.task import Demand, Ints, Partition, Task, TaskRecord
from penstock.transfer.values.view import View

name = "cel"
kinds = frozenset({"emulated", "cuda"})
staged = True

AHEAD = 2
"""Carriers on their way at once: with the one at work they leave the third slab to a bundle."""

FEW = 1 << 15
"""Edges below which the launching thread gathers them sooner than others could be told to."""

Piece = tuple[Partition, int, int]


@dataclass(frozen=True, slots=True)
class Bundle(Task):
    """Marked rows of `pieces` of partitions, which one pack holds: row parts and edges of each as `plan` has them."""

    pieces: tuple[Partition, ...] = ()
    plan: CompactedLayout | None = None
    rows: ActiveRows | None = None


def start(task: Task, demand: Demand, stage: PartitionDirectory) -> Transfer | None:
    """Gather a bundle and start its copy; None while there is no pack or slab."""
    if not isinstance(task, Bundle):
        raise RuntimeError(f"a plan has a task of route {name}; its carriers go by {CARRIERS[name]}")
    assert stage.packs is not None
    assert stage.slabs is not None
    pack = stage.packs.take(demand.with_weights)
    if pack is None:
        return None
    slab = None
    try:
        slab = stage.slabs.take(demand.with_weights)
    finally:
        if slab is None:
            stage.packs.give(pack)
    return None if slab is None else Concatenated(task, stage, pack, slab)


def complete(stage: PartitionDirectory, *, with_weights: bool) -> NDArray[np.bool_]:
    """Which chunks' edges are in host memory for as long as a walk lasts, bool[chunks]."""
    adjacency = stage.adjacency
    here = np.ones(-(-adjacency.edges // adjacency.chunk_edges), dtype=bool)
    if stage.source is not None and stage.source.cache is None:
        here[:] = False
    elif stage.source is not None:
        here[stage.source.missing(np.arange(len(here)), with_weights)] = False
    return here


def bundles(demand: Demand, stage: PartitionDirectory) -> list[Bundle]:
    """What to gather for marked rows, in as few packs as hold them; the marks may change afterwards.

    demand: exact counts of the marked rows of every partition; all their chunks are `complete`.
    """
    assert stage.packs is not None
    assert demand.marks is not None
    numbers = np.flatnonzero(demand.active_edges)
    if not len(numbers):
        return []
    rows = _copied(demand.marks, stage, int(numbers[0]), int(numbers[-1]))
    found: list[Bundle] = []
    kept: list[Piece] = []
    words = 1
    for piece in _pieces(numbers, demand, stage, rows):
        more = piece[2] + 2 * piece[1]
        if kept and words + more > stage.packs.edges:
            found.append(_bundle(kept, rows))
            kept, words = [], 1
        kept.append(piece)
        words += more
    return [*found, _bundle(kept, rows)]


def _copied(marks: NDArray[Any], stage: PartitionDirectory, first: int, last: int) -> ActiveRows:
    """The marks of these partitions' rows, which nobody else will write."""
    low, high = int(stage.table.v0[first]), int(stage.table.v1[last])
    bits = marks.dtype.itemsize * 8
    words = marks[low // bits : -(-high // bits)].copy()
    return ActiveRows(words, _index(stage).arrays(), low // bits * bits)


def _index(stage: PartitionDirectory) -> Any:
    """The row index, with its arrays."""
    return stage.adjacency.index()


def _pieces(numbers: Ints, demand: Demand, stage: PartitionDirectory, rows: ActiveRows) -> Iterator[Piece]:
    """Partitions with marked rows, cut where one alone is too large for a pack."""
    assert stage.packs is not None
    for number in numbers.tolist():
        part = stage.table[number]
        counts = int(demand.active_vertices[number]), int(demand.active_edges[number])
        if counts[1] + 2 * counts[0] + 1 <= stage.packs.edges:
            yield part, *counts
            continue
        for piece in _cut(part, stage):
            counts = count_rows(rows, piece)
            if counts[1]:
                yield piece, *counts


def _cut(part: Partition, stage: PartitionDirectory) -> list[Partition]:
    """Pieces of a partition each of which fits a pack, even if every row of it has but one edge and is marked."""
    assert stage.packs is not None
    most = max(1, (stage.packs.edges - 1) // 3)
    e0 = np.arange(part.e0, part.e1, most, dtype=np.int64)
    e1 = np.minimum(e0 + most, part.e1)
    index = stage.adjacency.index()
    bounds = zip(e0.tolist(), e1.tolist(), index.rows_of(e0).tolist(), index.rows_of(e1 - 1).tolist(), strict=True)
    return [Partition(part.direction, part.number, a, b, v, w + 1) for a, b, v, w in bounds]


def _bundle(pieces: list[Piece], rows: ActiveRows) -> Bundle:
    parts = tuple(piece[0] for piece in pieces)
    plan = compacted_layout([piece[1] for piece in pieces], [piece[2] for piece in pieces])
    return Bundle(name, (), Cost(), parts, plan, rows)


def _source(stage: PartitionDirectory, part: Partition, *, with_weights: bool) -> GatherSource:
    """Where a partition's edges lie in host memory."""
    reader = stage.reader
    if isinstance(reader, LinkReader):
        return GatherSource(*reader.host_arrays(stage.adjacency, with_weights), 0)
    assert stage.source is not None
    return GatherSource(*stage.source.placed(part.number, 1, with_weights), int(stage.table.e0[part.number]))


class Concatenated(Transfer):
    """A bundle, gathered at once, and on its way behind the carrier that was started last."""

    def __init__(self, bundle: Bundle, stage: PartitionDirectory, pack: GatherBuffer, slab: Slab) -> None:
        assert bundle.plan is not None
        assert stage.slabs is not None
        assert stage.packs is not None
        self._device, self._packs, self._pack = stage.device, stage.packs, pack
        self._copied: Any = None
        self._given = False
        plan, record = bundle.plan, TaskRecord(bundle.route, stage.direction, (), edges=bundle.plan.edges)
        offsets, rows, neighbors = plan.slices(slab.neighbors)
        weights = None if slab.weights is None else slab.weights[: plan.edges]
        bounds = bundle.pieces[0].v0, bundle.pieces[-1].v1
        super().__init__(
            View(
                0, plan.edges, *bounds, neighbors, weights, record,
                rows=rows, offsets=offsets,
            )
        )  # fmt: skip
        self.holds(stage.slabs, slab)
        try:
            self._gather(bundle, stage)
            self._copy(plan, slab, stage)
        except BaseException:
            self.release()
            raise

    def _gather(self, bundle: Bundle, stage: PartitionDirectory) -> None:
        assert bundle.plan is not None
        assert bundle.rows is not None
        plan, rows, pack, record = bundle.plan, bundle.rows, self._pack, self._view.record
        target = (*plan.slices(pack.words), None if pack.weights is None else pack.weights[: plan.edges])
        began = time.perf_counter()
        works = []
        for at, part in enumerate(bundle.pieces):
            source = _source(stage, part, with_weights=pack.weights is not None)
            works.append(self._packs.gathering(rows, part, source, plan.place(at), target))
        if plan.edges < FEW:
            record.gather_seconds = sum(work() for work in works)
        else:
            gathers = [self._packs.submit(work) for work in works]
            failed = [error for error in (gather.exception() for gather in gathers) if error is not None]
            if failed:
                raise failed[0]
            record.gather_seconds = sum(gather.result() for gather in gathers)
        record.wait_seconds = time.perf_counter() - began

    def _copy(self, plan: CompactedLayout, slab: Slab, stage: PartitionDirectory) -> None:
        reader, pack = stage.reader, self._pack
        assert isinstance(reader, LinkReader | StagedReader)
        pairs = [(slab.neighbors[: plan.words], pack.words[: plan.words])]
        if pack.weights is not None and slab.weights is not None:
            pairs.append((slab.weights[: plan.edges], pack.weights[: plan.edges]))
        size, (began, self._copied) = reader.carry(pairs, follow=False)
        self._view.record.bytes_link = size
        self._view.record.spans += ((LINK, began, self._copied),)

    def view(self) -> View:
        """Order the kernels behind the copy."""
        self._device.follow(self._copied)
        return self._view

    def release(self) -> None:
        """Give pack and slab back; more than once does no harm."""
        if not self._given:
            self._given = True
            self._packs.give(self._pack, self._copied)
            super().release()
