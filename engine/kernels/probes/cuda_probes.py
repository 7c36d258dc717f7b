"""Kernels that measure a GPU: pull random edges, read runs of lines in page-locked host memory, start for nothing.

The same methods as `host_probes.py`, launched as programs' kernels are, so that what is measured is what they pay. A
group of LANES threads reads a line, and takes RUN neighboring lines at a time, as `push_list` does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from penstock.engine.kernels.cuda.device_functions import all_threads, global_thread
from penstock.engine.kernels.cuda.driver import BLOCK, LANE_SHIFT, LANES, blocks_for, forget, kernel, most_blocks, use
from penstock.engine.kernels.cuda.push import RUN
from penstock.engine.kernels.probes.host_probes import Runs
from penstock.transfer.values.rates import LINE_BYTES

WORDS = LINE_BYTES // 4
"""32-bit words of a line."""


@kernel
def pull_edges(neighbors, values, edges, sums):  # type: ignore[no-untyped-def]
    """sums[t] = sum of values[neighbors[e]] over the edges of thread t, neighboring threads on neighboring edges."""
    total = 0.0
    e = global_thread()
    while e < edges:
        total += values[np.uint64(neighbors[np.uint64(e)])]
        e += all_threads()
    sums[np.uint64(global_thread())] = total


@kernel
def read_lines(source, lines, run_shift, words, sums):  # type: ignore[no-untyped-def]
    """sums[t] = sum of the words that thread t has read of `lines` lines, the first `words` words of each."""
    total = np.uint64(0)
    lane = global_thread() & np.int64(LANES - 1)
    mask = (np.int64(1) << run_shift) - np.int64(1)
    line = (global_thread() >> LANE_SHIFT) * np.int64(RUN)
    while line < lines:
        for k in range(line, min(line + np.int64(RUN), lines)):
            at = (((k >> run_shift) << (run_shift + np.int64(1))) | (k & mask)) * np.int64(WORDS)
            word = lane
            while word < words:
                total += np.uint64(source[np.uint64(at + word)])
                word += np.int64(LANES)
        line += (all_threads() >> LANE_SHIFT) * np.int64(RUN)
    sums[np.uint64(global_thread())] = total


class CudaProbes:
    """The probes on one GPU, which becomes the current one."""

    threaded = False

    def __init__(self, device: Any) -> None:
        use(device)
        threads = most_blocks() * BLOCK
        self._pulled = device.array(threads, np.float64)
        self._read = device.array(threads, np.uint64)
        self._nothing = device.array(1, np.uint32), device.array(1, np.float64)

    def pull(self, neighbors: Any, values: Any, edges: int, threads: int) -> Any:
        """As `Probes.pull`; float64[threads of the launch]."""
        blocks = blocks_for(edges)
        pull_edges(blocks, neighbors, values, np.int64(edges), self._pulled)
        return self._pulled[: blocks * BLOCK]

    def read(self, words: Any, runs: Runs, lines: int) -> Any:
        """As `Probes.read`; uint64[threads of the launch]."""
        blocks = blocks_for(-(-lines // RUN) * LANES)
        read_lines(blocks, words, np.int64(lines), np.int64(runs.run_shift), np.int64(runs.words), self._read)
        return self._read[: blocks * BLOCK]

    def launch(self) -> None:
        """As `Probes.launch`: a pull of no edges."""
        pull_edges(1, *self._nothing, np.int64(0), self._pulled)

    def close(self) -> None:
        """Let go of the arrays that kernels remember."""
        forget()
