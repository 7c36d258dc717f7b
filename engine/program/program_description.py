"""A program in JSON, from which another process makes the same: where its class is, and its attributes."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from penstock.engine.program.json_values import from_json_value, to_json_value


def describe_program(program: Any) -> list[Any]:
    """Where another process finds the program's class, and its attributes.

    Raises TypeError where it finds none (the class is of a script, a notebook, or within a function), or attributes are
    not JSON.
    """
    kind = type(program)
    attributes = {name: to_json_value(value) for name, value in vars(program).items()}
    return [kind.__module__, str(_file_of(kind)), kind.__qualname__, attributes]


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


def _file_of(kind: type) -> Path:
    """The file of a class' module."""
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    if kind.__module__ == "__main__" or file is None or getattr(module, kind.__qualname__, None) is not kind:
        raise TypeError(f"{kind.__qualname__} is in no module that another process could import")
    return Path(file).absolute()


def described_program(described: list[Any]) -> Any:
    """The program that `describe_program` was given, in another process."""
    module, file, name, attributes = described
    kind = getattr(_module(module, file), name)
    program = kind.__new__(kind)
    vars(program).update({name: from_json_value(value) for name, value in attributes.items()})
    return program


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
