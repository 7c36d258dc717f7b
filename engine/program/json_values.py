"""Python values as JSON and back, without pickle: what a program keeps in its attributes, for checkpoints.

Knows None, truth values, numbers, texts, bytes, NumPy scalars and arrays, and lists, tuples, sets and dictionaries of
them. Refuses everything else, rather than keep something that is not the same afterwards. What is read cannot be code.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import numpy as np


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
    """What `to_plain` was given. Raises ValueError or its like for JSON that it never makes."""
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
