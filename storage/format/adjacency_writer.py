"""Appends rows to the files of a graph: edges and degrees of one direction, and plain arrays.

Edges are written one stripe group at a time: a run of chunks of neighbors, then the same run of weights, so that a
sweep without weights reads long stretches. Degrees wait compressed in memory (about a byte a vertex), because their
dtype is known only when all of them are.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.threads import ordered_map
from penstock.storage.encoding.codec import LEVELS, PLAIN_WEIGHT_LEVEL, Coding, Decoder, compress
from penstock.storage.format import schema, stripe
from penstock.storage.format.edge_properties import property_path
from penstock.storage.format.file_set import FileSet
from penstock.storage.format.frame_writer import ChunkEncoder
from penstock.storage.format.schema import CHUNK_EDGES, CHUNK_VERTICES, STRIPE_RUN

_Block = tuple[bytes, np.dtype[Any], int]
"""Degrees of some vertices, narrowed and compressed; their dtype, and how many they are."""


def _compress(degrees: NDArray[Any]) -> _Block:
    narrow = degrees.astype(schema.count_dtype(int(degrees.max())))
    return compress(narrow, 1), narrow.dtype, len(narrow)


def _decompress(block: _Block) -> NDArray[Any]:
    data, kind, vertices = block
    degrees = np.empty(vertices, kind)
    Decoder().decompress(data, degrees)
    return degrees


class CompressedDegrees:
    """Degrees kept compressed until the largest is known; threads compress and restore them."""

    def __init__(self, pool: Executor, ahead: int) -> None:
        self._pool, self._ahead = pool, ahead
        self._blocks: deque[Future[_Block]] = deque()

    def append(self, degrees: NDArray[Any]) -> None:
        """Add the degrees of the next rows. The array is kept for a while, not copied."""
        for first in range(0, len(degrees), CHUNK_VERTICES):
            self._blocks.append(self._pool.submit(_compress, degrees[first : first + CHUNK_VERTICES]))
            if len(self._blocks) > self._ahead:
                self._blocks[-1 - self._ahead].result()

    def kind(self) -> np.dtype[Any]:
        """The narrowest dtype that holds them all."""
        kinds = [block.result()[1] for block in self._blocks]
        return max(kinds, key=lambda kind: kind.itemsize, default=schema.count_dtype(0))

    def release(self) -> Iterator[NDArray[Any]]:
        """Yield all degrees in order, and drop them."""
        blocks = (self._blocks.popleft().result() for _ in range(len(self._blocks)))
        yield from ordered_map(self._pool, _decompress, blocks, self._ahead)


class WeightStats:
    """Smallest, mean and largest weight, gathered while weights pass by."""

    def __init__(self) -> None:
        self.low, self.high = float("inf"), float("-inf")
        self.total, self.count = 0.0, 0

    def append(self, weights: NDArray[Any]) -> None:
        """Take note of some weights."""
        self.low = min(self.low, float(weights.min()))
        self.high = max(self.high, float(weights.max()))
        with np.errstate(over="ignore", invalid="ignore"):  # infinite, near the largest float; NaN of both infinities
            self.total += float(weights.sum(dtype=np.float64))
        self.count += len(weights)

    @property
    def value(self) -> tuple[float, float, float]:
        """Smallest, mean, largest; zeros where there was no weight."""
        return (self.low, self.total / self.count, self.high) if self.count else (0.0, 0.0, 0.0)


def bounds_of(items: NDArray[Any], *, nulls: bool) -> tuple[Any, Any]:
    """Return the least and the greatest of some items of a column; null (0 or NaN, with nulls) where there is none."""
    known = items[items != 0] if nulls and items.dtype.kind == "u" else items
    if not len(known):
        return items[0], items[0]
    return np.fmin.reduce(known), np.fmax.reduce(known)


class ColumnBounds:
    """Least and greatest value of every chunk of a column, and what `WeightStats` says of all of it.

    nulls: whether 0, or NaN, is null.
    """

    def __init__(self, kind: np.dtype[Any], *, nulls: bool) -> None:
        self.stats = WeightStats()
        self.kind, self._nulls, self._filled = kind, nulls, 0
        self._bounds: list[tuple[Any, Any]] = []

    def append(self, items: NDArray[Any]) -> None:
        """Take note of the next items, of one chunk or of several."""
        at = 0
        while at < len(items):
            part = items[at : at + CHUNK_EDGES - self._filled]
            found = bounds_of(part, nulls=self._nulls)
            if self._filled:
                found = bounds_of(np.array([*self._bounds.pop(), *found], self.kind), nulls=self._nulls)
            self._bounds.append(found)
            self.stats.append(part)
            self._filled = (self._filled + len(part)) % CHUNK_EDGES
            at += len(part)

    def array(self) -> NDArray[Any]:
        """All bounds, of the column's dtype, two of each chunk."""
        return np.array(self._bounds, self.kind).reshape(-1)


class StripedArrays:
    """Arrays over all shards, written in groups as they come: per stripe a run of chunks of each array.

    codings: of each array, by its path. ahead: chunks of each that wait for a thread. whole: they are in the manifest,
    and chunks follow each other as soon as they are there.
    """

    def __init__(self, files: FileSet, codings: Mapping[str, Coding], ahead: int, *, whole: bool = False) -> None:
        self._files, self._group = files, 0
        self._shards = [files.manifest] if whole else files.shards
        self._least = 1 if whole else STRIPE_RUN * len(self._shards)
        self._streams = {path: ChunkEncoder(coding, files.pool, ahead) for path, coding in codings.items()}
        self._step = min(coding.chunk_items for coding in codings.values())
        for path, coding in codings.items():
            for shard in self._shards:
                files.create(shard, path, coding)

    @property
    def lengths(self) -> set[int]:
        """How many items the arrays have; one number where they agree."""
        return {stream.items for stream in self._streams.values()}

    def append(self, *arrays: NDArray[Any]) -> None:
        """Add items of each array, any number; they are kept, not copied."""
        for first in range(0, len(arrays[0]), self._step):
            for stream, items in zip(self._streams.values(), arrays, strict=True):
                stream.append(items[first : first + self._step])
            self._write(self._least)

    def finish(self, before: NDArray[np.uint64] | None = None, items_before: int = 0) -> None:
        """Write what is left; before: the chunk table of what other files have."""
        for stream in self._streams.values():
            stream.finish()
        self._write(1)
        for path, stream in self._streams.items():
            self._files.add(path, stream.coding, items_before + stream.items, before)

    def _write(self, least: int) -> None:
        """Write groups while there are at least so many chunks of each array."""
        shards = self._shards
        while (ready := min(len(stream.ready) for stream in self._streams.values())) >= least:
            places = stripe.group_stripes(self._group, min(ready, STRIPE_RUN * len(shards)), len(shards))
            for path, stream in self._streams.items():
                for place in places:
                    self._files.append(shards[place], path, stream.ready.popleft())
            self._group += 1


def vertex_array(files: FileSet, path: str, kind: np.dtype[Any], encoding: str) -> StripedArrays:
    """An array with an item a vertex."""
    coding = Coding(encoding, kind, CHUNK_VERTICES, LEVELS[encoding])
    return StripedArrays(files, {path: coding}, files.threads + 1, whole=True)


class AdjacencyWriter:
    """One adjacency being written: edges row after row, and the degrees of those rows.

    name: "out" or "in", or that of a window. kinds: dtype and encoding of neighbors, and of weights if there are any;
    columns: of those beside them, and whether 0 is null. ahead: chunks of each array that wait for a thread.
    degree_kind: a dtype that holds all degrees, where one is known.
    """

    def __init__(
        self,
        files: FileSet,
        name: str,
        vertices: int,
        kinds: dict[str, tuple[np.dtype[Any], str]],
        ahead: int,
        degree_kind: np.dtype[Any] | None = None,
        columns: Sequence[tuple[np.dtype[Any], str, bool]] = (),
    ) -> None:
        self._files, self._name, self._vertices = files, name, vertices
        codings = {}
        for part, (kind, encoding) in kinds.items():
            fast = part == schema.WEIGHTS and encoding == "plain"
            level = PLAIN_WEIGHT_LEVEL if fast else LEVELS[encoding]
            codings[f"{name}/{part}"] = Coding(encoding, kind, CHUNK_EDGES, level)
        for number, (kind, encoding, _) in enumerate(columns):
            level = PLAIN_WEIGHT_LEVEL if encoding == "plain" else LEVELS[encoding]
            codings[property_path(name, number)] = Coding(encoding, kind, CHUNK_EDGES, level)
        self._arrays, self._weighted = StripedArrays(files, codings, ahead), schema.WEIGHTS in kinds
        self._columns = [ColumnBounds(kind, nulls=nulls) for kind, _, nulls in columns]
        self._degrees = CompressedDegrees(files.pool, ahead)
        self._written = None if degree_kind is None else self._degree_array(degree_kind)
        self._rows = self._total = 0
        self._range = WeightStats()
        self.edges = -1

    @property
    def weight_range(self) -> tuple[float, float, float] | None:
        """Smallest, mean and largest weight so far; None for a graph without weights."""
        return self._range.value if self._weighted else None

    @property
    def column_ranges(self) -> list[tuple[float, float, float]]:
        """The same of every column beside the edges."""
        return [column.stats.value for column in self._columns]

    def append(
        self, neighbors: NDArray[Any], weights: NDArray[Any] | None = None, columns: Sequence[NDArray[Any]] = ()
    ) -> None:
        """Add the next edges, in CSR order; any number. The arrays are the writer's then: do not change them."""
        for known, items in zip(self._columns, columns, strict=True):
            known.append(items)
        if not self._weighted:
            self._arrays.append(neighbors, *columns)
            return
        assert weights is not None, "this graph has weights"
        for first in range(0, len(weights), CHUNK_EDGES):
            self._range.append(weights[first : first + CHUNK_EDGES])
        self._arrays.append(neighbors, weights, *columns)

    def degrees(self, degrees: NDArray[Any]) -> None:
        """Add the lengths of the next rows; any number, before or after their edges. Do not change them then."""
        self._rows += len(degrees)
        self._total += int(degrees.sum(dtype=np.int64))
        (self._degrees if self._written is None else self._written).append(degrees)

    def finish(self) -> None:
        """Write what is left. Raises ValueError when degrees and edges do not agree."""
        edges, array = self._arrays.lengths, self._written
        if edges != {self._total} or self._rows != self._vertices:
            raise ValueError(
                f"{self._rows} degrees that sum up to {self._total} for {self._vertices} vertices and {edges} edges"
            )
        self._arrays.finish()
        if array is None:
            array = self._degree_array(self._degrees.kind())
            for degrees in self._degrees.release():
                array.append(degrees)
        array.finish()
        for number, column in enumerate(self._columns):
            path = property_path(self._name, number, bounds=True)
            bounds = vertex_array(self._files, path, column.kind, "plain")
            bounds.append(column.array())
            bounds.finish()
        self.edges = self._total

    def _degree_array(self, kind: np.dtype[Any]) -> StripedArrays:
        return vertex_array(self._files, f"{self._name}/{schema.DEGREES}", kind, schema.values_encoding(kind))
