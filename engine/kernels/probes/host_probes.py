"""Kernels that measure a machine, on the CPU cores: pull random edges, read runs of lines in place.

Owns the work whose seconds become rates (engine/calibration/calibrate.py keeps the time). `cuda_probes.py` has the
same methods on a GPU. What each returns is a sum or an array that a test can compute in another way, so that no
compiler may leave the work out. Refuses to choose sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numba
import numpy as np
from numpy.typing import NDArray
from penstock.engine.kernels.host.atomics import prefetch
from penstock.engine.kernels.host.jit import loop_kernel, use_workers
from penstock.engine.kernels.host.pull import AHEAD
from penstock.transfer.values.rates import LINE_BYTES, SECTOR_BYTES

ROW_EDGES = 16
"""Edges of a row in every probe: the edge factor of the graphs that are run most."""
BLOCK_ROWS = 1024
WORD_BYTES = 4


@dataclass(frozen=True)
class Runs:
    """Runs of lines at ascending addresses, each followed by a gap of its own length (of a line at least).

    `run_shift`: lines of a run, as a power of two; `words`: 32-bit words read of each line.
    """

    run_shift: int
    words: int

    @property
    def bytes(self) -> int:
        """Bytes that one run reads."""
        return self.words * WORD_BYTES << self.run_shift

    def lines_in(self, size: int) -> int:
        """Lines read of `size` bytes: those of whole runs with their gaps."""
        return size // (LINE_BYTES << (self.run_shift + 1)) << self.run_shift


RUNS = (
    Runs(0, SECTOR_BYTES // WORD_BYTES),
    *(Runs(shift, LINE_BYTES // WORD_BYTES) for shift in (0, 1, 3, 6)),
)
"""A sector of a line, a line, and runs of 2, 8 and 64 lines."""


class Probes(Protocol):
    """The kernels of one device; arrays are the device's, and calls only launch."""

    @property
    def threaded(self) -> bool:
        """Whether they run on as many of the host's threads as are asked for."""

    def pull(self, neighbors: Any, values: Any, edges: int, threads: int) -> Any:
        """Add up values[neighbors[e]] for e below `edges`; returns an array whose total is the sum."""

    def read(self, words: Any, runs: Runs, lines: int) -> Any:
        """Read `lines` lines of uint32 words in place; returns an array whose total is their sum."""

    def launch(self) -> None:
        """Start a kernel that has nothing to do."""

    def close(self) -> None:
        """Let go of the arrays that kernels remember."""


@loop_kernel("probe")
def pull_rows(first_step, end_step, neighbors, values, sums, edges):  # type: ignore[no-untyped-def]
    """sums[r] = sum of values[neighbors[e]] over the edges below `edges` of row r, ROW_EDGES a row."""
    for row in range(first_step, end_step):
        total = 0.0
        for e in range(row * ROW_EDGES, min((row + 1) * ROW_EDGES, edges)):
            total += values[np.uint64(neighbors[np.uint64(e)])]
        sums[row] = total


@loop_kernel("probe")
def sweep_rows(first_step, end_step, neighbors, values, sums, edges):  # type: ignore[no-untyped-def]
    """As pull_rows, with values asked for ahead, as the kernels of sweeps do."""
    end = np.int64(edges - 1)
    for row in range(first_step, end_step):
        total = 0.0
        for e in range(row * ROW_EDGES, min((row + 1) * ROW_EDGES, edges)):
            prefetch(values, np.uint64(neighbors[np.uint64(min(e + AHEAD, end))]))
            total += values[np.uint64(neighbors[np.uint64(e)])]
        sums[row] = total


@loop_kernel("probe")
def read_runs(first_step, end_step, source, lines, run_shift, words, line_words, sums):  # type: ignore[no-untyped-def]
    """Add up `words` words of each of `lines` lines; sums[t] holds what block t of them has."""
    blocks = sums.shape[0]
    for block in range(first_step, end_step):
        total = np.uint64(0)
        for line in range(block * lines // blocks, (block + 1) * lines // blocks):
            at = (((line >> run_shift) << (run_shift + 1)) | (line & ((1 << run_shift) - 1))) * line_words
            for k in range(at, at + words):
                total += np.uint64(source[np.uint64(k)])
        sums[block] = total


class HostProbes:
    """The probes on up to `threads` cores of the host."""

    threaded = True

    def __init__(self, threads: int) -> None:
        self._most = min(threads, int(numba.config.NUMBA_NUM_THREADS))
        self._sums = np.zeros(1, dtype=np.float64)
        self._nothing = np.zeros(1, dtype=np.uint32), np.zeros(1), np.zeros(1)

    def _use(self, threads: int) -> int:
        threads = min(threads, self._most)
        use_workers(threads)
        return threads

    def pull(self, neighbors: NDArray[Any], values: NDArray[Any], edges: int, threads: int) -> NDArray[np.float64]:
        """As `Probes.pull`; float64[rows]."""
        threads = self._use(threads)
        rows = -(-edges // ROW_EDGES)
        if len(self._sums) != rows:
            self._sums = np.zeros(rows, dtype=np.float64)
        pull_rows(threads, rows, neighbors, values, self._sums, edges)
        return self._sums

    def sweep(self, neighbors: NDArray[Any], values: NDArray[Any], edges: int, threads: int) -> NDArray[np.float64]:
        """The same, of values that are asked for ahead."""
        threads = self._use(threads)
        sums = np.zeros(-(-edges // ROW_EDGES))
        sweep_rows(threads, len(sums), neighbors, values, sums, edges)
        return sums

    def read(self, words: NDArray[Any], runs: Runs, lines: int) -> NDArray[np.uint64]:
        """As `Probes.read`; uint64[blocks]."""
        threads = self._use(self._most)
        sums = np.zeros(max(1, min(lines, 4 * threads)), dtype=np.uint64)
        read_runs(threads, len(sums), words, lines, runs.run_shift, runs.words, LINE_BYTES // WORD_BYTES, sums)
        return sums

    def launch(self) -> None:
        """As `Probes.launch`: a pull of no edges, which still wakes the threads."""
        pull_rows(self._most, 0, *self._nothing, 0)

    def close(self) -> None:
        """Nothing to let go of."""
