"""Values that a user gives some vertices: temperatures, potentials, inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.vertex_ids import vertices_of
from penstock.storage.base.errors import InputError, brief
from penstock.storage.format.graph import Graph

Given = Mapping[Any, float] | NDArray[Any]
"""Original id -> value; or an array (vertices,) in the order of internal ids, NaN where no value is given."""


def bytes_to_translate(*given: Given | None) -> int:
    """Bytes per vertex that `given_values` takes for these: a mapping is small beside itself, an array is not."""
    return 24 * sum(isinstance(values, np.ndarray) for values in given)


def given_values(graph: Graph, given: Given | None, name: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Internal ids of the vertices that are given a value, and the values; `name`: the parameter that they come from.

    Raises InputError for a value that is no finite number, a vertex that the graph lacks, and what is no mapping.
    """
    if given is None:
        return np.empty(0, np.int64), np.empty(0)
    if isinstance(given, np.ndarray) and given.shape == (graph.vertices,) and given.dtype.kind in "iuf":
        places = np.flatnonzero(~np.isnan(given))
        values = given[places].astype(np.float64)
        names: Any = places
    elif isinstance(given, Mapping):
        values = np.array([_number(name, vertex, value) for vertex, value in given.items()], np.float64)
        names = list(given)
        places = vertices_of(graph, names)
    else:
        raise InputError(
            f"{name} {brief(repr(given))} is no mapping; write {{id: value}}, or an array of one number a vertex"
        )
    for vertex, value in zip(names, values, strict=True) if not np.isfinite(values).all() else ():
        _number(name, vertex, value)
    return places, values


def _number(name: str, vertex: Any, value: Any) -> float:
    """A value. Raises InputError for one that is no finite number."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not number or not np.isfinite(value):
        raise InputError(f"{name} of vertex {brief(str(vertex))} is {brief(repr(value))}; it must be a finite number")
    return float(value)
