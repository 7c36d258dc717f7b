"""A run of random walks: `blocks` yields them in order, block by block.

Where all rows are in memory, the walkers of a block go to the end. Else a batch of walkers sweeps the partitions: each
advances in its partition as far as rows in memory let it, and what it finds is logged by block, as cells of the block's
walks; at the end of a batch its blocks are read back from the log. So the disk is swept, as in GraphWalker (Wang et
al., ATC 2020), whose walkers also go on within what is loaded, and walks beyond memory cost 8 bytes a step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.kernels.host.jit import use_workers
from penstock.engine.kernels.host.walks import (
    Found,
    advance_walkers,
    collect_steps,
    count_steps,
    mark_chunks,
    place_steps,
)
from penstock.engine.kernels.walk_arrays import Rule, Walkers, Window
from penstock.engine.kernels.walk_steps import mix64
from penstock.engine.queries.row_windows import RowWindows
from penstock.engine.queries.walk_memory import BLOCK_WALKS, GAINED, PENDING_BYTES, UNIT, UNIT_ROWS, WalkMemory
from penstock.engine.queries.walk_options import WalkOptions
from penstock.storage.convert.sort.spill_room import ArrayStore, SpillRoom, StoredArrays


@dataclass
class WalkProgress:
    """What a run has done so far.

    steps: of all walks. sweeps: over the partitions. bytes_read: of edges; log_bytes: of steps in scratch files.
    seconds: in which walkers advanced, rows were awaited and logs were read. bytes_copied: of edges, to a device after
    those that it keeps; in_place: how often one has read rows in host memory instead.
    """

    steps: int = 0
    sweeps: int = 0
    bytes_read: int = 0
    log_bytes: int = 0
    seconds: float = 0.0
    bytes_copied: int = 0
    in_place: int = 0


APART = 4
"""Times as large as all others that the bias of the way back is drawn apart: the search for it costs several trials."""
Report = Callable[[WalkProgress], None]


def rule_of(options: WalkOptions, *, weighted: bool, symmetric: bool) -> Rule:
    """How steps are chosen; symmetric: whether each edge is in the rows of both its ends."""
    with np.errstate(over="ignore"):
        seed = mix64(np.uint64(options.seed))  # type: ignore[no-untyped-call]
    back, far = 1.0 / options.p, 1.0 / options.q
    bound = max(1.0, far)
    return Rule(
        seed,
        options.length,
        float(options.restart),
        options.dead_ends == "restart",
        weighted,
        options.second_order,
        back,
        far,
        max(bound, back) if back <= APART * bound else bound,
        symmetric,
    )


def timed(blocks: Iterator[NDArray[Any]], progress: WalkProgress) -> Iterator[NDArray[Any]]:
    """Yield blocks, and count the seconds until each is made."""
    began = time.perf_counter()
    for block in blocks:
        progress.seconds += time.perf_counter() - began
        yield block
        began = time.perf_counter()


class WalkRun:
    """Walks from the sources, in repetitions of these: walk w begins at source w % count. See `blocks`."""

    def __init__(
        self,
        windows: RowWindows,
        memory: WalkMemory,
        rule: Rule,
        sources: tuple[NDArray[Any], int, NDArray[np.float64]],
        scratch: Path | str | None,
        threads: int,
    ) -> None:
        self._windows, self._memory, self._rule, self._threads = windows, memory, rule, threads
        self._sources, self._count, self._limits = sources
        self._dtype = self._sources.dtype
        self._none, self._width = np.iinfo(self._dtype).max, rule.length + 1
        self.progress = WalkProgress()
        logged = memory.batch * rule.length * (4 + self._dtype.itemsize)
        folder = None if scratch is None else Path(scratch)
        self._room = SpillRoom(memory.log_bytes, folder, lambda: max(0, logged - memory.log_bytes))

    def blocks(self, walks: int, report: Report) -> Iterator[NDArray[Any]]:
        """Yield so many walks, (walks, length + 1) internal ids; behind the end of a walk the largest value.

        report: called after each block, and each sweep. Raises RunError where the disk fails.
        """
        use_workers(self._threads)
        made = self._swept if self._windows.partitions else self._in_memory
        with closing(self._room):
            for first in range(0, walks, self._memory.batch):
                count = min(self._memory.batch, walks - first)
                yield from timed(made(first, count, report), self.progress)

    def _in_memory(self, first: int, count: int, report: Report) -> Iterator[NDArray[Any]]:
        """Walks of which all rows are in memory."""
        walks = self._empty(first, count)
        walkers = self._begin(first, count)
        found = found_arrays(walks, -(-count // UNIT))
        self._advance(walkers, (UNIT, 1), (0, self._windows.vertices), self._windows.kept_window(), found)
        self.progress.steps += int(found.gained.sum()) - count
        self._tell(report)
        yield walks

    def _swept(self, first: int, count: int, report: Report) -> Iterator[NDArray[Any]]:
        """The walks of a batch, after its sweeps."""
        windows, block, before = self._windows, self._memory.block, self.progress.steps
        walkers = self._begin(first, count)
        store = ArrayStore(self._room)
        with closing(store):
            log = StepLog(store, count, block, self._width, self._dtype)
            units = -(-count // UNIT)
            found = found_arrays(np.empty((units * UNIT_ROWS, GAINED), self._dtype), units)
            self._visit(walkers, (0, windows.vertices), windows.kept_window(), log, found)
            while (walkers.at != self._none).any():
                wanted = np.zeros(windows.chunks + 1, np.uint8)
                mark_chunks(self._threads, count, walkers, windows.kept_window(), wanted)
                if wanted[-1]:
                    self._visit(walkers, (0, windows.vertices), windows.kept_window(), log, found)
                for part, window in windows.sweep(wanted):
                    self._visit(walkers, (part.v0, part.v1), window, log, found)
                self.progress.sweeps += 1
                self.progress.steps = before + log.steps
                self._tell(report)
            del walkers, found
            log.flush()
            for number in range(log.blocks):
                start = number * block
                walks = self._empty(first + start, min(block, count - start))
                log.fill(number, walks)
                yield walks

    def _visit(self, walkers: Walkers, span: tuple[int, int], window: Window, log: StepLog, found: Found) -> None:
        """Advance the walkers that need a row of vertices [span[0], span[1]), and log their steps."""
        while True:
            found.more[0] = 0
            self._advance(walkers, (UNIT_ROWS, 0), span, window, found)
            log.collect(found, walkers.step)
            if not found.more[0]:
                return

    def _advance(
        self, walkers: Walkers, rows: tuple[int, int], span: tuple[int, int], window: Window, found: Found
    ) -> None:
        """Run the kernel; rows: of each unit, and how many vertices are in each of them already."""
        ends = np.uint64(span[0]), np.uint64(span[1] - 1)
        advance_walkers(self._threads, len(found.used), (UNIT, *rows), ends, walkers, window, self._rule, found)

    def _begin(self, first: int, count: int) -> Walkers:
        """Walkers of so many walks from `first` on, at their sources."""
        second = count if self._rule.second else 0
        at = np.empty(count, self._dtype)
        for start in range(0, count, BLOCK_WALKS):
            part = at[start : start + BLOCK_WALKS]
            part[:] = self._sources_of(first + start, len(part))
        return Walkers(
            at,
            np.zeros(count, np.uint32),
            np.full(second, self._none, self._dtype),
            np.full(second, self._none, self._dtype),
            np.zeros(second, np.uint32),
            np.uint64(first),
            self._sources,
            np.uint64(self._count),
            self._limits,
        )

    def _sources_of(self, first: int, count: int) -> NDArray[Any]:
        numbers = np.arange(first, first + count) % self._count
        return numbers.astype(self._dtype) if len(self._sources) == 0 else self._sources[numbers]

    def _empty(self, first: int, count: int) -> NDArray[Any]:
        """So many walks from `first` on that have their sources, and no step."""
        walks = np.full((count, self._width), self._none, self._dtype)
        walks[:, 0] = self._sources_of(first, count)
        return walks

    def _tell(self, report: Report) -> None:
        self.progress.bytes_read, self.progress.log_bytes = self._windows.bytes_read, self._room.written
        report(self.progress)


Records = tuple[NDArray[np.uint32], NDArray[Any], NDArray[np.int64]]
"""Cells, vertices, and where those of each block end."""


def found_arrays(vertices: NDArray[Any], units: int) -> Found:
    """What a kernel writes to, rows being those of `vertices`; each unit of walkers has as many."""
    rows = len(vertices)
    owner, chosen, places = (np.empty(rows, np.int64) for _ in range(3))
    return Found(
        vertices, owner, np.zeros(rows, np.int32), np.zeros(units, np.int32), np.zeros(1, np.uint8), chosen, places
    )


class StepLog:
    """Steps of blocks of `block` walks, `width` cells each."""

    def __init__(self, store: ArrayStore, walks: int, block: int, width: int, dtype: np.dtype[Any]) -> None:
        self.blocks, self.steps = -(-walks // block), 0
        self._block, self._width, self._dtype, self._store = block, width, dtype, store
        self._stored: list[list[StoredArrays]] = [[] for _ in range(self.blocks)]
        self._pending: list[Records] = []
        self._bytes, self._most = 0, PENDING_BYTES * walks

    def collect(self, found: Found, step: NDArray[np.uint32]) -> None:
        """Take what walkers have found; step: the steps that each has made.

        Raises InputError or RunError where the scratch file cannot be written.
        """
        count = int(count_steps(found))
        if count == 0:
            return
        cells, vertices = np.empty(count, np.uint32), np.empty(count, self._dtype)
        ends = np.empty(self.blocks, np.int64)
        collect_steps(self._block, self._width, step, found, cells, vertices, ends)
        self.steps += count
        self._pending.append((cells, vertices, ends))
        self._bytes += cells.nbytes + vertices.nbytes + ends.nbytes
        if self._bytes >= self._most:
            self.flush()

    def flush(self) -> None:
        """Store what is pending, block by block. Raises as `collect`."""
        for number in range(self.blocks):
            parts = []
            for cells, vertices, ends in self._pending:
                here = slice(ends[number - 1] if number else 0, ends[number])
                if here.start < here.stop:
                    parts.append((cells[here], vertices[here]))
            if parts:
                joined = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
                self._stored[number].append(self._store.keep(*joined))
        self._pending, self._bytes = [], 0

    def fill(self, number: int, walks: NDArray[Any]) -> None:
        """Write the stored steps of a block into its walks, and forget them. Raises RunError where reading fails."""
        flat = walks.reshape(-1)
        for stored in self._stored[number]:
            size = stored.nbytes // sum(kind.itemsize for kind in stored.dtypes)
            cells, vertices = (self._store.read(stored, array, 0, size) for array in range(2))
            place_steps(cells, vertices, flat)
            self._store.forget(stored)
        self._stored[number] = []
