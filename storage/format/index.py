"""The row index, where each row's edges start, in 4.1 bytes a vertex, or less where its pages are read when wanted.

The start of row v is ``bases[v >> shift] + offsets[v]``: 32-bit offsets inside blocks of 2^shift vertices, 64-bit bases
between them. The block shrinks until the offsets fit, so a graph of any size needs the same two loads.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.budget import cores
from penstock.storage.base.jit import jit, jit_later
from penstock.storage.base.missing_code import FEW, are_few
from penstock.storage.base.slot_pool import ReservedArray
from penstock.storage.base.threads import PerThread, map_ranges
from penstock.storage.format.row_pages import RowPages

WIDEST_SHIFT = 16
STEP = 1 << 20
"""Rows that a thread takes at once: whole blocks."""


def part_of_page(rows: int, most: int) -> int:
    """Rows of a page or, if these are more than `most`, of a half of it, a quarter, and so on: of whole blocks."""
    while rows > most and rows % (2 << WIDEST_SHIFT) == 0:
        rows //= 2
    return rows


@jit_later
def _append_degrees(degrees: Any, first: int, start: Any, shift: int, bases: Any, offsets: Any) -> Any:
    """Write the starts of rows first.. and return the next one, or -1 where an offset overflows."""
    at, count = 0, len(degrees)
    while at < count:
        v = first + at
        if v & ((1 << shift) - 1) == 0:
            bases[v >> shift] = start
        base, end = bases[v >> shift], min(count, at + (((v >> shift) + 1) << shift) - v)
        some, out, last = degrees[at:end], offsets[v : v + end - at], start
        for i in range(len(some)):
            last = start
            out[i] = start - base
            start += np.int64(some[i])
        if last - base >= 4294967296:  # the block's largest offset
            return -1
        at = end
    return start


@jit_later
def _starts(bases: Any, offsets: Any, shift: int, v0: int, out: Any) -> None:
    for i in range(len(out)):
        v = v0 + i
        out[i] = bases[v >> shift] + np.int64(offsets[v])


@jit_later
def _starts_of(bases: Any, offsets: Any, shift: int, rows: Any, out: Any) -> None:
    for i in range(len(rows)):
        v = np.int64(rows[i])
        out[i] = bases[v >> shift] + np.int64(offsets[v])


@jit_later
def _add_lengths(bases: Any, offsets: Any, shift: int, v0: int, out: Any) -> None:
    start = bases[v0 >> shift] + np.int64(offsets[v0])
    for i in range(len(out)):
        v = v0 + i + 1
        end = bases[v >> shift] + np.int64(offsets[v])
        out[i] += end - start
        start = end


@jit_later
def _rows_of(bases: Any, offsets: Any, shift: int, first: int, last: int, edges: Any, out: Any) -> None:
    for i in range(len(edges)):
        low = first
        high = max(first, last - 1)
        while low < high:  # the last row whose start is not past the edge
            middle = (low + high + 1) >> 1
            if bases[middle >> shift] + np.int64(offsets[middle]) <= edges[i]:
                low = middle
            else:
                high = middle - 1
        out[i] = low


@jit
def _count_clipped(bases: Any, offsets: Any, shift: int, v0: int, v1: int, counts: Any) -> None:
    """counts[d] += 1 for each row v0..v1-1 of d edges, and counts[-1] for each longer one."""
    most = len(counts) - 1
    start = bases[v0 >> shift] + np.int64(offsets[v0])
    for v in range(v0 + 1, v1 + 1):
        end = bases[v >> shift] + np.int64(offsets[v])
        counts[min(end - start, most)] += 1
        start = end


@jit
def _clip(bases: Any, offsets: Any, shift: int, v0: int, v1: int, most: int, sums: Any, out: Any) -> None:
    """Fill out[v0:v1] and the sums of their blocks of 2^16 rows; v0 begins a block."""
    inside = (1 << WIDEST_SHIFT) - 1
    start = bases[v0 >> shift] + np.int64(offsets[v0])
    total = 0
    for v in range(v0, v1):
        end = bases[(v + 1) >> shift] + np.int64(offsets[v + 1])
        out[v] = total
        total += min(end - start, most)
        start = end
        if v & inside == inside or v + 1 == v1:
            sums[v >> WIDEST_SHIFT] = total
            total = 0


@dataclass(frozen=True, slots=True)
class Index:
    """Row starts of one adjacency.

    int64 ``bases`` of one entry a block and one more, uint32 ``offsets`` of shape (vertices + 1,). ``pages``: those of
    the offsets that are in memory, None where all are.
    """

    bases: NDArray[np.int64]
    offsets: NDArray[np.uint32]
    shift: int
    pages: RowPages | None = None

    @property
    def vertices(self) -> int:
        """Number of rows."""
        return len(self.offsets) - 1

    @property
    def edges(self) -> int:
        """Number of edges in all rows, that is the start of the row past the last."""
        return int(self.bases[-1])

    @property
    def nbytes(self) -> int:
        """Bytes of memory held."""
        return self.bases.nbytes + (self.offsets.nbytes if self.pages is None else self.pages.nbytes)

    @property
    def whole(self) -> bool:
        """Whether all offsets are in memory."""
        return self.pages is None

    def parts(self, v0: int, v1: int) -> Iterator[tuple[int, int]]:
        """Yield rows v0..v1-1 in parts, first and past the last, each at hand for kernels until the next is asked for.

        All at once where the index is whole. Raises RunError where they cannot be read, or are damaged.
        """
        if self.pages is not None:
            yield from self.pages.parts(v0, v1)
        elif v0 < v1:
            yield v0, v1

    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.uint32], int]:
        """Return what a kernel takes that asks for any row: (bases, offsets, shift); all rows stay in memory then."""
        if self.pages is not None:
            self.pages.keep()
        return self.bases, self.offsets, self.shift

    def starts(self, v0: int, v1: int, out: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """Return the starts of rows v0..v1-1, int64; v1 may be vertices + 1 for the last row's end.

        out: of at least so many items, where they are to be.
        """
        found = np.empty(max(0, v1 - v0), np.int64) if out is None else out[: max(0, v1 - v0)]
        if self._without_compiler(len(found)):
            rows = np.arange(v0, v0 + len(found))
            np.add(self.bases[rows >> self.shift], self.offsets[rows], out=found)
            return found
        for first, last in self.parts(v0, v1):
            _starts(self.bases, self.offsets, self.shift, first, found[first - v0 : last - v0])
        return found

    def _without_compiler(self, rows: int) -> bool:
        """Whether NumPy goes over so many rows: they are in memory and few, and there is no compiler yet."""
        return self.pages is None and "numba" not in sys.modules and are_few(rows)

    def start_of_page(self, v0: int) -> int:
        """Return the start of a row that begins a page, or a part of one, which need not be in memory."""
        return int(self.bases[v0 >> self.shift])

    def starts_of(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """Return the starts of these rows, in any order; the one past the last may be among them."""
        found = np.empty(len(rows), np.int64)
        if self.pages is None:
            _starts_of(self.bases, self.offsets, self.shift, rows, found)
            return found
        for _, _, here in self.pages.grouped(np.asarray(rows, np.int64) // self.pages.rows):
            some = np.empty(len(here), np.int64)
            _starts_of(self.bases, self.offsets, self.shift, rows[here], some)
            found[here] = some
        return found

    def degrees(self, v0: int, v1: int) -> NDArray[np.int64]:
        """Return the lengths of rows v0..v1-1, int64."""
        out = np.zeros(max(0, v1 - v0), np.int64)
        self.add_lengths(v0, out)
        return out

    def add_lengths(self, v0: int, out: NDArray[np.int64]) -> None:
        """Add the lengths of as many rows from v0 on to ``out``."""
        if self._without_compiler(len(out)):
            out += np.diff(self.starts(v0, v0 + len(out) + 1))
            return
        for first, last in self.parts(v0, v0 + len(out)):
            _add_lengths(self.bases, self.offsets, self.shift, first, out[first - v0 : last - v0])

    def lengths_of(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        """Return the lengths of these rows, in any order."""
        lengths = self.starts_of(np.asarray(rows, np.int64) + 1)
        lengths -= self.starts_of(rows)
        return lengths

    def clipped_counts(self, most: int, threads: int) -> NDArray[np.int64]:
        """Return how many rows have 0, 1, .. ``most`` edges, the last with all longer ones, int64 (most + 1,)."""

        def count(first: int, last: int) -> NDArray[np.int64]:
            counts = np.zeros(most + 1, np.int64)
            for part in self.parts(first, last):
                _count_clipped(self.bases, self.offsets, self.shift, *part, counts)
            return counts

        return sum(map_ranges(count, self.vertices, STEP, threads), np.zeros(most + 1, np.int64))

    def clipped(self, most: int, threads: int) -> "Index":
        """Return the index of the first ``most`` edges of every row, 1 <= most <= 2^16, one row's after the other's."""
        vertices = self.vertices
        bases, offsets = np.zeros((vertices >> WIDEST_SHIFT) + 2, np.int64), np.empty(vertices + 1, np.uint32)

        def clip(first: int, last: int) -> None:
            _clip(self.bases, self.offsets, self.shift, first, last, most, bases[1:], offsets)

        map_ranges(clip, vertices, STEP, threads)
        np.cumsum(bases, out=bases)
        found = Index(bases, offsets, WIDEST_SHIFT)
        _ended(found, int(bases[-1]))
        return found

    def of_rows(self, v0: int, v1: int, origin: int) -> "Index":
        """Return the index of as many rows of which all but v0..v1-1 are empty; edge `origin` is number 0 there.

        No edge of these rows is before `origin`. Memory of other rows' offsets is not touched.
        """
        shift = self.shift
        (start,), (end,) = self.starts(v0, v0 + 1), self.starts(v1, v1 + 1)
        first, last = v0 >> shift, v1 >> shift
        bases, offsets = self.bases - origin, np.zeros_like(self.offsets)
        offsets[v0 : v1 + 1] = self.offsets[v0 : v1 + 1]
        bases[: first + 1], bases[last + 1 :] = start - origin, end - origin
        inside = slice(v0, min(v1 + 1, (first + 1) << shift))
        offsets[inside] = (self.starts(inside.start, inside.stop) - start).astype(np.uint32)
        offsets[v1 : (last + 1) << shift] = end - origin - bases[last]
        return Index(bases, offsets, shift)

    def row_of(self, edge: int) -> int:
        """Return the row that holds an edge, 0 <= edge < edges."""
        return int(self.rows_of(np.array([edge], np.int64))[0])

    def rows_of(self, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the row of each edge number, int64 of the same shape; of edges in no row (`of_rows`) one beside."""
        out = np.empty(len(edges), np.int64)
        if self.pages is None:
            _rows_of(self.bases, self.offsets, self.shift, 0, self.vertices, edges, out)
            return out
        starts = self.bases[: -1 : self.pages.rows >> self.shift]
        for first, last, here in self.pages.grouped(np.maximum(np.searchsorted(starts, edges, "right") - 1, 0)):
            some = np.empty(len(here), np.int64)
            _rows_of(self.bases, self.offsets, self.shift, first, last, edges[here], some)
            out[here] = some
        return out


def from_degrees(vertices: int, degree_batches: Callable[[], Iterable[NDArray[Any]]]) -> Index:
    """Build the index of ``vertices`` rows from their degrees, given in order in batches of any
    length.

    ``degree_batches`` is asked again for each block size tried: once, but for graphs in which
    2^16 neighboring rows hold more than 2^32 edges. Raises ValueError when the batches do not
    hold ``vertices`` degrees.
    """
    offsets = np.empty(vertices + 1, np.uint32)
    for shift in range(WIDEST_SHIFT, -1, -1):
        bases = np.zeros((vertices >> shift) + 2, np.int64)
        first = start = 0
        for degrees in degree_batches():
            if first + len(degrees) > vertices:
                raise ValueError(f"more than {vertices} degrees")
            start = _append_degrees(degrees, first, start, shift, bases, offsets)
            first += len(degrees)
            if start < 0:
                break
        if start >= 0 and first != vertices:
            raise ValueError(f"{first} degrees for {vertices} vertices")
        if start >= 0 and _ended(Index(bases, offsets, shift), start):
            return Index(bases, offsets, shift)
    raise AssertionError("with one row a block every offset is 0")


def from_chunks(
    vertices: int, chunk_rows: int, load: Callable[[int], NDArray[Any]], threads: int, pages: RowPages | None = None
) -> Index:
    """Build the index of ``vertices`` rows from their degrees, of which ``load(k)`` has those from row k * chunk_rows.

    ``load`` is called by several threads, each of which sums up what it has loaded, where chunks are whole blocks;
    what it returns may be overwritten at the thread's next call. It is called again for each block size tried, as in
    `from_degrees`. ``pages``: where offsets are that ``load`` is called for again, of such chunks; None: all are kept.
    Raises what ``load`` raises, and OverflowError where the sum of all degrees is beyond 2^62.
    """
    if chunk_rows % (1 << WIDEST_SHIFT):
        return from_degrees(vertices, lambda: map(load, range(-(-vertices // chunk_rows))))
    offsets = np.empty(vertices + 1, np.uint32) if pages is None else pages.offsets
    most = max(min(chunk_rows, vertices), min(vertices, FEW) + 1)  # of many rows Python goes over none (`jit_later`)
    unkept = PerThread(lambda: ReservedArray(most, np.uint32, huge=False).values)  # which allocators would keep
    for shift in range(WIDEST_SHIFT, -1, -1):
        bases = np.zeros((vertices >> shift) + 2, np.int64)

        def append(first: int, last: int) -> int:
            degrees = load(first // chunk_rows)
            if pages is None:
                return int(_append_degrees(degrees, first, 0, shift, bases, offsets))  # noqa: B023 (called at once)
            return int(_append_degrees(degrees, 0, 0, shift, bases[first >> shift :], unkept()))  # noqa: B023

        sums = map_ranges(append, vertices, chunk_rows, threads)
        if min(sums, default=0) >= 0:
            edges, blocks = sum(sums), -(-vertices >> shift)
            if edges > 1 << 62:
                raise OverflowError(f"{edges} edges")
            starts = np.cumsum([0, *sums], dtype=np.int64)[:-1]
            bases[:blocks] += np.repeat(starts, chunk_rows >> shift)[:blocks]
            index = Index(bases, offsets, shift, pages)
            if _ended(index, edges):
                if pages is not None:
                    pages.load = partial(_load_again, index, chunk_rows, load)
                return index
    raise AssertionError("with one row a block every offset is 0")


def _load_again(index: Index, chunk_rows: int, load: Callable[[int], NDArray[Any]], chunk: int) -> None:
    """Write the offsets of a chunk's rows, whose degrees are loaded anew."""
    first, degrees = chunk * chunk_rows, load(chunk)
    start = int(index.bases[first >> index.shift])
    _append_degrees(degrees, first, start, index.shift, index.bases, index.offsets)
    if first + len(degrees) == index.vertices:
        _ended(index, index.edges)


def _ended(index: Index, edges: int) -> bool:
    """Write where the last row ends; return whether its offset fits."""
    block, inside = index.vertices >> index.shift, index.vertices & ((1 << index.shift) - 1)
    if not inside:
        index.bases[block] = edges
    end = edges - int(index.bases[block])
    if end >= 1 << 32:
        return False
    index.offsets[-1] = end
    index.bases[block + 1] = edges
    return True


def from_offsets(offsets: NDArray[Any]) -> Index:
    """Build the index from CSR offsets of shape (vertices + 1,), rising from 0."""

    def load(chunk: int) -> NDArray[np.int64]:
        starts = offsets[chunk * STEP : (chunk + 1) * STEP + 1].astype(np.int64)
        return starts[1:] - starts[:-1]

    return from_chunks(len(offsets) - 1, STEP, load, cores())


def of_equal_rows(length: int, edges: int) -> Index:
    """Build the index of rows of ``length`` edges each, the last of which may have fewer."""
    rows = -(-edges // length)

    def load(chunk: int) -> NDArray[np.int64]:
        first, last = chunk * STEP, min((chunk + 1) * STEP, rows)
        lengths = np.full(last - first, length, np.int64)
        if last == rows:
            lengths[-1] = edges - (rows - 1) * length
        return lengths

    return from_chunks(rows, STEP, load, cores())
