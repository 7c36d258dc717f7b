"""Numba compilation with a disk cache keyed by the author's functions, and the threads that kernels run on.

The key of a kernel's entry in the user's cache is a digest of the files that it and what it calls come from, and of the
author's functions over which it is closed.

The threads of kernels are Numba's, and its OpenMP layer ends the whole process where they cannot start, and in one that
was forked after they had started. Both are found out before, and reported.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numba
from numba.core.typing.typeof import Purpose, typeof
from penstock.engine.kernels.host.threads.openmp import start_threads
from penstock.engine.kernels.host.threads.parallel_loop import run_loop
from penstock.engine.program.bindings import Author
from penstock.storage.base.budget import check_room
from penstock.storage.base.compiler import DistinctArraysCompiler, InlinedCompiler
from penstock.storage.base.errors import InputError
from penstock.storage.base.function_digest import function_digest
from penstock.storage.base.kernel_cache import kept
from penstock.storage.base.kernel_loading import signature_of
from penstock.storage.base.missing_code import Origin
from penstock.storage.base.threads import check_startable

SHARES = 8
"""Parts of a loop for each thread: its steps differ in work, and a core that others use too is slow."""
COMPILER_BYTES = 64 << 20
"""What must be free before a kernel is compiled or loaded: LLVM ends the process where it is refused memory."""


def compile_author(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile an author's function, or one that takes arrays from one (never cached on its own)."""
    return _inlined(function, counted=True)


def compile_vertex(author: Author) -> Callable[..., Any]:
    """Return the compiler for a function that takes the values of a vertex's fields from the author's functions."""
    return compile_author if author.may_make_arrays else inline


def _inlined(function: Callable[..., Any], *, counted: bool, distinct: bool = False) -> Callable[..., Any]:
    """Compile a function that only kernels call; counted, distinct: as in `loop_kernel`."""
    options = {} if counted else {"forceinline": True, "_nrt": False}
    compiler = DistinctArraysCompiler if distinct else InlinedCompiler
    return numba.njit(error_model="numpy", nogil=True, pipeline_class=compiler, **options)(function)  # type: ignore[no-any-return]


def inline(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a small function of the kernels' own: always inlined, and references to arrays are not counted.

    Counting is atomic: a BFS on an R-MAT graph takes half as long without, a pull a quarter. So the function must not
    make arrays, nor take one from an author's function, which nothing would free.
    """
    return _inlined(function, counted=False)


class JitKernel:
    """A kernel, compiled when it is first called with arguments of some types: it runs on the caller's thread."""

    def __init__(self, function: Callable[..., Any], key: str) -> None:
        self._function, self.__name__ = function, function.__name__
        self.name = f"{key} {function.__module__}.{function.__qualname__}.{function.__code__.co_firstlineno}"
        self.origin: Origin | None = None

    def compile_types(self, types: tuple[Any, ...]) -> None:
        """Compile it for arguments of these types of Numba's, and keep it."""
        self._compiled.compile(types)

    def compile_for(self, arguments: tuple[Any, ...]) -> None:
        """Compile it for arguments like these, and keep it, without running it."""
        self._compiled.compile(tuple(typeof(argument, Purpose.argument) for argument in self._given(arguments)))

    def _given(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """What the compiled function is given."""
        return arguments

    def __call__(self, *arguments: Any) -> Any:
        """Run it, and return what it returns."""
        return self._compiled(*arguments)

    @property
    def is_loaded(self) -> bool:
        """Whether it is compiled, or loaded from the user's cache, in this process."""
        return "_compiled" in vars(self)

    @functools.cached_property
    def _compiled(self) -> Any:
        return self._kept(self._function)

    def _kept(self, function: Callable[..., Any]) -> Any:
        """Return the dispatcher of a function that is made of the kernel's, whose name and key it is kept under."""
        check_room(COMPILER_BYTES, f"compiling the kernel {self._function.__qualname__}")
        start_threads()  # what the threading layer offers is linked in
        compiled = numba.njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True)(function)
        return kept(compiled, lambda: self.key_of(function), self._origin, linked=False)

    def key_of(self, function: Callable[..., Any]) -> str:
        """Digest of all that the code of a function made of the kernel's depends on; `_inlined`: how it is compiled."""
        parts = self.name, function_digest(function), function_digest(_inlined)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def _origin(self) -> dict[str, Any]:
        """How another process finds it: in its module, or as `origin` says."""
        module = self._function.__module__
        if any(found is self for found in kernels_of(sys.modules[module])):
            return {"target": [__name__, compile_kernel.__name__], "module": module, "name": self.name}
        if self.origin is None:
            raise TypeError(f"{self.name} is in no module")
        return self.origin()


class LoopKernel(JitKernel):
    """A kernel whose steps threads share: its function is given [first, last) of them, and its arguments.

    Waking threads costs more than a small iteration's whole work, and much more on a busy machine: callers say how
    many.
    """

    def __init__(
        self, function: Callable[..., Any], key: str, *, grain: int | None, shares: int, counted: bool, distinct: bool
    ) -> None:
        super().__init__(function, key)
        self._grain, self._shares, self._counted, self._distinct = grain, shares, counted, distinct

    def __call__(self, threads: int, steps: int, *arguments: Any) -> None:
        """Run all steps on so many threads; 1: on the caller's."""
        grain = self._grain or (-(-steps // (threads * self._shares)) if threads > 1 else steps)
        self._compiled(threads, steps, grain, arguments)

    def _given(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        threads, steps, *others = arguments
        return threads, steps, 1, tuple(others)

    @functools.cached_property
    def _compiled(self) -> Any:
        body = _inlined(self._function, counted=self._counted, distinct=self._distinct)

        def run(threads, steps, grain, arguments):  # type: ignore[no-untyped-def]
            run_loop(body, threads, steps, grain, arguments)

        run.__name__ = self.__name__  # which people are shown
        return self._kept(run)


def kernels_of(module: ModuleType) -> list[JitKernel]:
    """The kernels that a module has."""
    return [value for value in vars(module).values() if isinstance(value, JitKernel)]


def compile_kernel(request: dict[str, Any]) -> None:
    """Compile and keep what another process asks for: a kernel of a module, for arguments of some types."""
    found = kernels_of(importlib.import_module(request["module"]))
    made = next(kernel for kernel in found if kernel.name == request["name"])
    made.compile_types(signature_of(request["types"]))


def kernel(key: str) -> Callable[[Callable[..., Any]], JitKernel]:
    """Make a kernel closed over compiled functions; `key` names what it is closed over."""
    return lambda function: JitKernel(function, key)


def loop_kernel(
    key: str, *, grain: int | None = None, shares: int = SHARES, counted: bool = False, distinct: bool = False
) -> Callable[[Callable[..., Any]], LoopKernel]:
    """Make a kernel whose steps threads share.

    grain: so many steps a thread takes at once, until none is left; None: so many that each thread takes `shares`
    times, if all are equally fast; 1 where near steps add to the same numbers, so that threads stay apart. counted: the
    kernel makes arrays, or takes some that an author's function made, so that Numba counts references. distinct: no two
    of its arrays share memory, unless both are only read.
    """
    return lambda function: LoopKernel(function, key, grain=grain, shares=shares, counted=counted, distinct=distinct)


FORKED = (
    "this process was forked from one whose kernels had run, and their threads are not in it; begin processes with "
    "multiprocessing's 'spawn' or 'forkserver', or fork before the first run"
)

_started_in: int | None = None
"""The process in which kernels' threads have started: this one, or one from which it was forked."""


def use_workers(threads: int) -> None:
    """Let kernels run on so many threads from now on, or on as many as NUMBA_NUM_THREADS allows.

    Raises InputError in a process that was forked too late, RunError where no further threads can start.
    """
    global _started_in
    if _started_in != os.getpid():
        if _started_in is not None and numba.threading_layer() == "omp":
            raise InputError(FORKED)
        check_startable(threads - 1, "penstock-kernel")
        start_threads()
        _started_in = os.getpid()
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
