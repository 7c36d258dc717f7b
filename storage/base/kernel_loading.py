"""What is kept of a function that Numba compiled, and the function made of that, without what only compiling needs.

Numba's own way is a pickle, which calls whatever its writer names, fills the registries of the compiler, and imports
all that they describe, and the modules that inlined functions are from (one of which imports scipy): a third of the
time from a command to its answer. What is kept here is a line of JSON (names, types by name), machine code, and LLVM's
intermediate code of functions that others call. The types of arguments, the module and the name are those of the
function that is called.

Machine code is code: it is loaded from where only the user and root can have written it (`user_cache.py`). Content
whose description does not fit, or whose machine code is no object file with the names described, counts as absent.
"""

import ctypes
import functools
import inspect
import json
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import llvmlite.binding
import numpy as np
from numba import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult
from numba.core.environment import Environment, lookup_environment
from numba.core.funcdesc import PythonFunctionDescriptor
from numba.core.itanium_mangler import prepend_namespace
from numba.core.runtime import _nrt_python
from numba.core.typing import Signature

FORM = 2
"""Of what is kept; part of the name of an entry."""
_ENVIRONMENT, _OBJECT, _BITCODE = "_ZN08NumbaEnv", b"\x7fELF", b"BC\xc0\xde"
"""What Numba's names of environments, object files and intermediate code begin with."""


class _Stored(NamedTuple):
    """What is kept. environments: the dtypes that each function takes from Python, by name; the first is its own."""

    function: str
    environments: dict[str, list[np.dtype[Any]]]
    returned: Any
    machine_code: bytes
    intermediate_code: bytes


def stored(compiled: CompileResult, arguments: tuple[Any, ...], linked: bool = True) -> bytes:
    """Return what `load` makes the function of, and, linked, those that call it. Raises TypeError for another kind."""
    code, described, own, signature, objectmode, lifted, _, reload_init, referenced = compiled._reduce()
    _, kind, (machine_code, intermediate_code) = code
    assert kind == "object"
    linkable = intermediate_code if linked else b""
    if objectmode or lifted or reload_init or described.noalias or tuple(signature.args) != arguments:
        raise TypeError(f"{described.qualname} is more than machine code")
    told = {
        "function": described.mangled_name,
        "environments": {each.env_name: [_told_dtype(one) for one in each.consts] for each in (own, *referenced)},
        "returned": told_types((signature.return_type,)),
        "bytes": [len(machine_code), len(linkable)],
    }
    return b"%s\n%s%s" % (json.dumps(told).encode(), machine_code, linkable)


def _told_dtype(constant: Any) -> str:
    """The dtype of arrays that a function returns; the only thing of Python's that our functions take."""
    if not isinstance(constant, np.dtype) or np.dtype(constant.str) != constant:
        raise TypeError(f"a constant {constant!r:.200}")
    return constant.str


def _understood(content: bytes) -> _Stored | None:
    """What `stored` was given; None where content is something else."""
    line, _, code = content.partition(b"\n")
    try:
        told = json.loads(line)
        (size, further), environments = told["bytes"], {n: [*map(np.dtype, a)] for n, a in told["environments"].items()}
        (returned,) = signature_of(told["returned"])
        found = _Stored(told["function"], environments, returned, code[:size], code[size:])
        symbols = prepend_namespace(found.function, ns="cpython"), *environments
        named = all(b"%s\0" % symbol.encode() in found.machine_code for symbol in symbols)
        own = bool(environments) and all(name.startswith(_ENVIRONMENT) for name in environments)
        own &= size + further == len(code) and (not further or code[size:].startswith(_BITCODE))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None
    return found if returned is not None and named and own and _is_object(found.machine_code) else None


def _is_object(code: bytes) -> bool:
    """Whether LLVM, which ends the process otherwise, reads this as an object file of this system."""
    return code.startswith(_OBJECT) and bool(llvmlite.binding.ObjectFileRef.from_data(code))


def load(content: bytes, function: Callable[..., Any], arguments: tuple[Any, ...], target: Any) -> Any:
    """Return the compiled function, a CompileResult, of which `content` is stored; None where it is not that.

    Parameters
    ----------
    content : bytes
        What `stored` returned.
    function : callable
        What was compiled.
    arguments : tuple of Type
        Numba's types of its arguments.
    target : CPUContext
        Numba's, of this process.
    """
    known = _understood(content)
    if known is None:
        return None
    _define_runtime()
    described = _described(function, known, arguments)
    engine = target.codegen()._engine
    library = _LoadedLibrary(target.codegen(), function.__qualname__, known)
    entry, places = described.llvm_cpython_wrapper_name, [*map(engine.get_global_value_address, known.environments)]
    if not engine.get_function_address(entry) or not all(places):
        return None
    engine._defined_symbols.add(entry)
    environments = tuple(_environment(function.__module__, *each) for each in known.environments.items())
    called = target.get_executable(library, described, environments[0])
    for place, each in zip(places, environments, strict=True):
        ctypes.c_void_p.from_address(place).value = id(each)
    return CompileResult(
        typing_context=target.typing_context,
        target_context=target,
        entry_point=called,
        typing_error=None,
        type_annotation=None,
        signature=Signature(known.returned, arguments, None),
        objectmode=False,
        lifted=(),
        fndesc=described,
        library=library,
        call_helper=None,
        environment=environments[0],
        metadata=None,
        reload_init=[],
        referenced_envs=environments,
    )


def _described(function: Callable[..., Any], known: _Stored, arguments: tuple[Any, ...]) -> PythonFunctionDescriptor:
    """What Numba knows of a compiled function, by the names that its machine code has."""
    return PythonFunctionDescriptor(
        native=True,
        modname=function.__module__,
        qualname=function.__qualname__,
        unique_name=known.function,
        doc=function.__doc__ or "",
        typemap=None,
        restype=known.returned,
        calltypes=None,
        args=tuple(inspect.signature(function).parameters),
        kws=(),
        mangler=lambda *_, **__: known.function,
        argtypes=arguments,
        env_name=next(iter(known.environments)),
    )


class _LoadedLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Machine code; its intermediate code, most of the time and memory, is read when what calls it is compiled."""

    _shared_module: Any

    def __init__(self, codegen: Any, name: str, known: _Stored) -> None:
        super().__init__(codegen, name)
        self._intermediate_code = known.intermediate_code
        self.enable_object_caching()
        self._set_compiled_object(known.machine_code)
        self._finalize_final_module()

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


def _environment(module: str, name: str, dtypes: list[np.dtype[Any]]) -> Environment:
    """What one function takes from Python; only code in Python's own mode would look up names of its module."""
    known = lookup_environment(name)
    if known is not None:
        return known
    made = Environment({"__name__": module})
    made.consts[:] = dtypes
    made.env_name = name
    Environment._memo[name] = made
    return made


def told_types(signature: Any) -> list[Any]:
    """Types of arguments as JSON has them. Raises TypeError for any that could not be told apart from another."""
    told = [_type_told(kind) for kind in signature]
    if signature_of(told) != tuple(signature):
        raise TypeError(f"arguments of types {signature}")
    return told


def signature_of(told: list[Any]) -> tuple[Any, ...]:
    """The types that `told_types` was given."""
    return tuple(_type_of(kind) for kind in told)


def _type_told(kind: Any) -> Any:
    if isinstance(kind, types.Array):
        return ["array", _type_told(kind.dtype), kind.ndim, kind.layout, not kind.mutable, kind.aligned]
    if isinstance(kind, types.BaseNamedTuple):
        named = kind.instance_class
        return ["named", named.__module__, named.__qualname__, *map(_type_told, kind)]
    if isinstance(kind, types.BaseTuple):
        return ["tuple", *map(_type_told, kind)]
    return str(kind)


def _type_of(told: Any) -> Any:
    """The type that was told; None for anything else, and where its name does not say which it is."""
    match told:
        case str():
            found = getattr(types, told, None)
            return found if isinstance(found, types.Type) else None
        case ["tuple", *parts]:
            inner = [_type_of(part) for part in parts]
            return None if None in inner else types.Tuple(inner)
        case ["named", str(module), str(name), *parts]:
            inner, found = [_type_of(part) for part in parts], _named_class(module, name)
            fits = found is not None and len(found._fields) == len(inner) and None not in inner
            return types.BaseTuple.from_types(inner, found) if fits else None
        case ["array", name, int(ndim), "C" | "F" | "A" as layout, bool(readonly), bool(aligned)]:
            dtype = _type_of(name)
            return None if dtype is None else types.Array(dtype, ndim, layout, readonly=readonly, aligned=aligned)
    return None


def _named_class(module: str, name: str) -> Any:
    """The class of named tuples of a module of ours; None for another module, which is not imported, or thing."""
    if re.fullmatch(r"penstock(\.\w+)+", module) is None:
        return None
    try:
        found = getattr(import_module(module), name, None)
    except ImportError:
        return None
    return found if isinstance(found, type) and issubclass(found, tuple) and hasattr(found, "_fields") else None
