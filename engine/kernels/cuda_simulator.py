"""One block of a kernel under numba's CUDA simulator: a Python thread for each of its threads, and what they share.

In place of two parts of the simulator. Its block runner polls its threads and copies arrays in and out, which costs a
second a launch and breaks arrays that are passed twice; a barrier takes a millisecond. Its shared arrays are looked for
and made in two steps, so that now and then two threads of a block each have their own.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
from numba.np.numpy_support import as_dtype

TURN = threading.Lock()
"""Held while a kernel runs, for which names of modules are changed: threads take turns."""


class Shared:
    """The shared arrays of the block that runs: `arrays`, one for every line that asks for one."""

    def __init__(self) -> None:
        self.arrays: dict[tuple[Any, int], Any] = {}
        self._lock = threading.Lock()

    def array(self, shape: Any, dtype: Any) -> Any:
        """The array of the caller's line, made by the thread that comes first; not filled."""
        caller = sys._getframe(1)
        place = caller.f_code, caller.f_lineno
        with self._lock:
            if place not in self.arrays:
                kind = as_dtype(dtype) if isinstance(dtype, numba.types.Type) else dtype
                self.arrays[place] = np.empty(shape, dtype=kind)
            return self.arrays[place]


def run_block(function: Callable[..., Any], arguments: tuple[Any, ...], number: int, threads: int) -> None:
    """Run block `number` of a kernel to its end. Raises what the first of its threads raised that failed."""
    barrier, votes = threading.Barrier(threads), [False] * threads
    running = [_Thread(function, arguments, (number, at), barrier, votes) for at in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    failed = [thread.error for thread in running if thread.error is not None]
    if failed:
        raise next((e for e in failed if not isinstance(e, threading.BrokenBarrierError)), failed[0])


class _Thread(threading.Thread):
    """One CUDA thread under the simulator, as `numba.cuda.simulator.kernelapi` looks at it."""

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        place: tuple[int, int],
        barrier: Any,
        votes: list[bool],
    ) -> None:
        super().__init__(daemon=True)
        self.blockIdx, self.threadIdx = (SimpleNamespace(x=at, y=0, z=0) for at in place)
        self.thread_id = place[1]
        self.error: BaseException | None = None
        self._work = function, arguments
        self._barrier, self._votes = barrier, votes

    def run(self) -> None:
        """Run the kernel's function; what it raises is kept, and the others are not left waiting."""
        try:
            self._work[0](*self._work[1])
        except BaseException as error:
            self.error = error
            self._barrier.abort()

    def syncthreads(self) -> None:
        """Wait for the block."""
        self._barrier.wait()

    def syncthreads_count(self, value: Any) -> int:
        """Wait for the block; how many of its threads say yes."""
        self._votes[self.thread_id] = bool(value)
        self._barrier.wait()
        count = sum(self._votes)
        self._barrier.wait()
        return count
