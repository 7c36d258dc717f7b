"""Graphs from what other libraries hold: edge arrays, tables of pandas, polars or pyarrow, sparse matrices of scipy.

None of them is imported: a table is anything whose columns become NumPy arrays or that gives an Arrow C stream, a
matrix anything with ``tocoo``. Ids may be strings or any numbers; they are then renumbered, and results name them.
What `convert` refuses is refused here too, with column and row.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from penstock.storage.base.errors import InputError, brief, for_python
from penstock.storage.convert.in_memory import EdgeArrays, graph_of
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.encoding.string_array import STRINGS, distinct, ranks_among
from penstock.storage.format.graph import Graph
from penstock.storage.format.schema import EXACT
from penstock.storage.ingest.core.arrow import arrow_table
from penstock.storage.ingest.core.edges import as_ids, as_weights
from penstock.storage.ingest.text.columns import choose_columns

_MISSING = ("nan", "<NA>", "NaT", "NaN")
_WAY_OUT = "drop such rows, or choose other columns"


@for_python
def from_edges(
    sources: ArrayLike,
    targets: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    *,
    vertices: int | ArrayLike | None = None,
    **options: Any,
) -> Graph:
    """Make a graph in memory of edges in any order.

    Parameters
    ----------
    sources, targets : array_like of int or str, (edges,)
        Ids from 0 to 2^64 - 1, or strings; or only ``sources``, pairs of shape (edges, 2) as igraph's
        ``get_edgelist`` gives them. Arrays of CuPy, cuDF and PyTorch are copied from their device.
    weights : array_like of numbers, (edges,), optional
        One weight per edge.
    vertices : int or array_like, optional
        The ids (vertices,) that exist, isolated ones included; or a number n: 0 to n-1 are vertices beside the ids that
        occur. By default vertices are the ids that occur.
    **options
        Those of `ConvertOptions`: ``undirected``, ``symmetrize``, ``dedupe``, ``drop_self_loops``, ``renumber``,
        ``bipartite``, ``order``, ``layout``, ``direction`` (of rows by default both), ``threads``.

    Returns
    -------
    Graph
        In memory; its results name vertices by the ids given.

    Raises
    ------
    InputError
        The arrays are no edges, an edge has an id that ``vertices`` does not list, or an option does not exist.
    """
    ends = _ends(sources, targets)
    values = None if weights is None else as_weights(_weights(host_array(weights)), "weights", "edges", 0)
    if values is not None and values.shape != ends[0].shape:
        raise InputError(f"weights have shape {values.shape}, and there are {len(ends[0])} edges: give one each")
    ids = count = None
    strings = ends[0].dtype.kind == "T"
    if isinstance(vertices, int | np.integer):
        count = int(vertices)
    elif vertices is not None:
        ids = _listed(vertices, strings, edges=len(ends[0]))
        ends = _place(ends[0], ids, "source"), _place(ends[1], ids, "target")
        options = _exactly(options)
    if ids is None and strings:
        ids, ends = _numbered(ends)
    count = count if ids is None else len(ids)
    graph = graph_of(EdgeArrays(ends, values, count, undirected=False), _settings(options, strings))
    if ids is None or (ids.dtype.kind != "T" and len(ids) and int(ids[-1]) == len(ids) - 1):
        return graph
    order = graph.original_ids()
    return replace(graph, original=ids if order is None else ids[order])


@for_python
def from_table(
    table: Any,
    source: str | int | None = None,
    target: str | int | None = None,
    weight: str | int | None = None,
    **options: Any,
) -> Graph:
    """Make a graph in memory of a table with an edge in every row.

    Parameters
    ----------
    table : DataFrame, Table, relation or mapping
        Of pandas, cuDF or polars (a LazyFrame is collected), of pyarrow (a dataset is read), of duckdb; anything else
        with an Arrow C stream; or a mapping of names to arrays.
    source, target, weight : str or int, optional
        Names or positions of columns; without source and target they are the first two, as `convert` takes them.
    **options
        As for `from_edges`.

    Returns
    -------
    Graph
        In memory.

    Raises
    ------
    InputError
        A column is missing, or does not hold ids or weights; or the names of the columns say that others than the first
        two are source and target.
    """
    table = _materialized(table)
    names = _names(table)
    if source is None and target is None:
        left = [str(name) for name in names if name != weight]
        choose_columns(left, len(left), None, "the table")
    ends = (0 if source is None else source, 1 if target is None else target)
    weights = None if weight is None else _column(table, weight)
    return from_edges(_column(table, ends[0]), _column(table, ends[1]), weights, **options)


@for_python
def from_scipy(matrix: Any, *, weights: bool = True, **options: Any) -> Graph:
    """Make a graph in memory of a sparse matrix: entry (u, v) is an edge u → v, its value the weight.

    Parameters
    ----------
    matrix : sparse matrix or array of scipy
        In any format; a rectangular one has as many vertices as its longer side (see ``bipartite``).
    weights : bool
        False drops the values; a matrix of booleans has none.
    **options
        As for `from_edges`.

    Returns
    -------
    Graph
        In memory.

    Raises
    ------
    InputError
        The matrix is not sparse, or its values are no weights.
    """
    if not hasattr(matrix, "tocoo"):
        raise InputError(f"{type(matrix).__name__} is no sparse matrix of scipy; from_edges takes arrays of edges")
    entries = matrix.tocoo()
    values = None if not weights or entries.data.dtype.kind == "b" else entries.data
    size = None if options.get("renumber") or options.get("bipartite") else max(entries.shape, default=0)
    return from_edges(entries.row, entries.col, values, vertices=size, **options)


def _settings(options: dict[str, Any], named: bool) -> ConvertOptions:
    try:
        settings = ConvertOptions(**{"direction": "out" if options.get("layout") == "list" else "both", **options})
    except TypeError as error:
        raise InputError(f"{str(error).rpartition(' ')[2]} is no option of a graph in memory") from None
    if named and (settings.renumber or settings.bipartite):
        raise InputError("ids that are strings are numbered already; leave renumber and bipartite out")
    return settings


def _ends(sources: ArrayLike, targets: ArrayLike | None) -> tuple[NDArray[Any], NDArray[Any]]:
    first = _array(sources)
    if targets is None:
        if first.ndim != 2 or first.shape[1] != 2:
            raise InputError(f"edges have shape {first.shape}; give sources and targets, or pairs of shape (edges, 2)")
        first, second = first[:, 0], first[:, 1]
    else:
        second = _array(targets)
    if first.ndim != 1 or first.shape != second.shape:
        raise InputError(
            f"sources have shape {first.shape} and targets {second.shape}; give one of each for every edge"
        )
    first, second = _numbers(first), _numbers(second)
    if {first.dtype.kind, second.dtype.kind} & set("OUT"):
        return _strings(first, "sources"), _strings(second, "targets")
    if len(first) == 0:
        return np.empty(0, np.uint32), np.empty(0, np.uint32)
    one = as_ids(first, "sources", "edges", 0, _WAY_OUT)
    other = as_ids(second, "targets", "edges", 0, _WAY_OUT)
    common = np.promote_types(one.dtype, other.dtype)
    return one.astype(common, copy=False), other.astype(common, copy=False)


def _numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Objects that are all whole numbers or decimals as NumPy's numbers; anything else as it is."""
    kinds = {type(value) for value in values.flat} if values.dtype.kind == "O" else set()
    if not kinds or not kinds <= {int, Decimal, float, np.int64, np.uint64}:
        return values
    whole = all(value == value // 1 for value in values.flat)
    try:
        if not whole:
            return values.astype(np.float64)
        numbers = [int(value) for value in values.flat]
        return np.array(numbers, np.int64 if min(numbers) < 0 else np.uint64).reshape(values.shape)
    except OverflowError:
        return values


def _weights(values: NDArray[Any]) -> NDArray[Any]:
    """Weights as NumPy's numbers. Raises InputError for the first object that is none."""
    values = _numbers(values)
    for row, value in enumerate(values.tolist() if values.dtype.kind == "O" else []):
        if not isinstance(value, int | float | Decimal):
            raise InputError(
                f"weights: row {row} (from 0) is {brief(repr(value))}, and weights are numbers; {_WAY_OUT}"
            )
    return values


def _strings(values: NDArray[Any], what: str) -> NDArray[Any]:
    """Ids as NumPy's strings; objects must be strings already."""
    if values.dtype.kind not in "UT":
        _check_strings(values, what)
    strings = values.astype(STRINGS)
    if bool((strings == "").any()):
        at = int(np.argmax(strings == ""))
        raise InputError(f"{what}: row {at} (from 0) is empty, and ids are not; drop such rows")
    return strings


def _check_strings(values: NDArray[Any], what: str) -> None:
    """Refuse the first value that is missing, too large, or no string."""
    rows = list(enumerate(values.tolist()))
    for row, value in rows:
        if value is None or (not isinstance(value, str | int) and str(value) in _MISSING):
            raise InputError(
                f"{what}: row {row} (from 0) is missing ({brief(str(value))}), and an id is needed; drop such rows"
            )
    for row, value in rows:
        if isinstance(value, int) and not 0 <= value < 1 << 64:
            shown = value if value.bit_length() < 1 << 8 else f"a number of {value.bit_length()} bits"
            raise InputError(f"{what}: row {row} (from 0), {shown}, is no id; ids are whole numbers from 0 to 2^64 - 1")
    for row, value in rows:
        if not isinstance(value, str):
            raise InputError(
                f"{what} are neither whole numbers nor strings: row {row} (from 0) is {brief(repr(value))}, of type "
                f"{type(value).__name__}; make all of them one or the other"
            )


def _array(values: ArrayLike) -> NDArray[Any]:
    """Values as an array; where NumPy makes strings or inexact floats of what is in a list with others, as objects."""
    array = host_array(values)
    if not isinstance(values, list | tuple):
        return array
    if array.dtype.kind == "f" and array.size and array.max() >= EXACT:
        return np.asarray(values, object)
    if array.dtype.kind != "U":
        return array
    objects = np.asarray(values, object)
    return array if all(isinstance(value, str) for value in objects.flat) else objects


def _numbered(ends: tuple[NDArray[Any], NDArray[Any]]) -> tuple[NDArray[Any], tuple[NDArray[Any], NDArray[Any]]]:
    """Return the distinct strings, ascending by their bytes, and the ends as their numbers."""
    names, numbers = distinct(np.concatenate(ends))
    kind = np.uint32 if len(names) < 1 << 32 else np.uint64
    first = len(ends[0])
    return names, (numbers[:first].astype(kind), numbers[first:].astype(kind))


def _listed(vertices: ArrayLike, strings: bool, *, edges: int) -> NDArray[Any]:
    """Return the listed ids, ascending, each once."""
    found = _numbers(_array(vertices))
    if found.ndim != 1:
        raise InputError(f"vertices have shape {found.shape}; give their ids in one dimension, or how many there are")
    if strings or found.dtype.kind in "OUT":
        if edges and not strings:
            raise InputError("vertices are strings, and the ends of edges are numbers; give both alike")
        return distinct(_strings(found, "vertices"))[0]
    return np.unique(as_ids(found, "vertices", "vertices", 0, _WAY_OUT)) if len(found) else np.empty(0, np.uint32)


def _place(ends: NDArray[Any], ids: NDArray[Any], role: str) -> NDArray[Any]:
    """Where each end is among the listed ids."""
    if len(ends) == 0:
        return np.empty(0, np.uint32)
    found = ranks_among(ids, ends) - 1
    listed = found >= 0
    listed[listed] = ids[found[listed]] == ends[listed]
    if not listed.all():
        at = int(np.argmin(listed))
        raise InputError(
            f"edge {at} (from 0): {role} {ends[at]!s} is not in `vertices`, and exactly those exist; add it, or leave "
            "the edge out"
        )
    return found.astype(np.uint32 if len(ids) < 1 << 32 else np.uint64)


def _exactly(options: dict[str, Any]) -> dict[str, Any]:
    """Options where the vertices are listed: they are renumbered already."""
    if options.get("bipartite"):
        raise InputError("bipartite: `vertices` does not say which side it lists; leave one of them out")
    return {name: value for name, value in options.items() if name != "renumber"}


def _column(table: Any, name: str | int) -> NDArray[Any]:
    """Return a column of any of these tables as a NumPy array."""
    known = _names(table)
    if isinstance(name, int) and not isinstance(name, bool) and name not in known:
        if not 0 <= name < len(known):
            raise InputError(
                f"the table has no column {name}; it has {len(known)}: {brief(', '.join(map(str, known)))}"
            )
        name = known[name]
    if name not in known:
        raise InputError(f"the table has no column {name!r}; it has {brief(', '.join(map(str, known)))}")
    return _array(table[name])


def _materialized(table: Any) -> Any:
    """Return a table whose columns can be taken: compute what is lazy, read what only streams."""
    if hasattr(table, "collect_schema") and hasattr(table, "collect"):  # a LazyFrame of polars
        table = table.collect()
    if hasattr(table, "__arrow_c_stream__") and not hasattr(table, "to_numpy"):
        return arrow_table(table)
    for whole in ("fetch_arrow_table", "to_table"):  # a relation of a duckdb without the stream; a pyarrow dataset
        if hasattr(table, whole):
            return getattr(table, whole)()
    return table


def _names(table: Any) -> list[Any]:
    for attribute in ("column_names", "columns", "keys"):
        names = getattr(table, attribute, None)
        if names is not None:
            return list(names() if callable(names) else names)
    raise InputError(f"{type(table).__name__} is no table: it has no columns; from_edges takes arrays")


def host_array(values: Any) -> NDArray[Any]:
    """Values as an array of NumPy; copied from a device where they are on one.

    Known by what they can do: `detach` (PyTorch), `copy_to_host` (Numba), `get` beside a CUDA array interface (CuPy),
    `to_numpy` (cuDF, pandas, polars, pyarrow), `to_arrow` (columns of other libraries on a device).
    """
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        return np.asarray(values.detach().cpu().numpy())
    if hasattr(values, "__cuda_array_interface__"):
        for copied in ("copy_to_host", "get", "to_numpy"):
            if hasattr(values, copied):
                return np.asarray(getattr(values, copied)())
    if hasattr(values, "to_numpy"):
        return np.asarray(values.to_numpy())
    return np.asarray(values.to_arrow().to_numpy() if hasattr(values, "to_arrow") else values)
