"""Vectors of shares, one number a vertex, whose sum is 1: where a ranking restarts, spreads or begins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.vertex_ranges import over_ranges
from penstock.storage.access.vertex_lookup import internal_id
from penstock.storage.base.errors import InputError
from penstock.storage.base.printable import brief
from penstock.storage.format.graph import Graph

Vector = NDArray[np.float64]
Given = Mapping[Any, float] | Vector | None
"""Original id -> weight; or an array (vertices,) of weights in the order of internal ids; None: the same for all."""


def fill_shares(graph: Graph, given: Given, name: str, vector: Vector) -> None:
    """Set `vector`, float64 (vertices,), to the shares that weights give; `name`: the parameter that they come from.

    Raises InputError for weights that are negative, not finite or all zero, and for what is none of these.
    """
    vector[:] = 0.0 if given is not None else 1 / max(1, graph.vertices)
    if given is None:
        return
    if isinstance(given, np.ndarray) and given.shape == vector.shape:
        vector += given
        for at in over_ranges(lambda first, last: _first_wrong(vector, first, last), len(vector)):
            if at is not None:
                raise _refused(f"{name}[{at}]", given[at])
    elif isinstance(given, Mapping):
        for vertex, weight in given.items():
            if not (isinstance(weight, int | float | np.number) and weight >= 0 and np.isfinite(weight)):
                raise _refused(f"{name} of vertex {vertex}", weight)
            vector[internal_id(graph, vertex)] += weight
    else:
        raise InputError(f"{name} {brief(repr(given))} is no mapping; write {{id: weight}}, as networkx has it")
    with np.errstate(over="ignore"):
        total = float(vector.sum())
    if total == 0:
        raise InputError(f"{name} has no positive weight: give at least one vertex a weight above 0")
    if not np.isfinite(total):
        raise InputError(f"the weights of {name} add up to {total}; give smaller ones")
    vector /= total


def _first_wrong(vector: Vector, first: int, last: int) -> int | None:
    """The first vertex of a range whose weight is none."""
    part = vector[first:last]
    wrong = np.flatnonzero(~(np.isfinite(part) & (part >= 0)))
    return first + int(wrong[0]) if len(wrong) else None


def _refused(what: str, weight: Any) -> InputError:
    return InputError(f"{what} is {weight}; it must be a number of at least 0")
