"""Programs whose numbers are float64 or, where the user says so, float32: the same functions on other fields."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from penstock.engine.program.program import Field, Program, fields_of
from penstock.engine.program.program_description import class_maker
from penstock.storage.base.errors import InputError

TYPES = ("float64", "float32")
TOLERANCE = 1e-4
"""Largest relative difference between two correct runs in float32."""
Kind = TypeVar("Kind", bound=Program)
Made = TypeVar("Made", bound=Program)


def float_type(dtype: Any) -> str:
    """The name of a type of TYPES, given as a name, a NumPy type or dtype. Raises InputError for another one."""
    try:
        name: str = np.dtype(dtype).name
    except TypeError:
        name = ""
    if dtype is None or name not in TYPES:
        raise InputError(f"dtype is {dtype!r}; it must be {' or '.join(TYPES)}")
    return name


@class_maker
def in_type(kind: type[Kind], dtype: str) -> type[Kind]:
    """The program with its float64 fields in a type of TYPES; messages are of the type of the first field."""
    if dtype == "float64":
        return kind
    narrow: dict[str, Field] = {
        name: replace(field, dtype=np.dtype(dtype))
        for name, field in fields_of(kind).items()
        if field.dtype is np.float64
    }
    body = {name: getattr(kind, name) for name in ("__module__", "__qualname__", "__doc__")}
    return type(kind.__name__, (kind,), {**body, **narrow, "tolerance": TOLERANCE})


def instance_in_type(program: Made, dtype: str) -> Made:
    """A program with the same attributes, and its fields in a type of TYPES."""
    form: Any = in_type(type(program), dtype)
    made: Made = form.__new__(form)
    vars(made).update(vars(program))
    return made
