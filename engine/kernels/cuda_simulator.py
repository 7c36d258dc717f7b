"""Launches of a kernel under numba's CUDA simulator: a block's threads in turn, each until it waits for the others.

In place of four parts of the simulator. Its block runner has a Python thread for each CUDA thread, polls them and
copies arrays in and out, which costs a second a launch and breaks arrays that are passed twice; its `threadIdx` looks
for the Python thread that runs. Its shared arrays are looked for and made in two steps, so that two threads of a block
may each have their own. Here the threads of a block are greenlets of the caller's Python thread.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
from numba.np.numpy_support import as_dtype

TURN = threading.Lock()
"""Held while a kernel runs, for which names of modules are changed: launches take turns."""


class Shared:
    """The shared arrays of the block that runs: `arrays`, one for every line that asks for one."""

    def __init__(self) -> None:
        self.arrays: dict[tuple[Any, int], Any] = {}

    def array(self, shape: Any, dtype: Any) -> Any:
        """The array of the caller's line, made by the thread that comes first; not filled."""
        caller = sys._getframe(1)
        place = caller.f_code, caller.f_lineno
        if place not in self.arrays:
            self.arrays[place] = local_array(shape, dtype)
        return self.arrays[place]


def local_array(shape: Any, dtype: Any) -> Any:
    """An array of the thread that runs, not filled; the simulator looks for the dtype each time."""
    return np.empty(shape, _numpy_dtype(dtype))


@cache
def _numpy_dtype(dtype: Any) -> Any:
    return as_dtype(dtype) if isinstance(dtype, numba.types.Type) else dtype


class Launch:
    """What a kernel sees as `cuda` while it runs: the simulator's module, less what depends on the running thread."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self.gridDim, self.atomic, self.local = module.gridDim, module.atomic, SimpleNamespace(array=local_array)
        self.shared = Shared()
        self._votes = self._count = 0

    def __getattr__(self, name: str) -> Any:
        """Return what does not depend on the running thread."""
        return getattr(self._module, name)

    def run(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        """Run a kernel's blocks, one after another. Raises what the first thread raised that failed."""
        for number in range(self.gridDim.x):
            self.blockIdx = SimpleNamespace(x=number, y=0, z=0)
            self.shared.arrays.clear()
            self._run_block(function, arguments)

    def _run_block(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        """Run the threads from barrier to barrier, in rising and in falling order: neither may matter."""
        from greenlet import getcurrent, greenlet

        self._caller = getcurrent()
        every = [(SimpleNamespace(x=at, y=0, z=0), greenlet(function)) for at in range(self.blockDim.x)]
        running = every
        while running:
            for self.threadIdx, thread in running:
                thread.switch(*arguments)
            running = [one for one in reversed(running) if not one[1].dead]
            assert len(running) in (0, len(every)), "a barrier is passed by all threads of a block, or by none"
            self._count, self._votes = self._votes, 0

    def syncthreads(self) -> None:
        """Wait for the block."""
        self._caller.switch()

    def syncthreads_count(self, value: Any) -> int:
        """Wait for the block; how many of its threads say yes."""
        self._votes += bool(value)
        self._caller.switch()
        return self._count
