"""The ids that occur in an input, in a bitmap of pages, and their ranks, which make them vertices 0 to n-1.

A page has a bit for each of 2^16 ids and is there once one of them was met, so a few large ids take little. Words of
small ids are in the order of the ids, those of others where a table says. Threads mark ids side by side. The vertex of
an id is its rank, how many smaller ids occur: a count for every page, one for every 64 ids within it, and a population
count (Jacobson, "Space-efficient static trees and graphs", FOCS 1989), 0.16 bytes an id in all. Ranks rise with the
ids, so sorted edges stay sorted when they get them.
"""

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit, jit_inlined
from penstock.storage.base.slot_pool import reserved
from penstock.storage.base.thread_atomics import atomic_or, pop_count
from penstock.storage.convert.sort.run import MAX_VERTICES, Keys
from penstock.storage.format.schema import vertex_dtype
from penstock.storage.ingest.core.edges import EdgeBatch

PAGE_BITS = 16
PAGE_IDS = 1 << PAGE_BITS
PAGE_WORDS = PAGE_IDS // 64
PAGE_BYTES = PAGE_WORDS * (8 + 4)
"""A page, and its counts where those of its neighbors are not there: memory comes by 4 KiB."""
HOME_SHIFT = 5
"""Half of the words, of 64 ids each, are in the order of the ids."""

Before = tuple[NDArray[np.uint64], NDArray[np.uint16]]
"""Of every page how many ids occur below it, and of every word how many below it in its page."""


def bitmap_bytes(ids: int) -> int:
    """Bytes that pages of ids 0 to ``ids - 1`` take."""
    return PAGE_BYTES * (-(-ids >> PAGE_BITS))


class IdBitmap:
    """Which ids below 2^38 were met. Memory of pages that were not touched is only reserved.

    ``full``: there was an id too large, or in one page too many for ``limit_bytes``; ids may be missing then.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._most = max(1, min(limit_bytes // PAGE_BYTES, MAX_VERTICES >> PAGE_BITS))
        self.full = False
        self.end = 0
        self.slots = np.frombuffer(reserved(4 * (MAX_VERTICES >> PAGE_BITS)), np.int32)
        self.words = np.frombuffer(reserved(2 * 8 * PAGE_WORDS * self._most), np.uint64)
        self._used = self._others = 0
        self._lock = threading.Lock()

    def mark(self, ids: NDArray[Any], others: NDArray[Any], *, but_equal: bool = False) -> None:
        """Note the ids of two arrays of one length, without pairs of equal ones; any thread may."""
        at = 0
        while not self.full:
            at += mark_pairs(self.slots, self.words, ids[at:], others[at:], but_equal)
            if at == len(ids):
                return
            for one in (ids[at], others[at]):
                self._page(int(one) >> PAGE_BITS)

    def add(self, other: "IdBitmap") -> None:
        """Note all ids of another one."""
        for page in other.pages():
            if (words := self._page(page)) is not None:
                words |= other.page_words(page)

    def fill(self, count: int) -> None:
        """Note ids 0 to ``count - 1``."""
        for page in range(-(-count >> PAGE_BITS)):
            if (words := self._page(page)) is not None:
                bits = np.ones(min(PAGE_IDS, count - (page << PAGE_BITS)), np.bool_)
                packed = np.packbits(bits, bitorder="little")
                words.view(np.uint8)[: len(packed)] |= packed

    def pages(self) -> list[int]:
        """The pages that are there, ascending."""
        found: list[int] = np.flatnonzero(self.slots[: self.end]).tolist()
        return found

    def page_words(self, page: int) -> NDArray[np.uint64]:
        """The bits of a page that is there: uint64 (1024,)."""
        slot = int(self.slots[page]) - 1
        return self.words[slot * PAGE_WORDS : (slot + 1) * PAGE_WORDS]

    def ids_of(self, page: int) -> NDArray[Any]:
        """The ids of a page, ascending."""
        bits = np.unpackbits(self.page_words(page).view(np.uint8), bitorder="little")
        return np.flatnonzero(bits.view(np.bool_)) + (page << PAGE_BITS)

    def __len__(self) -> int:
        return sum(int(np.bitwise_count(self.page_words(page)).sum(dtype=np.int64)) for page in self.pages())

    @property
    def largest(self) -> int:
        """The largest id, -1 of none."""
        return int(self.ids_of(self.end - 1)[-1]) if self.end else -1

    def _page(self, page: int) -> NDArray[np.uint64] | None:
        """The words of a page, which is made if need be; None where there is no room."""
        with self._lock:
            if page >= len(self.slots) or (self.slots[page] == 0 and self._used == self._most):
                self.full = True
                return None
            if self.slots[page] == 0:
                self._used += 1
                self._others += page >= self._most
                self.slots[page] = page + 1 if page < self._most else self._most + self._others
                self.end = max(self.end, page + 1)
            return self.page_words(page)


class OccurringIds:
    """The ids of a bitmap, ascending: that of rank v is vertex v."""

    def __init__(self, bitmap: IdBitmap) -> None:
        self._bitmap = bitmap
        self.count = len(bitmap)
        self.end = bitmap.largest + 1
        self.dtype = vertex_dtype(self.count)
        words = len(bitmap.words)
        self._before = np.empty(words // PAGE_WORDS, np.uint64), np.frombuffer(reserved(2 * words), np.uint16)
        count_before(bitmap.slots[: bitmap.end], bitmap.words, self._before)

    def __call__(self, ids: NDArray[Any]) -> NDArray[Any]:
        """The vertices of some ids, each of which must be one of these."""
        found = np.empty(len(ids), self.dtype)
        rank_ids(self._bitmap.slots, self._bitmap.words, self._before, ids, found)
        return found

    def keys(self, sources: NDArray[Any], targets: NDArray[Any], keys: Keys) -> None:
        """Write the keys (encoding/edge_keys.py) of edges in vertices, of which there must be at most 2^32."""
        rank_pairs(self._bitmap.slots, self._bitmap.words, self._before, sources, targets, keys)

    def rows(
        self, keys: Keys, target_bits: int, base: int, neighbors: NDArray[Any], sources: NDArray[Any]
    ) -> tuple[int, NDArray[np.uint32]]:
        """Write the vertices of targets, and of sources if there is room, of sorted keys, whose sources count from id
        ``base``; return the first source and the degrees from it on. The keys are lost.
        """
        ends = [int(key >> np.uint64(target_bits)) + base for key in (keys[0], keys[-1])]
        first, last = map(int, self(np.array(ends, np.uint64)))
        degrees = np.zeros(last - first + 1, np.uint32)
        layout = target_bits, base, first
        rank_keys(self._bitmap.slots, self._bitmap.words, self._before, keys, layout, (neighbors, sources, degrees))
        return first, degrees

    def pieces(self) -> Iterator[NDArray[Any]]:
        """Yield all ids, uint32 or uint64, some at a time."""
        kind = vertex_dtype(self.end)
        for page in self._bitmap.pages():
            yield self._bitmap.ids_of(page).astype(kind)

    def whole(self) -> NDArray[Any]:
        """All ids in one array."""
        return np.concatenate([np.empty(0, vertex_dtype(self.end)), *self.pieces()])


class SeenIds:
    """The ids of an input while it is read: those that edges end in, and others that it names.

    Parameters
    ----------
    limit_bytes : int
        What pages may take.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._ends, self._named = IdBitmap(limit_bytes), IdBitmap(limit_bytes)

    @property
    def full(self) -> bool:
        """Whether there were more than memory holds, or too large ones."""
        return self._ends.full or self._named.full

    def see(self, batch: EdgeBatch, *, drop_loops: bool) -> None:
        """Note the ends of edges; those of edges that are dropped are only named. Any thread may ask."""
        self._ends.mark(batch.sources, batch.targets, but_equal=drop_loops)
        if drop_loops:
            self.name(batch.sources[batch.sources == batch.targets])

    def name(self, ids: NDArray[Any]) -> None:
        """Note ids that may have no edge."""
        self._named.mark(ids, ids)

    @property
    def with_edges(self) -> int | None:
        """How many ids edges end in, as long as `occurring` was not asked; None where memory was too short."""
        return None if self._ends.full else len(self._ends)

    def occurring(self, named: int) -> OccurringIds | int:
        """All ids that were noted and 0 to ``named - 1``; how many, if they are 0 to n-1. There must be room.

        Call it once, when all were noted.
        """
        largest = max(self._ends.largest, self._named.largest)
        if largest < named:
            return named
        self._ends.add(self._named)
        self._ends.fill(named)
        count = len(self._ends)
        return count if count == largest + 1 else OccurringIds(self._ends)


@jit_inlined
def word_of(slots: NDArray[np.int32], words: NDArray[np.uint64], id: Any) -> Any:
    """Which word has the bit of an id whose page is there."""
    word = id >> np.uint64(6)
    if id < np.uint64(len(words)) << np.uint64(HOME_SHIFT):
        return word
    first = np.uint64(slots[id >> np.uint64(PAGE_BITS)] - 1) * np.uint64(PAGE_WORDS)
    return first + (word & np.uint64(PAGE_WORDS - 1))


@jit_inlined
def mark_id(slots: NDArray[np.int32], words: NDArray[np.uint64], id: Any) -> bool:
    """Set the bit of an id; whether its page is there."""
    bit = np.uint64(1) << (id & np.uint64(63))
    if id < np.uint64(len(words)) << np.uint64(HOME_SHIFT) and words[id >> np.uint64(6)] & bit != np.uint64(0):
        return True
    page = id >> np.uint64(PAGE_BITS)
    if page >= np.uint64(len(slots)) or slots[page] == 0:
        return False
    word = word_of(slots, words, id)
    if words[word] & bit == np.uint64(0):
        atomic_or(words, word, bit)
    return True


@jit
def mark_pairs(
    slots: NDArray[np.int32], words: NDArray[np.uint64], ones: NDArray[Any], others: NDArray[Any], but_equal: bool
) -> int:
    """Mark the ids of pairs; return how many come before one that has an id whose page is missing."""
    for i in range(len(ones)):  # from 0 on: numba looks at the sign of an index that may be negative
        one, other = np.uint64(ones[i]), np.uint64(others[i])
        if but_equal and one == other:
            continue
        if not (mark_id(slots, words, one) and mark_id(slots, words, other)):
            return i
    return len(ones)


@jit
def count_before(slots: NDArray[np.int32], words: NDArray[np.uint64], before: Before) -> None:
    """Write how many smaller ids occur for every page, and for every word of it how many of these are in the page."""
    pages, inside = before
    total = np.uint64(0)
    for page in range(len(slots)):
        if slots[page] == 0:
            continue
        slot = slots[page] - 1
        pages[slot] = total
        count = np.uint64(0)
        for word in range(slot * PAGE_WORDS, (slot + 1) * PAGE_WORDS):
            inside[word] = count
            count += pop_count(words[word])
        total += count


@jit_inlined
def rank_of(slots: NDArray[np.int32], words: NDArray[np.uint64], before: Before, id: Any) -> Any:
    """How many smaller ids occur, of an id that does."""
    pages, inside = before
    word = word_of(slots, words, id)
    smaller = pop_count(words[word] & ((np.uint64(1) << (id & np.uint64(63))) - np.uint64(1)))
    return pages[word // np.uint64(PAGE_WORDS)] + np.uint64(inside[word]) + smaller


@jit
def rank_ids(
    slots: NDArray[np.int32], words: NDArray[np.uint64], before: Before, ids: NDArray[Any], ranks: NDArray[Any]
) -> None:
    """Write the rank of every id, all of which occur."""
    for i in range(len(ids)):
        ranks[i] = rank_of(slots, words, before, np.uint64(ids[i]))


@jit
def rank_pairs(
    slots: NDArray[np.int32],
    words: NDArray[np.uint64],
    before: Before,
    ones: NDArray[Any],
    others: NDArray[Any],
    keys: Keys,
) -> None:
    """Write the ranks of the ids of pairs, all of which occur, as keys: one << 32 | other."""
    for i in range(len(ones)):
        one = rank_of(slots, words, before, np.uint64(ones[i]))
        keys[i] = one << np.uint64(32) | rank_of(slots, words, before, np.uint64(others[i]))


@jit
def rank_keys(
    slots: NDArray[np.int32],
    words: NDArray[np.uint64],
    before: Before,
    keys: Keys,
    layout: tuple[int, int, int],
    rows: tuple[NDArray[Any], NDArray[Any], NDArray[np.uint32]],
) -> None:
    """Write what `OccurringIds.rows` does; the keys become where rows end, since a jump at each row costs more.

    ``layout``: bits of a target; from which id sources count, and from which rank the degrees.
    """
    target_bits, base, first = layout
    neighbors, sources, degrees = rows
    move, half = np.uint64(target_bits), np.uint64(32)  # a group has less than 2^32 keys, and sources of 32 bits
    mask = (np.uint64(1) << move) - np.uint64(1)
    last, row = keys[0] >> move, np.uint64(0)
    for i in range(len(keys)):
        key = keys[i]
        row += np.uint64(key >> move != last)
        last = key >> move
        keys[row] = last << half | np.uint64(i)
        neighbors[i] = rank_of(slots, words, before, key & mask)
    begin = np.int64(0)
    for i in range(int(row) + 1):
        end = np.int64(keys[i] & np.uint64(0xFFFFFFFF)) + 1
        source = rank_of(slots, words, before, (keys[i] >> half) + np.uint64(base))
        degrees[source - np.uint64(first)] = end - begin
        if len(sources):
            sources[begin:end] = source
        begin = end
