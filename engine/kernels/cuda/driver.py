"""The seam to CUDA: compile a kernel for the device at hand, and launch it.

Owns the only way in which a kernel starts. On a GPU a kernel is compiled to PTX by numba-cuda at its first launch and
to machine code by nvJitLink, unless `cubin_cache.py` has kept that of an earlier process, then loaded and launched
through CuPy (a few microseconds a launch; numba's own takes ten times that). Under numba's CUDA simulator
(`NUMBA_ENABLE_CUDASIM=1`) the same functions run as threads in turn, on NumPy arrays. Refuses nothing:
`transfer/devices/cuda.py` has found the device, or said clearly that there is none.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numba import cuda as cuda  # what kernels say `cuda.` to, re-exported: this file is the door
from penstock.engine.kernels.cuda.compiler import compile_for, use_capability
from penstock.engine.kernels.cuda.cubin_cache import AT_ONCE, cubin_of, renewed
from penstock.engine.kernels.cuda_simulator import TURN, Launch
from penstock.engine.kernels.shared_functions import sort_in_place
from penstock.storage.base.stage_clock import loading
from penstock.storage.base.threads import Lock

if TYPE_CHECKING:
    from penstock.engine.program.bindings import Compile

SIMULATED = bool(numba.config.ENABLE_CUDASIM)
BLOCK = 8 if SIMULATED else 256
"""Threads of a block."""
LANES = 4 if SIMULATED else 32
"""Edges of an aligned run that neighboring threads read at once; 32 ids of 4 bytes are one line of 128 bytes."""
LANE_SHIFT = np.int64(LANES.bit_length() - 1)
PER_THREAD = 2 if SIMULATED else 8
TILE = BLOCK * PER_THREAD
"""Edges of a tile, the unit in which blocks take edges; tiles start at multiples of TILE."""
RESERVED = 2048
"""Bytes of shared memory that a block takes besides what it asks for, at most."""

_kernels: weakref.WeakSet[DeviceKernel] = weakref.WeakSet()
_current = [""]
"""The name of the device that kernels are launched on."""
_loads = [0]
_namespaces: list[dict[str, Any]] = [globals()]
"""Globals of the modules whose device code uses `cuda.`; the simulator puts its own there during a launch."""


def device(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a small function that only kernels call; plain Python under the simulator."""
    if SIMULATED:
        if all(function.__globals__ is not known for known in _namespaces):
            _namespaces.append(function.__globals__)
        return function
    return cuda.jit(device=True)(function)  # type: ignore[no-any-return]


compile_author: Compile = device

if not SIMULATED:
    from numba.cuda.extending import overload_method

    @overload_method(numba.types.Array, "sort")
    def _sort(values):  # type: ignore[no-untyped-def]
        """What `incoming.sort()` means in an author's function; without arguments, in one dimension."""
        return sort_in_place if values.ndim == 1 else None

    from numba.cuda import libdevice

    @device
    def rounded_product(a, b):  # type: ignore[no-untyped-def]
        """Return a product of float64, rounded; `a * b + c` would become one operation that rounds once."""
        return libdevice.dmul_rn(a, b)

else:

    @device
    def rounded_product(a, b):  # type: ignore[no-untyped-def]
        """Return a product; Python rounds it."""
        return a * b


class DeviceKernel:
    """One kernel: compiled at its first launch with arguments of certain types on a certain device.

    Any thread may launch it.

    together: its blocks wait for each other, so they must run at the same time: at most `blocks_together()` of them.
    """

    def __init__(self, function: Callable[..., Any], *, together: bool = False) -> None:
        self.function, self.__name__ = function, function.__name__
        self.together = together
        self._loaded: dict[tuple[Any, ...], _Loaded] = {}
        self._recent: _Loaded | None = None
        self._launching = Lock()
        _kernels.add(self)

    def __call__(self, blocks: int, *arguments: Any) -> None:
        """Start `blocks` blocks of BLOCK threads; arrays are the device's, numbers NumPy scalars."""
        if _compiling_only:
            _compiling_only[0][1](self.function, tuple(type_of(argument) for argument in arguments))
            return
        if blocks < 1:
            return
        assert not self.together or blocks <= blocks_together(), "blocks that wait for each other all run at once"
        if SIMULATED:
            _simulate(self.function, blocks, arguments)
            return
        with self._launching:
            if self._recent is None or not self._recent.take(arguments):
                key = (_current[0], *_kinds(arguments))
                if key not in self._loaded:
                    self._loaded[key] = _Loaded(self.function, arguments, together=self.together)
                    _loads[0] += 1
                self._recent = self._loaded[key]
                self._recent.take(arguments)
            self._recent.launch(blocks)

    def move(self) -> None:
        """Be launched on another device from now on."""
        self._recent = None

    def forget(self) -> None:
        """Let go of the arrays of the last launch."""
        for loaded in self._loaded.values():
            loaded.forget()


def kernel(function: Callable[..., Any], at_once: int | None = None) -> DeviceKernel:
    """Make a kernel of a function whose closure holds device functions.

    at_once: blocks that a multiprocessor must have registers for; None: whatever the compiler finds best.
    """
    if at_once is not None:
        function.__dict__[AT_ONCE] = at_once
    if SIMULATED:
        device(function)
    return DeviceKernel(function)


def kernel_together(function: Callable[..., Any]) -> DeviceKernel:
    """Make a kernel whose blocks wait for each other (`wait_for_all` of `device_functions.py`)."""
    if SIMULATED:
        device(function)
    return DeviceKernel(function, together=True)


def use(on: Any) -> None:
    """Launch on this Device from now on."""
    on.use()
    if on.name != _current[0]:
        _current[0] = on.name
        for known in list(_kernels):
            known.move()


def forget() -> None:
    """Let go of all arrays that kernels remember from their last launches."""
    for known in list(_kernels):
        known.forget()


def loads() -> int:
    """How many versions of kernels this process has compiled or loaded so far, which takes longer than to run them."""
    return _loads[0]


def _kinds(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """What distinguishes compiled versions of a kernel: the dtypes of its arguments."""
    return tuple(_kinds(item) if isinstance(item, tuple) else item.dtype.char for item in arguments)


def _simulate(function: Callable[..., Any], blocks: int, arguments: tuple[Any, ...]) -> None:
    """Run one block after another, arrays in place.

    What kernels see as `cuda` is numba's simulator's, less what `cuda_simulator.py` has instead.
    """
    from numba.cuda.simulator.kernelapi import FakeCUDAModule

    with ExitStack() as stack:
        stack.enter_context(TURN)
        outside, inside = cuda, Launch(FakeCUDAModule((blocks, 1, 1), (BLOCK, 1, 1), 0))
        for names in _namespaces:
            if names.get("cuda") is outside:
                names["cuda"] = inside
                stack.callback(names.__setitem__, "cuda", outside)
        inside.run(function, arguments)


class _Slot:
    """Where an argument, or a part of a tuple, is among the flattened words, and what was there at the last launch."""

    def __init__(self, argument: Any, words: list[int | float]) -> None:
        self.first, self.last = len(words), None
        self.parts: list[_Slot] | None = None
        self.kind = ""
        if isinstance(argument, tuple):
            self.parts = [_Slot(item, words) for item in argument]
        else:
            self.kind = argument.dtype.char
            _flatten(argument, words)

    def forget(self) -> None:
        """Let go of the array."""
        self.last = None
        for part in self.parts or ():
            part.forget()


class _Arguments:
    """Room for a kernel's flattened arguments, of which only what differs from the last launch is laid out anew."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        words: list[int | float] = []
        self._slots = [_Slot(argument, words) for argument in arguments]
        self.words = np.zeros(len(words), dtype=np.uint64)
        self._floats = self.words.view(np.float64)

    def take(self, arguments: tuple[Any, ...]) -> bool:
        """Lay out these arguments; False, and nothing of use done, if the types are others."""
        for slot, argument in zip(self._slots, arguments, strict=True):
            if argument is not slot.last and not self._lay_out(slot, argument):
                return False
        return True

    def _lay_out(self, slot: _Slot, argument: Any) -> bool:
        if slot.parts is not None:
            if not isinstance(argument, tuple) or len(argument) != len(slot.parts):
                return False
            slot.last = None  # some parts may be laid out before one is of another type
            for part, item in zip(slot.parts, argument, strict=True):
                if item is not part.last and not self._lay_out(part, item):
                    return False
        elif isinstance(argument, tuple) or argument.dtype.char != slot.kind:
            return False
        else:
            words: list[int | float] = []
            _flatten(argument, words)
            for at, word in enumerate(words, start=slot.first):
                if type(word) is float:
                    self._floats[at] = word
                else:
                    self.words[at] = word
        slot.last = argument
        return True

    def forget(self) -> None:
        """Let go of the arrays of the last launch."""
        for slot in self._slots:
            slot.forget()


class _Loaded(_Arguments):
    """A compiled kernel on the current device."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...], *, together: bool) -> None:
        import cupy

        super().__init__(arguments)
        self._function = _load(function, tuple(type_of(argument) for argument in arguments))
        driver = cupy.cuda.driver
        self._launch = driver.launchCooperativeKernel if together else driver.launchKernel
        self._last = () if together else (0,)
        self._stream = cupy.cuda.get_current_stream
        self._places = self.words.ctypes.data + 8 * np.arange(len(self.words), dtype=np.uint64)
        self._place = self._places.ctypes.data

    def launch(self, blocks: int) -> None:
        """Launch on CuPy's current stream, with what was taken."""
        self._launch(self._function, blocks, 1, 1, BLOCK, 1, 1, 0, self._stream().ptr, self._place, *self._last)


CompileOne = Callable[[Callable[..., Any], tuple[Any, ...]], None]
_compiling_only: list[tuple[tuple[int, int], CompileOne]] = []
"""Of a process that launches nothing: the capability that it compiles for, and what a launch does instead."""


def compile_only(capability: tuple[int, int], compile_one: CompileOne) -> None:
    """From now on, compile a kernel for a device of that capability where it would be launched; no device is used."""
    use_capability(capability)
    _compiling_only[:] = [(capability, compile_one)]


def launch_again() -> None:
    """End what `compile_only` began."""
    _compiling_only.clear()


def _load(function: Callable[..., Any], types: tuple[Any, ...]) -> Any:
    """The kernel in the current device's memory; what was kept and the driver does not take is compiled anew."""
    import cupy

    driver = cupy.cuda.driver

    def compiled() -> bytes:
        return compile_for(function, types, capability(), BLOCK)

    name, _, code = cubin_of(function, types, capability(), compiled).partition(b"\0")
    with loading():
        try:
            module = driver.moduleLoadData(code)
        except driver.CUDADriverError:
            name, _, code = renewed(function, types, capability(), compiled).partition(b"\0")
            module = driver.moduleLoadData(code)
    return driver.moduleGetFunction(module, name.decode())


def _flatten(argument: Any, words: list[int | float]) -> None:
    """Lay an array or a number out as numba-cuda's kernels take it; an array is seven words or more."""
    if hasattr(argument, "strides") and argument.ndim > 0:
        words += (0, 0, argument.size, argument.itemsize, argument.data.ptr, *argument.shape, *argument.strides)
    elif isinstance(argument, np.floating):
        words.append(float(argument))
    else:
        words.append(int(argument) & (2**64 - 1))


def type_of(argument: Any) -> Any:
    """The numba type of a kernel's argument: a tuple, an array of the device, or a NumPy scalar."""
    if isinstance(argument, tuple):
        named = None if type(argument) is tuple else type(argument)
        return numba.types.BaseTuple.from_types([type_of(item) for item in argument], named)
    scalar = numba.from_dtype(np.dtype(argument.dtype))
    return numba.types.Array(scalar, argument.ndim, "C") if argument.ndim else scalar


def capability() -> tuple[int, int]:
    """Compute capability of the current device."""
    import cupy

    text = cupy.cuda.Device().compute_capability
    return int(text[:-1]), int(text[-1])


@cache
def most_blocks() -> int:
    """Blocks that keep the device busy; kernels stride over what is left."""
    if SIMULATED or _compiling_only:
        return 3
    import cupy

    return 8 * int(cupy.cuda.Device().attributes["MultiProcessorCount"])


def blocks_together() -> int:
    """Blocks that certainly run at the same time: one a multiprocessor; under the simulator, which has turns, one."""
    return 1 if SIMULATED or _compiling_only else most_blocks() // 8


@cache
def blocks_sharing(shared_bytes: int, most: int) -> int:
    """Blocks that run at the same time, each with so much shared memory, at most so many a multiprocessor."""
    if SIMULATED or _compiling_only:
        return 2
    import cupy

    known = cupy.cuda.Device().attributes
    room = int(known["MaxSharedMemoryPerMultiprocessor"]) // (shared_bytes + RESERVED)
    return max(1, min(most, room)) * int(known["MultiProcessorCount"])


def blocks_for(threads: int, most: int | None = None) -> int:
    """Blocks for so many threads' work, at most so many; None: what keeps the device busy."""
    return max(1, min(most_blocks() if most is None else most, -(-threads // BLOCK)))


def many_blocks() -> int:
    """Blocks for long work of equal parts: so many that the last ones to run, which leave room, do not matter.

    How many of `most_blocks()` fit at once is for a kernel's registers to say; those that do not would run alone.
    """
    return most_blocks() * (1 if SIMULATED else 8)
