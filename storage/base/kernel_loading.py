"""Makes a function of what Numba compiled in an earlier process, without what only compiling needs.

Numba's own way fills the registries of its compiler, and imports all that they describe, and the modules that inlined
functions are from (one of which imports scipy): a third of the time from a command to its answer.
"""

import functools
import io
import pickle
from typing import Any

import llvmlite.binding
from numba.core.compiler import CompileResult
from numba.core.environment import Environment, _rebuild_env, lookup_environment
from numba.core.runtime import _nrt_python

_REBUILD = (_rebuild_env.__module__, _rebuild_env.__qualname__)


def load(content: bytes, target_context: Any) -> CompileResult:
    """Return the compiled function of which `content` is the pickle."""
    _define_runtime()
    return CompileResult._rebuild(target_context, *_Unpickler(io.BytesIO(content)).load())


@functools.cache
def _define_runtime() -> None:
    """Tell the linker where Numba's functions for arrays are; `rtsys.initialize` would compile some as well."""
    for name, address in _nrt_python.c_helpers.items():
        llvmlite.binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


class _Unpickler(pickle.Unpickler):
    """Imports types, but not the modules that the functions of a kernel come from."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what a name in the pickle means."""
        return _environment if (module, name) == _REBUILD else super().find_class(module, name)


def _environment(module: str, constants: list[Any], name: str) -> Environment:
    """The constants of one function; only code in Python's own mode would look up names of its module."""
    known = lookup_environment(name)
    if known is not None:
        return known
    made = Environment({"__name__": module})
    made.consts[:] = constants
    made.env_name = name
    Environment._memo[name] = made
    return made
