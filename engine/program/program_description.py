"""A program in JSON, from which another process makes the same: where its class is, and its attributes.

Values as JSON and back, without pickle, for checkpoints too: None, truth values, numbers, texts, bytes, NumPy scalars
and arrays, and lists, tuples, sets and dictionaries of them. Everything else is refused, rather than keep something
that is not the same afterwards. What is read cannot be code.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import cache, wraps
from pathlib import Path
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
T = TypeVar("T")
_MADE = "_made_by"
"""Attribute of a class that a function of a module makes: that function, and its arguments."""


def class_maker(make: Callable[P, T]) -> Callable[P, T]:
    """Let a function make each class once, of classes and JSON values, and let other processes make the same."""

    @cache
    @wraps(make)
    def made(*arguments: Any) -> Any:
        kind: Any = make(*arguments)  # type: ignore[call-arg]
        if kind not in arguments:
            setattr(kind, _MADE, (made, arguments))
        return kind

    return made  # type: ignore[return-value]


def variant(kind: type[T], *bases: type, **own: Any) -> type[T]:
    """The class with what the bases have, which come before it, and other attributes, JSON values; under its name."""
    return bases[0] if bases and not own and issubclass(bases[0], kind) else _variant(kind, *bases, *own.items())


@class_maker
def _variant(kind: Any, *more: Any) -> Any:
    """The class of `variant`; more: bases, then names and values."""
    bases = [one for one in more if isinstance(one, type)]
    words = {name: getattr(kind, name) for name in ("__doc__", "__module__", "__qualname__")}
    return type(kind.__name__, (*bases, kind), words | dict(more[len(bases) :]))


def describe_program(program: Any) -> list[Any]:
    """Where another process finds the program's class, and its attributes.

    Raises TypeError where it finds none (the class is of a script, a notebook, or within a function), or attributes are
    not JSON.
    """
    attributes = {name: to_json_value(value) for name, value in vars(program).items()}
    return [*_described_class(type(program)), attributes]


def _described_class(kind: type) -> list[Any]:
    """A class' module, its file, and its name there or the name of what makes it there and of what."""
    make, arguments = vars(kind).get(_MADE, (kind, None))
    place = [make.__module__, str(_file_of(make)), make.__qualname__]
    if arguments is None:
        return place
    of = [["class", *_described_class(each)] if isinstance(each, type) else to_json_value(each) for each in arguments]
    return [*place[:2], [place[2], of]]


def source_of(program: Any) -> str:
    """The program's class, and a digest of its module. Raises TypeError as `describe_program`."""
    kind = type(program)
    return f"{kind.__module__}.{kind.__qualname__} {_file_of(kind)} {_digest(kind.__module__)}"


@cache
def _digest(module: str) -> str:
    try:
        return hashlib.sha256(inspect.getsource(sys.modules[module]).encode()).hexdigest()
    except OSError as error:
        raise TypeError(f"the source of {module} cannot be read") from error


def _file_of(kind: Any) -> Path:
    """The file of the module of a class, or of what makes one."""
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    if kind.__module__ == "__main__" or file is None or getattr(module, kind.__qualname__, None) is not kind:
        raise TypeError(f"{kind.__qualname__} is in no module that another process could import")
    return Path(file).absolute()


def described_program(described: list[Any]) -> Any:
    """The program that `describe_program` was given, in another process."""
    module, file, name, attributes = described
    kind = _class_of(module, file, name)
    program = kind.__new__(kind)
    vars(program).update({name: from_json_value(value) for name, value in attributes.items()})
    return program


def _class_of(module: str, file: str, name: Any) -> Any:
    """The class that `_described_class` was given, in another process."""
    found = _module(module, file)
    if isinstance(name, str):
        return getattr(found, name)
    make, of = name
    given = [_class_of(*e[1:]) if isinstance(e, list) and e[:1] == ["class"] else from_json_value(e) for e in of]
    return getattr(found, make)(*given)


def _module(name: str, file: str) -> ModuleType:
    """A module by its name, or by its file where that is not the name's."""
    if name in sys.modules:
        return sys.modules[name]
    found = importlib.util.find_spec(name)
    if found is not None and found.origin is not None and Path(found.origin).absolute() == Path(file):
        return importlib.import_module(name)
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} cannot be imported")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def to_json_value(value: Any) -> Any:
    """A value as JSON has it. Raises TypeError for what is not known here."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is list:
        return [to_json_value(item) for item in value]
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufcSUmM":
        array = np.ascontiguousarray(value)
        return {"array": [array.dtype.str, list(np.shape(value)), _text(array.tobytes())]}
    if isinstance(value, bytes):
        return {"bytes": _text(value)}
    if type(value) is tuple:
        return {"tuple": [to_json_value(item) for item in value]}
    if isinstance(value, set | frozenset):
        return {type(value).__name__: sorted((to_json_value(item) for item in value), key=repr)}
    if isinstance(value, Mapping):
        return {"dict": [[to_json_value(key), to_json_value(item)] for key, item in value.items()]}
    raise TypeError(f"a {type(value).__name__}")


def from_json_value(value: Any) -> Any:
    """What `to_json_value` was given. Raises ValueError or its like for JSON that it never makes."""
    if not isinstance(value, dict):
        return [from_json_value(item) for item in value] if isinstance(value, list) else value
    ((kind, held),) = value.items()
    if kind == "array":
        dtype, shape, text = held
        array = np.frombuffer(base64.b64decode(text, validate=True), np.dtype(dtype)).reshape(shape)
        return array.copy() if shape else array.reshape(())[()]
    if kind == "bytes":
        return base64.b64decode(held, validate=True)
    if kind == "dict":
        return {from_json_value(key): from_json_value(item) for key, item in held}
    return {"tuple": tuple, "set": set, "frozenset": frozenset}[kind](from_json_value(item) for item in held)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
