"""The vertices of a graph whose ids of the input are in a list, of a file or of Python."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.access.vertex_lookup import name_ranges
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import InputError, brief, printable
from penstock.storage.convert.subgraph.vertex_bitmap import STEP, VertexBitmap
from penstock.storage.format.graph import Graph
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.text.columns import Columns
from penstock.storage.ingest.text.edge_list import read_ids
from penstock.storage.ingest.text.strings import NamedTextSource

NUMBER_BYTES, NAME_BYTES = 32, 160
"""Bytes that an id of a list takes while all are looked for: of a number, and of a name beside its text."""


def listed_in_file(graph: Graph, path: Path, reading: IngestOptions, *, skip_missing: bool) -> VertexBitmap:
    """The vertices whose ids are in a text file, the first of each line; see `listed_vertices`.

    Raises InputError where the file cannot be read, a line has no id, or ids take more than half of the budget.
    """
    if graph.id_dtype.kind != "T":
        found: list[NDArray[Any]] = []
        count = 0
        for ids in read_ids(path, reading):
            found.append(np.unique(ids))
            count += len(found[-1])
            _check_room(path, count, count * NUMBER_BYTES, reading)
        return listed_vertices(graph, np.concatenate(found) if found else [], str(path), skip_missing=skip_missing)
    wanted: dict[str, bool] = {}
    size = 0
    with closing(NamedTextSource([path], reading, Columns(0, 0)).batches()) as batches:
        for batch in batches:
            assert batch.names is not None, "a batch of a named source has names"
            names = batch.names.names
            size += len(names.text)
            _check_room(path, len(wanted) + len(names), size + (len(wanted) + len(names)) * NAME_BYTES, reading)
            wanted.update(dict.fromkeys(names.strings().tolist(), False))
    return _vertices_of(*_chosen_names(graph, wanted), str(path), skip_missing=skip_missing)


def _check_room(path: Path, count: int, size: int, reading: IngestOptions) -> None:
    """Raise InputError where so many ids take too much."""
    if size > reading.host_memory // 2:
        raise InputError(
            f"{path}: the first {count:,} ids take {format_bytes(size)} of memory, and half of --host-memory is "
            f"{format_bytes(reading.host_memory // 2)}; list fewer, or raise --host-memory"
        )


def listed_vertices(
    graph: Graph, ids: Iterable[int | str] | NDArray[Any], where: str, *, skip_missing: bool
) -> VertexBitmap:
    """The vertices with these ids of the input; of a bipartite graph those of both sides.

    where: what messages call the list. skip_missing: pass over ids that the graph does not have.

    Raises InputError for an id that the graph does not have, or for what is no id.
    """
    if graph.id_dtype.kind == "T":
        found = _chosen_names(graph, {str(one): False for one in ids})
    else:
        found = _chosen_numbers(graph, np.unique(_numbers(ids, where)))
    return _vertices_of(*found, where, skip_missing=skip_missing)


def _vertices_of(chosen: VertexBitmap, missing: Sequence[int | str], where: str, *, skip_missing: bool) -> VertexBitmap:
    """What was found. Raises InputError for an id that was not, unless these are passed over."""
    if missing and not skip_missing:
        first = printable(brief(str(missing[0])))
        raise InputError(
            f"{where}: {len(missing)} of the ids are not in the graph, such as {first}; --skip-missing passes over them"
        )
    return chosen


def _numbers(ids: Iterable[int | str] | NDArray[Any], where: str) -> NDArray[np.uint64]:
    found = ids if isinstance(ids, np.ndarray) else list(ids)
    try:
        numbers = [int(one) for one in found] if not isinstance(found, np.ndarray) else found
        if len(numbers) and min(numbers if isinstance(numbers, list) else [int(numbers.min())]) < 0:
            raise ValueError
        return np.asarray(numbers, np.uint64)
    except (ValueError, TypeError, OverflowError):
        raise InputError(f"{where}: ids of this graph are whole numbers from 0 on, and one of these is none") from None


def _chosen_numbers(graph: Graph, wanted: NDArray[np.uint64]) -> tuple[VertexBitmap, Sequence[int | str]]:
    seen = np.zeros(len(wanted), np.bool_)

    def holds(first: int, last: int) -> NDArray[np.bool_]:
        ids = graph.original_ids_in(first, last).astype(np.uint64, copy=False)
        place = np.minimum(np.searchsorted(wanted, ids), len(wanted) - 1)
        found = np.asarray(wanted[place] == ids)
        seen[place[found]] = True
        return found

    chosen = VertexBitmap.of(graph.vertices, holds if len(wanted) else _nothing)
    return chosen, wanted[~seen].tolist()


def _chosen_names(graph: Graph, wanted: dict[str, bool]) -> tuple[VertexBitmap, Sequence[int | str]]:
    """The vertices of names, which are marked where they are found."""
    ranges = name_ranges(graph, STEP)

    def holds(first: int, last: int) -> NDArray[np.bool_]:
        names = next(ranges)[1].tolist()
        found = np.fromiter((name in wanted for name in names), np.bool_, last - first)
        wanted.update((name, True) for name, one in zip(names, found, strict=True) if one)
        return found

    chosen = VertexBitmap.of(graph.vertices, holds)
    return chosen, sorted(name for name, found in wanted.items() if not found)


def _nothing(first: int, last: int) -> NDArray[np.bool_]:
    return np.zeros(last - first, np.bool_)
