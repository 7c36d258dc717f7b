"""The columns of a result and of properties, rows by ascending original id: read by ranges, or the first few."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.precision import Widened
from penstock.engine.program.vertex_ids import (
    Names,
    VertexReferences,
    in_original_order,
    names_at,
    original_names,
    original_order,
    original_ranks,
    tie_breakers,
)
from penstock.storage.base.errors import InputError, brief
from penstock.storage.checkpoint.state_pages import PagedValues
from penstock.storage.results.column_file import ColumnFile
from penstock.storage.results.column_statistics import Keys, first_rows, present_rows
from penstock.storage.tables.columns import Column, Columns, Part, Read
from penstock.storage.tables.properties import open_properties

if TYPE_CHECKING:
    from penstock.storage.format.graph import Graph
    from penstock.storage.tables.property_file import PropertyFile

Order = NDArray[Any] | None
"""Internal ids by ascending original id; None where that is their own order."""
Values = NDArray[Any] | VertexReferences | Widened | PagedValues
"""The values of a field, by internal id."""


def columns_of(graph: Graph, fields: Mapping[str, tuple[Values, Any]], folder: Path | None = None) -> Columns:
    """Return the table of a result.

    Parameters
    ----------
    graph : Graph
        The graph.
    fields : mapping of str to (ndarray, VertexReferences, Widened or PagedValues, value)
        The values of each field in the order of internal ids, and what stands for none of them (None: nothing does).
    folder : Path, optional
        Where values are written to files now, from which the table reads them, so that memory need not hold them.

    Raises
    ------
    RunError
        The files cannot be written.
    """

    @cache
    def order() -> Order:
        return None if in_original_order(graph) else original_order(graph)

    @cache
    def names() -> Names:
        return original_names(graph)

    columns = {"vertex": Column(graph.id_dtype, graph.vertices, partial(_ids, graph, order, names))}
    if graph.left is not None:
        columns["side"] = Column(np.dtype(np.uint8), graph.vertices, partial(_sides, graph.left))
    for name, (values, absent) in fields.items():
        for part, numbers in _numbers(name, values).items():
            rows: Callable[[], Order] = order
            if folder is not None:
                numbers, rows = _filed(numbers, order(), folder), lambda: None
            columns[part] = Column(numbers.dtype, graph.vertices, partial(_field, numbers, absent, rows, names))
    return columns


def _filed(values: Any, rows: Order, folder: Path) -> Any:
    """Return the same values in the order of these rows, in a file."""
    if isinstance(values, VertexReferences | Widened):
        return replace(values, numbers=_filed(values.numbers, rows, folder))

    def read(first: int, last: int) -> Part:
        return values[first:last] if rows is None else values[rows[first:last]], None

    return ColumnFile(folder, Column(values.dtype, len(values), lambda: read))


def first_by_id(graph: Graph, count: int) -> NDArray[np.intp]:
    """Return the internal ids of the first vertices by ascending original id."""
    if in_original_order(graph):
        return np.arange(min(count, graph.vertices))
    ids = tie_breakers(graph)

    def keys_of(first: int, last: int) -> Keys:
        rows = np.arange(first, last)
        return ids[first:last], rows, rows

    return first_rows(keys_of, graph.vertices, count)[2]


def values_of(fields: Mapping[str, tuple[Values, Any]], vertices: NDArray[np.intp]) -> dict[str, list[Any]]:
    """Return the values of some vertices by column, None where there is none; fields as `columns_of` takes them."""
    found = {}
    for name, (values, absent) in fields.items():
        for part, numbers in _numbers(name, values[vertices]).items():
            present = present_rows(numbers, absent)
            found[part] = numbers.tolist()
            if present is not None:
                found[part] = [one if there else None for one, there in zip(found[part], present, strict=True)]
    return found


def _numbers(name: str, values: Values) -> dict[str, Any]:
    """Return a field as columns of numbers; a vector field has one per component: `name_0`, `name_1`."""
    if isinstance(values, PagedValues) and values.ndim > 1:
        return {f"{name}_{place}": PagedComponent(values, place) for place in range(values.width)}
    if not isinstance(values, np.ndarray) or values.ndim == 1:
        return {name: values}
    flat = values.reshape(len(values), int(np.prod(values.shape[1:])))
    return {f"{name}_{place}": flat[:, place] for place in range(flat.shape[1])}


class PagedComponent:
    """One number of each vector of `PagedValues`, read by ranges and positions."""

    def __init__(self, values: PagedValues, place: int) -> None:
        self._values, self._place, self.dtype = values, place, values.dtype

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        """Of the vertices of some rows, without the other numbers of their vectors."""
        found: NDArray[Any] = self._values[rows].reshape(-1, self._values.width)[:, self._place].copy()
        return found


def _ids(graph: Graph, order: Callable[[], Order], names: Callable[[], Names]) -> Read:
    """Read original ids; loaded as a whole where they are strings, or in another order."""
    rows = order()
    if rows is None and graph.id_dtype.kind != "T":
        return lambda first, last: (graph.original_ids_in(first, last), None)
    named = names()
    return lambda first, last: (named(np.arange(first, last) if rows is None else rows[first:last]), None)


def _sides(left: int) -> Read:
    """Read the side of each vertex: 0 for the first `left` ones, which are sources, else 1."""
    return lambda first, last: ((np.arange(first, last) >= left).astype(np.uint8), None)


def _field(values: Values, absent: Any, order: Callable[[], Order], names: Callable[[], Names]) -> Read:
    """Read a field, and which rows have a value; vertices by their names."""
    rows = order()
    numbers, named = (values.numbers, names()) if isinstance(values, VertexReferences) else (values, None)

    def read(first: int, last: int) -> Part:
        some = numbers[first:last] if rows is None else numbers[rows[first:last]]
        some = some if named is None else names_at(some, named)
        return some, present_rows(some, absent)

    return read


def property_columns(graph: Graph, names: Sequence[str], taken: Collection[str]) -> Columns:
    """Return properties by name, rows by ascending original id. taken: names of the columns beside them.

    Raises InputError where the graph has no such property, its file is missing, or a name is taken.
    """
    if not names:
        return {}
    properties = _properties(graph)
    for name in names:
        if name in taken:
            raise InputError(f"the answer has a column {name!r} itself; rename the property, and convert again")
    return {name: properties.column(name) for name in names}


def property_values(graph: Graph, names: Sequence[str], vertices: NDArray[Any]) -> dict[str, list[Any]]:
    """Return properties of some vertices, which are internal ids, by name; None where there is no value."""
    if not names:
        return {}
    rows = vertices if in_original_order(graph) else original_ranks(graph)[vertices]
    properties = _properties(graph)
    return {name: properties.values(name, rows.astype(np.int64)) for name in names}


def property_numbers(graph: Graph, name: str) -> NDArray[np.float64]:
    """Return a property of all vertices by internal id, float64 (vertices,), NaN where there is no value.

    Raises InputError where the graph has no such property, its file is missing, or its values are no numbers.
    """
    values, present = _properties(graph).column(name).arrays()
    if values.dtype.kind == "T":
        first = next(iter(values if present is None else values[present]), None)
        if first is not None:
            raise InputError(
                f"the property {name!r} has the value {brief(first)!r}, which is no number; name another one"
            )
        return np.full(graph.vertices, np.nan)
    found = values.astype(np.float64)
    if present is not None:
        found[~present] = np.nan
    return found if in_original_order(graph) else found[original_ranks(graph)]


def _properties(graph: Graph) -> PropertyFile:
    return open_properties(graph.path, graph.provenance, graph.vertices)
