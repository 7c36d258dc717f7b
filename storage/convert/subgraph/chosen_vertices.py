"""Chosen vertices: a bit for each, and how many precede every 64 of them; those whose ids of the input are in a list.

A set takes a quarter of a byte a vertex. A member's new id is its rank, how many members are below it (Jacobson,
"Space-efficient static trees and graphs", FOCS 1989: a table of counts and a population count). A list is a file or of
Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.access.vertex_lookup import name_ranges
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import InputError, brief, printable
from penstock.storage.base.jit import jit_part
from penstock.storage.base.thread_atomics import pop_count
from penstock.storage.format.graph import Graph
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.text.columns import Columns
from penstock.storage.ingest.text.edge_list import TextSource, read_ids

STEP = 1 << 18
"""Vertices looked at together; whole words."""
WORD = 64


class VertexBitmap:
    """Some of the vertices 0 to ``vertices - 1`` of a graph.

    words: uint64 (vertices / 64,), vertex v is bit v % 64 of word v / 64. before: int64, one more, members below each.
    edges: by which alone members are joined, ascending uint64: one end * vertices + the other; None: all.
    """

    edges: NDArray[np.uint64] | None = None

    def __init__(self, vertices: int, words: NDArray[np.uint64]) -> None:
        self.vertices, self.words = vertices, words
        self.before = np.zeros(len(words) + 1, np.int64)
        np.cumsum(np.bitwise_count(words), out=self.before[1:])

    @classmethod
    def of(cls, vertices: int, holds: Callable[[int, int], NDArray[np.bool_]]) -> VertexBitmap:
        """The vertices of which ``holds(first, last)`` is true, asked range by range, in order."""
        words = np.zeros(-(-vertices // WORD), np.uint64)
        bits = words.view(np.uint8)
        for first in range(0, vertices, STEP):
            part = np.packbits(holds(first, min(first + STEP, vertices)), bitorder="little")
            bits[first // 8 : first // 8 + len(part)] = part
        return cls(vertices, words)

    @classmethod
    def whole(cls, vertices: int) -> VertexBitmap:
        """All vertices."""
        return cls.of(vertices, lambda first, last: np.ones(last - first, np.bool_))

    def __len__(self) -> int:
        return int(self.before[-1])

    def __and__(self, other: VertexBitmap) -> VertexBitmap:
        """The vertices that are in both."""
        both = VertexBitmap(self.vertices, self.words & other.words)
        both.edges = other.edges if self.edges is None else self.edges
        return both

    def mask(self, first: int, last: int) -> NDArray[np.bool_]:
        """Which of the vertices first..last-1 are members; ``first`` is a multiple of 8."""
        bits = self.words.view(np.uint8)[first // 8 : -(-last // 8)]
        return np.unpackbits(bits, count=last - first, bitorder="little").view(np.bool_)

    def below(self, vertex: int) -> int:
        """How many members are below a vertex; of a member that is its new id."""
        word, bit = divmod(vertex, WORD)
        rest = int(self.words[word]) & ((1 << bit) - 1) if bit else 0
        return int(self.before[word]) + rest.bit_count()

    def holds(self, vertices: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of some vertices, integers (n,), are members."""
        bits = self.words[vertices >> 6] >> (vertices & 63).astype(np.uint64)
        return np.asarray(bits & np.uint64(1), np.bool_)

    def joined(self, sources: NDArray[Any], targets: NDArray[Any]) -> NDArray[np.bool_]:
        """Which pairs of members are ends of one of `edges`."""
        assert self.edges is not None, "all are"
        one, other = sources.astype(np.uint64), targets.astype(np.uint64)
        keys = np.stack([one * np.uint64(self.vertices) + other, other * np.uint64(self.vertices) + one])
        return np.asarray((self.edges.take(np.searchsorted(self.edges, keys), mode="clip") == keys).any(axis=0))

    def ranks(self, vertices: NDArray[Any]) -> NDArray[np.int64]:
        """The new ids of some members."""
        lower = (np.uint64(1) << (vertices & 63).astype(np.uint64)) - np.uint64(1)
        return np.asarray(self.before[vertices >> 6] + np.bitwise_count(self.words[vertices >> 6] & lower))


@jit_part
def is_member(words: NDArray[np.uint64], vertex: np.int64) -> bool:
    """Whether a vertex is in a set."""
    return bool((words[vertex >> 6] >> np.uint64(vertex & 63)) & np.uint64(1))


@jit_part
def rank_of(words: NDArray[np.uint64], before: NDArray[np.int64], vertex: np.int64) -> Any:
    """How many members are below a vertex."""
    lower = (np.uint64(1) << np.uint64(vertex & 63)) - np.uint64(1)
    return before[vertex >> 6] + np.int64(pop_count(words[vertex >> 6] & lower))


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
    with closing(TextSource([path], reading, named=True, columns=Columns(0, 0)).batches()) as batches:
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
