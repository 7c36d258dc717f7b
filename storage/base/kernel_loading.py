"""Makes a function of what Numba compiled in an earlier process, without what only compiling needs.

Numba's own way fills the registries of its compiler, and imports all that they describe, and the modules that inlined
functions are from (one of which imports scipy): a third of the time from a command to its answer.
"""

import functools
import io
import pickle
from typing import Any

import llvmlite.binding
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult
from numba.core.environment import Environment, _rebuild_env, lookup_environment
from numba.core.runtime import _nrt_python

_REBUILD = (_rebuild_env.__module__, _rebuild_env.__qualname__)


def load(content: bytes, target_context: Any) -> CompileResult:
    """Return the compiled function of which `content` is the pickle, as `CompileResult._rebuild` would."""
    _define_runtime()
    data, described, environment, signature, *others = _Unpickler(io.BytesIO(content)).load()
    objectmode, lifted, annotation, reload_init, environments = others
    for call in reload_init:
        call()
    library = _LoadedLibrary(target_context.codegen(), data, described.llvm_cpython_wrapper_name)
    called = target_context.get_executable(library, described, environment)
    for each in environments:
        library.codegen.set_env(each.env_name, each)
    return CompileResult(
        typing_context=target_context.typing_context,
        target_context=target_context,
        entry_point=called,
        typing_error=None,
        type_annotation=annotation,
        signature=signature,
        objectmode=objectmode,
        lifted=lifted,
        fndesc=described,
        library=library,
        call_helper=None,
        environment=environment,
        metadata=None,
        reload_init=reload_init,
        referenced_envs=environments,
    )


class _LoadedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Machine code; its intermediate code, most of the time and memory, is read when what calls it is compiled."""

    _shared_module: Any

    def __init__(self, codegen: Any, data: tuple[str, str, tuple[bytes, bytes]], entry: str) -> None:
        name, kind, (machine_code, self._intermediate_code) = data
        assert kind == "object"
        super().__init__(codegen, name)
        self.enable_object_caching()
        self._set_compiled_object(machine_code)
        self._finalize_final_module()
        codegen._engine._defined_symbols.add(entry)

    def _get_module_for_linking(self) -> Any:
        """The intermediate code, from now on in memory."""
        if self._shared_module is None:
            self._shared_module = llvmlite.binding.parse_bitcode(self._intermediate_code)
        return self._shared_module


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
