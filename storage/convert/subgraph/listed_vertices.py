"""The vertices of a graph whose ids of the input are in a list, of a file or of Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.base.printable import brief, printable
from penstock.storage.convert.subgraph.vertex_bitmap import STEP, VertexBitmap
from penstock.storage.format.frames import StringIdFrames
from penstock.storage.format.graph import Graph
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.text.columns import Columns
from penstock.storage.ingest.text.edge_list import read_ids
from penstock.storage.ingest.text.strings import NamedTextSource


def listed_in_file(graph: Graph, path: Path, reading: IngestOptions, *, skip_missing: bool) -> VertexBitmap:
    """The vertices whose ids are in a text file, the first of each line; see `listed_vertices`.

    Raises InputError where the file cannot be read, or a line has no id.
    """
    if graph.id_dtype.kind != "T":
        found = [np.unique(ids) for ids in read_ids(path, reading)]
        return listed_vertices(graph, np.concatenate(found) if found else [], str(path), skip_missing=skip_missing)
    wanted: set[str] = set()
    with closing(NamedTextSource([path], reading, Columns(0, 0)).batches()) as batches:
        for batch in batches:
            assert batch.names is not None, "a batch of a named source has names"
            wanted.update(batch.names.names.strings().tolist())
    return listed_vertices(graph, wanted, str(path), skip_missing=skip_missing)


def listed_vertices(
    graph: Graph, ids: Iterable[int | str] | NDArray[Any], where: str, *, skip_missing: bool
) -> VertexBitmap:
    """The vertices with these ids of the input; of a bipartite graph those of both sides.

    where: what messages call the list. skip_missing: pass over ids that the graph does not have.

    Raises InputError for an id that the graph does not have, or for what is no id.
    """
    if graph.id_dtype.kind == "T":
        chosen, missing = _chosen_names(graph, {str(one) for one in ids})
    else:
        chosen, missing = _chosen_numbers(graph, np.unique(_numbers(ids, where)))
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


def _chosen_names(graph: Graph, wanted: set[str]) -> tuple[VertexBitmap, Sequence[int | str]]:
    seen: set[str] = set()
    ranges = _name_ranges(graph)

    def holds(first: int, last: int) -> NDArray[np.bool_]:
        names = next(ranges)
        found = np.fromiter((name in wanted for name in names), np.bool_, last - first)
        seen.update(name for name in names if name in wanted)
        return found

    return VertexBitmap.of(graph.vertices, holds), sorted(wanted - seen)


def _name_ranges(graph: Graph) -> Iterator[list[str]]:
    """The names of all vertices, range by range."""
    stored = graph.original
    text = stored.names() if isinstance(stored, StringIdFrames) else None
    for first in range(0, graph.vertices, STEP):
        last = min(first + STEP, graph.vertices)
        if text is None:
            yield graph.original_ids_in(first, last).tolist()
        else:
            yield text.taken(np.arange(first, last)).strings().tolist()


def _nothing(first: int, last: int) -> NDArray[np.bool_]:
    return np.zeros(last - first, np.bool_)
