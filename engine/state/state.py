"""The vertex state in host memory: fields, accumulators, messages and frontier bitmaps.

Owns the arrays, which need not begin at vertex 0. Says before a run what they will take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from penstock.engine.program.program import (
    Program,
    author_function,
    globals_of,
    kept_fields,
    message_dtype,
    needs_rows,
    resolve_dtype,
    value_of,
)
from penstock.engine.program.vertex_ranges import MANY_ROWS, each_range, over_ranges
from penstock.engine.state.oriented_rows import OrientedRows
from penstock.engine.state.row_blocks import ROWS
from penstock.engine.state.state_arrays import INCOMING, SENT, StateArrays
from penstock.storage.base.errors import InputError
from penstock.storage.base.threads import map_ranges

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.program.bindings import Author
    from penstock.storage.checkpoint.state_pages import StatePages
    from penstock.storage.format.index import Index


@dataclass(frozen=True, slots=True)
class Frontier:
    """vertices and edges (out-edges) that are active.

    edges: 0, not counted, where kept rows have all that are needed (`CompactedRows`). everything: every vertex is.
    listed: State.vertices and State.work hold them, ascending. rest: lowest priority still pending above the limit (inf
    where none).
    """

    vertices: int
    edges: int
    everything: bool = False
    listed: bool = False
    rest: float = float("inf")

    @property
    def empty(self) -> bool:
        """Whether no vertex is active."""
        return self.vertices == 0 and not self.everything


SPAN = 4096
ADDED = 1 << 15  # positions that are added to a bitmap together, so that their copies stay small
DENSE = 32  # at most so many bits for each position: they are packed rather than set one by one
MASKED = 1 << 21  # items of a mask that are added together, whole spans
FILLED = 1 << 20  # vertices whose values a thread fills at once
LIST_SHARE = 64  # the frontier is listed while it has at most 1/64 of the vertices
EXCHANGED_AT_ONCE = 1 << 20
"""Vertices whose messages ranks on cores exchange at once: some 15 MiB."""
FUSED_LIST = 1 << 15  # vertices of a frontier of fused iterations on the cores, by their messages and by themselves


Fill = Callable[["NDArray[Any]", Any], None]
"""Writes one value to every item of an array."""


@dataclass
class Bitmap:
    """uint64 words, one bit a vertex, and one summary bit for each word."""

    words: NDArray[np.uint64]
    summary: NDArray[np.uint64]

    @classmethod
    def empty(cls, vertices: int) -> Bitmap:
        """An empty bitmap for `vertices` vertices, padded to whole spans."""
        spans = max(1, -(-vertices // SPAN))
        return cls(np.zeros(spans * 64, dtype=np.uint64), np.zeros(spans, dtype=np.uint64))

    def add(self, positions: NDArray[Any]) -> None:
        """Set the bits at `positions` (integers from 0), or where a mask (bool, from position 0) is True."""
        if positions.dtype == np.bool_:
            for first in range(0, len(positions), MASKED):
                self._add_bits(positions[first : first + MASKED], first // SPAN)
            return
        one, low = np.uint64(1), np.uint64(63)
        for first in range(0, len(positions), ADDED):
            at = np.asarray(positions[first : first + ADDED], dtype=np.uint64)
            start, end = int(at.min()) // SPAN, int(at.max()) // SPAN + 1
            if (end - start) * SPAN <= DENSE * len(at):
                bits = np.zeros((end - start) * SPAN, dtype=np.bool_)
                bits[(at - np.uint64(start * SPAN)).view(np.int64)] = True
                self._add_bits(bits, start)
                continue
            words = at >> np.uint64(6)
            np.bitwise_or.at(self.words, words, one << (at & low))
            np.bitwise_or.at(self.summary, words >> np.uint64(6), one << (words & low))

    def members(self) -> NDArray[np.int64]:
        """The positions whose bits are set, ascending."""
        some = np.flatnonzero(self.words)
        bits = np.unpackbits(self.words[some].view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
        word, bit = np.nonzero(bits)
        return np.asarray(64 * some[word] + bit)

    def add_where(self, holds: Callable[[int, int], NDArray[np.bool_]], vertices: int) -> None:
        """Set the bits where `holds(first, last)` is True, range by range from several threads."""
        each_range(lambda first, last: self._add_bits(holds(first, last), first // SPAN), vertices, size=MANY_ROWS)

    def _add_bits(self, bits: NDArray[np.bool_], start: int) -> None:
        """Set the bits where `bits`, which begin with span `start`, are True."""
        packed = np.packbits(bits, bitorder="little")
        words = np.zeros(-(-len(bits) // SPAN) * 64, dtype=np.uint64)
        words.view(np.uint8)[: len(packed)] = packed
        end = start + len(words) // 64
        self.words[start * 64 : end * 64] |= words
        self.summary[start:end] |= np.packbits(words != 0, bitorder="little").view(np.uint64)

    def part(self, first: int, last: int) -> Bitmap:
        """The bits of positions first..last-1, whole spans but for the last, in the same memory."""
        spans = slice(first // SPAN, -(-last // SPAN))
        return Bitmap(self.words[spans.start * 64 : spans.stop * 64], self.summary[spans])

    def unite(self, other: Bitmap) -> None:
        """Set every bit that is set in another bitmap of as many vertices."""
        spans = np.flatnonzero(other.summary)
        self.words.reshape(-1, 64)[spans] |= other.words.reshape(-1, 64)[spans]
        self.summary |= other.summary

    def remove(self, other: Bitmap) -> None:
        """Unset every bit that is set in another bitmap of as many vertices."""
        spans = np.flatnonzero(self.summary)
        self.words.reshape(-1, 64)[spans] &= ~other.words.reshape(-1, 64)[spans]

    def summarize(self) -> None:
        """Set the summary anew, from the words."""
        self.summary[:] = np.packbits(self.words.reshape(-1, 64) != 0, axis=1, bitorder="little").view(np.uint64)[:, 0]

    def clear(self) -> None:
        """Unset every bit."""
        self.words[:] = 0
        self.summary[:] = 0


class State(StateArrays):
    """The state of the vertices [first, last) on one device.

    fields: name -> array (last - first, *shape); `given` are those that are there already. sent: what active vertices
    send. pending: who will be active; active: who is. groups: where messages of sweeps are, if they may be put
    together. fill: what writes first values; None: one thread. unmatched: rows that the last pull kept, None where
    there is no room for any. pages: what holds the arrays of values where memory has no room for all of them.
    block_rows: most rows of a block of whole rows.
    """

    block_rows = ROWS
    pending: Bitmap
    active: Bitmap
    touched: Bitmap
    partial = np.empty((0, 0))

    def __init__(
        self,
        program: Program,
        author: Author,
        first: int,
        last: int,
        vertex_dtype: Any,
        given: Mapping[str, NDArray[Any]] | None = None,
        fill: Fill | None = None,
        pages: StatePages | None = None,
    ) -> None:
        count = last - first
        self.first, self.last, self.pages = first, last, pages
        self._fill = fill or fill_ranges
        self.fields = self._paged = fields_for(program, count, vertex_dtype, given, self._fill, pages)
        if pages is not None:
            self.fields = {name: pages.values(name) for name in self._paged}
        self.arrays = tuple(self.fields.values())
        self.identity = author.identity
        self.message_shape = program.message_shape
        self._accumulator = program.accumulator
        if pages is not None and author.has_send:
            self.sent = pages.add(SENT, author.message, 0)
        else:
            self.sent = np.zeros(count if author.has_send else 1, dtype=author.message)
        self.pending = Bitmap.empty(count)
        self.active = self.pending if is_sweep(program) else Bitmap.empty(count)  # sweeps ask none of them
        self.touched = self.pending
        capacity = _room_for_list(program, count, paged=pages is not None)
        self.vertices = np.empty(capacity, dtype=vertex_dtype)
        self.work = np.empty(capacity + 1, dtype=np.int64)
        self.walked = count  # about how many edges the last iteration walked: what the next step may cost
        self.selected_below = np.nan  # the limit of the last selection
        self.partial = np.zeros((len(self.pending.summary), max(1, len(author.totals))), dtype=np.float64)

    def _new_marks(self) -> Bitmap:
        return Bitmap.empty(self.last - self.first)

    def _new_messages(self) -> NDArray[Any]:
        return _array((self.last - self.first, *self.message_shape), self.identity, self.sent.dtype, self._fill)

    @cached_property
    def resend_bitmap(self) -> NDArray[np.uint64]:
        """Words of a bitmap of the vertices that send once more (`select_in_view`); made at first use."""
        return np.zeros_like(self.active.words)

    @cached_property
    def lows(self) -> tuple[NDArray[np.uint64], NDArray[np.float64], NDArray[np.float64]]:
        """Where pending vertices wait, and lower bounds of their priorities (`kernels/host/due.py`), made at first use.

        A bit for each word of `pending`, as in its summary; bounds by word and by span.
        """
        waiting = np.zeros_like(self.pending.summary)
        return waiting, np.full(len(self.pending.words), np.inf), np.full(len(waiting), np.inf)

    @cached_property
    def lists(self) -> NDArray[Any]:
        """Two frontiers as lists, for fused iterations on the cores (`kernels/host/fused.py`), made at first use."""
        return np.empty(_listed(self.last - self.first), dtype=self.vertices.dtype)

    def part(self, first: int, last: int) -> Self:
        """As `StateArrays.part`; a part has no groups, nor rows that were kept."""
        part, spans = super().part(first, last), slice((first - self.first) // SPAN, None)
        part.groups = part.unmatched = None
        part.partial = self.partial[spans][: len(part.pending.summary)]
        words = slice(64 * spans.start, 64 * spans.start + len(part.pending.words))
        if "resend_bitmap" in vars(self):
            part.resend_bitmap = self.resend_bitmap[words]
        if "lows" in vars(self):
            waiting, word_lows, span_lows = self.lows
            ends = slice(spans.start, spans.start + len(part.pending.summary))
            part.lows = waiting[ends], word_lows[words], span_lows[ends]
        return part

    def host_fields(self) -> dict[str, Any]:
        """Every field's values in host memory, where they are; or what reads them there (`PagedValues`)."""
        return self.fields if self.pages is None else dict(self._paged)

    def host_field(self, name: str) -> Any:
        """One of `host_fields`."""
        return self.host_fields()[name]

    def room_for(self, name: str) -> Any:
        """An array of the host for new values of a field, for `take`: its own."""
        return self.host_field(name)

    def values_at(self, name: str, places: NDArray[np.int64]) -> NDArray[Any]:
        """What a field has at some vertices, in host memory."""
        found: NDArray[Any] = self.host_field(name)[places]
        return found

    def has_nan(self, name: str) -> bool:
        """Whether a field of floats holds a NaN, which then is the smallest of its values."""
        values = self.host_fields()[name]
        begin, end = (0, len(values)) if self.pages is None else self.pages.owned
        found = over_ranges(
            lambda first, last: bool(np.isnan(values[begin + first : begin + last].min())), end - begin, size=MANY_ROWS
        )
        return any(found)

    def oriented_rows(self, rows: int, edges: int) -> OrientedRows:
        """Room for at most so many rows with at most so many edges; `begin` comes first."""
        return OrientedRows(0, self.vertices.dtype)

    def empty(self, count: int, dtype: Any) -> NDArray[Any]:
        """An array of `count` items where kernels compute, not filled."""
        return np.empty(count, dtype=dtype)

    def to_host(self, array: NDArray[Any]) -> NDArray[Any]:
        """An array of `empty` in host memory, where it is."""
        return array

    def from_host(self, array: NDArray[Any], values: NDArray[Any]) -> None:
        """Copy values of host memory into an array of `empty`."""
        array[...] = values

    def listed_along(self, frontier: Frontier, index: Index) -> Frontier:
        """The frontier, its list's running sum of edges being along the rows of another adjacency from now on."""
        if frontier.listed:
            work = self.work[: frontier.vertices + 1]
            work[0] = 0
            np.cumsum(index.lengths_of(self.vertices[: frontier.vertices]), out=work[1:])
            frontier = replace(frontier, edges=int(work[-1]))
        return frontier

    def pending_bits(self) -> NDArray[np.uint8]:
        """Who is pending: a bit a vertex, the lowest first, padded to whole bytes."""
        return self.pending.words.view(np.uint8)[: -(-(self.last - self.first) // 8)]

    def take(self, fields: dict[str, Any]) -> None:
        """Use these arrays of the host as fields, without a copy; of values in a file write what is in others."""
        for name, values in fields.items():
            ours = self.fields[name]
            check_alike(name, (ours.dtype, ours.shape), values)
            if self.pages is None:
                self.fields[name] = values
            elif values is not self._paged[name]:
                self._paged[name][:] = values
        self.arrays = tuple(self.fields.values())


def fields_for(
    program: Program,
    count: int,
    vertex_dtype: Any,
    given: Mapping[str, Any] | None = None,
    fill: Fill | None = None,
    pages: StatePages | None = None,
) -> dict[str, Any]:
    """The program's fields, name -> array (count, *shape): those that are given, the others at their first values.

    fill: what writes them, for the first touch of memory takes longer than its filling; None: one thread. pages: where
    the others are, if not in memory; of these what reads them is returned (`PagedValues`).
    Raises InputError for one that is given and of another dtype or shape.
    """
    made: dict[str, Any] = {}
    for name, spec in kept_fields(program).items():
        dtype = resolve_dtype(spec.dtype, vertex_dtype)
        first = value_of(spec.fill, dtype)
        if given is not None and name in given:
            check_alike(name, (dtype, (count, *spec.shape)), given[name])
            made[name] = given[name]
        elif pages is None:
            made[name] = _array((count, *spec.shape), first, dtype, fill or fill_ranges)
        else:
            pages.add(name, np.dtype((dtype, spec.shape)), first)
            made[name] = pages.on_host(name)
    return made


def check_alike(name: str, ours: tuple[np.dtype[Any], tuple[int, ...]], values: NDArray[Any]) -> None:
    """Refuse values for a field of another (dtype, shape). Raises InputError."""
    if ours != (values.dtype, values.shape):
        raise InputError(
            f"field {name!r} is {ours[0]} {ours[1][1:]} in a phase and {values.dtype} {values.shape[1:]} "
            "in its program; declare it alike in both"
        )


def list_capacity(program: Program, vertices: int, share: int = LIST_SHARE) -> int:
    """How many vertices of a frontier may be listed; a program in which every vertex is active lists none."""
    return vertices // share + SPAN if has_frontier(program) else SPAN


def has_frontier(program: Program) -> bool:
    """Whether some vertices are active, and others are not."""
    return not (program.everywhere or needs_rows(program))


def is_sweep(program: Program) -> bool:
    """Whether every vertex sends in every iteration, and gets combined messages."""
    return program.everywhere and not needs_rows(program)


def _room_for_list(program: Program, vertices: int, *, paged: bool = False) -> int:
    """How many are listed on the cores; none where trees are linked, or values are in pages: by compacted edges."""
    if paged:
        return 0
    return SPAN if program.combine == "union" else list_capacity(program, vertices)


def _listed(vertices: int) -> int:
    """Items of `State.lists`: each half has room for every vertex and some more, or for the widest frontier."""
    return 2 * min(FUSED_LIST, vertices + SPAN)


def field_bytes(program: Program, count: int, vertex_dtype: Any) -> dict[str, int]:
    """Bytes of each array of `fields_for`, by name."""
    return {
        name: resolve_dtype(spec.dtype, vertex_dtype).itemsize * int(np.prod(spec.shape, dtype=np.int64)) * count
        for name, spec in kept_fields(program).items()
    }


def _array(shape: tuple[int, ...], first: Any, dtype: np.dtype[Any], fill: Fill) -> NDArray[Any]:
    """Full of one value; zeros cost nothing until they are touched, and a phase's fields may be another's."""
    if first == 0:
        return np.zeros(shape, dtype=dtype)
    array: NDArray[Any] = np.empty(shape, dtype=dtype)
    fill(array, first)
    return array


def fill_ranges(array: NDArray[Any], value: Any, *, threads: int = 1) -> None:
    """Write one value to every item, range by range from so many threads."""
    map_ranges(lambda v0, v1: np.copyto(array[v0:v1], value, casting="unsafe"), len(array), FILLED, threads)


def state_bytes(program: Program, vertices: int, vertex_dtype: Any, *, apart: bool) -> int:
    """Bytes that a State of `vertices` vertices takes; `apart` as in `State.accumulate_apart`."""
    total = sum(value_bytes(program, vertices, vertex_dtype, apart=apart).values())
    spans = max(1, -(-vertices // SPAN))
    total += 0 if is_sweep(program) else (2 + apart) * bitmap_bytes(vertices)  # sweeps write no marks on the cores
    if author_function(program, "priority") is not None:
        total += bitmap_bytes(vertices) + 8 * spans  # `State.lows`
    listed = listing_bytes(program, vertices, vertex_dtype)
    if has_frontier(program):
        listed += _listed(vertices) * np.dtype(vertex_dtype).itemsize  # `State.lists`
    partial = spans * 8 * max(1, len(globals_of(program)))
    return int(total + listed + partial + 4096)


def bitmap_bytes(vertices: int) -> int:
    """Bytes of a bitmap of so many vertices."""
    return max(1, -(-vertices // SPAN)) * (SPAN // 8 + 8)


def listing_bytes(program: Program, vertices: int, vertex_dtype: Any) -> int:
    """Bytes of the list of a frontier, of which there is none where values are in pages."""
    return int(_room_for_list(program, vertices) * (np.dtype(vertex_dtype).itemsize + 8))


def value_bytes(program: Program, vertices: int, vertex_dtype: Any, *, apart: bool) -> dict[str, int]:
    """Bytes of each array of values that a State has, by name: fields, and messages."""
    found = field_bytes(program, vertices, vertex_dtype)
    message = message_dtype(program, vertex_dtype).itemsize * int(np.prod(program.message_shape)) * vertices
    if apart and not program.accumulator:
        found[INCOMING] = message
    if author_function(program, "send") is not None:
        found[SENT] = message
    return found


def exchange_bytes(
    program: Program, vertices: int, vertex_dtype: Any, *, apart: bool, owners: bool, sliced: bool, at_once: int,
    ranks: int,
) -> int:  # fmt: skip
    """Bytes that merging the states of several ranks takes beside a State (`engine/ranks/rank_exchange.py`).

    A message of each vertex that is exchanged at once, ids and marks for those that are listed, and all ranks' marks of
    these where they are not all vertices. apart: as in `State.accumulate_apart`; else marks of messages have a place of
    their own here. owners: whether messages may be listed for owners, who then alone know values: of all vertices there
    are marks of who was reached. sliced: every exchange is of slices, in their places.
    """
    marks = 0 if apart and not owners else bitmap_bytes(vertices)
    if sliced:
        return int(marks)
    message = message_dtype(program, vertex_dtype).itemsize * int(np.prod(program.message_shape))
    if at_once < vertices:
        marks += ranks * at_once // 8
    listed = 2 * (message + np.dtype(vertex_dtype).itemsize) if owners else message + 10
    return int(marks + max(2 * message, listed) * min(at_once, vertices))
