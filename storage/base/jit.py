"""How storage's inner loops are compiled: once per machine (kept in the user's cache), without Python's lock.

No kernel here is parallel: storage's loops run inside worker threads, and two threads must not enter Numba's own at
once. Numba is imported at the first call of a kernel: it takes longer than opening a graph.
"""

import functools
import importlib
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from penstock.storage.base.missing_code import FEW, are_left

CALL = 64
"""Items that a call takes as long as."""
F = TypeVar("F", bound=Callable[..., Any])
_compiling = threading.Lock()


class JitFunction:
    """A function that is compiled, or loaded from the cache, when it is first called; other kernels may call it.

    part: options of Numba's for a function that only kernels call, which is a part of each of them; None: of others.
    few: how many items of its last argument are left to Python itself, in all calls.
    """

    def __init__(self, function: Callable[..., Any], part: Mapping[str, bool] | None = None, few: int = 0) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self._part, self._left = function, part, few
        self._compiled: Any = None

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled function, or Python's own: of what only kernels call, and while there are few items."""
        if self._part is not None:
            return self.py_func(*arguments)
        if self._left > 0 and self._compiled is None and are_left(items := len(arguments[-1])):
            self._left -= CALL + items
            return self.py_func(*arguments)
        return (self._compiled or self.compiled)(*arguments)

    @property
    def compiled(self) -> Any:
        """Numba's function."""
        with _compiling:
            if self._compiled is None:
                self._compiled = self._compile()
        return self._compiled

    def _compile(self) -> Any:
        import numba

        if self._part is not None:
            from penstock.storage.base.compiler import SeparateCompiler

            return numba.njit(nogil=True, pipeline_class=SeparateCompiler, **self._part)(self.py_func)
        from penstock.storage.base.kernel_cache import kept

        return kept(numba.njit(nogil=True, no_cfunc_wrapper=True)(self.py_func), origin=self._origin)

    def _origin(self) -> dict[str, Any]:
        """Describe it to another process, which finds it in its module (`missing_code.py`)."""
        function = [self.py_func.__module__, self.py_func.__qualname__]
        return {"target": [__name__, compile_function.__name__], "function": function}

    @property
    def _numba_type_(self) -> Any:
        """What Numba takes the function for where another kernel calls it."""
        return self.compiled._numba_type_


def jit(function: F) -> F:
    """Compile a function of numbers and arrays at its first call; later processes load it."""
    return cast(F, JitFunction(function))


def jit_later(function: F) -> F:
    """The same for a loop over the items of its last argument, the first few of which Python itself goes over."""
    return cast(F, JitFunction(function, few=FEW // 2))


def jit_part(function: F) -> F:
    """Compile a function that only kernels call, with each of them."""
    return cast(F, JitFunction(function, {}))


def jit_inlined(function: F) -> F:
    """Compile a function that only kernels call, inlined in each of them; it must not make arrays.

    It counts no references to arrays, which would be atomic.
    """
    return cast(F, JitFunction(function, {"forceinline": True, "_nrt": False}))


def compile_function(request: dict[str, Any]) -> None:
    """Compile and keep what another process asks for: a function for arguments of some types."""
    from penstock.storage.base.kernel_loading import signature_of

    module, name = request["function"]
    getattr(importlib.import_module(module), name).compiled.compile(signature_of(request["types"]))
