"""Owns string ids while a graph is converted: numbers at once, order at the end, names on disk.

A name gets the next number when it is first met (`NameTable`: 24 bytes of memory a name, the hash
of 128 bits and its place in an open-addressing table). The names themselves go into runs, sorted
as soon as one is full, and runs are merged at the end (external merge sort, Knuth vol. 3, 5.4): a name's
rank in the order of bytes is its vertex. Refuses more names than the table's memory holds.

Sorting goes by eight bytes at a time, the most significant first, and only within what is equal so far (multikey
quicksort after Bentley and Sedgewick, SODA 1997, with words for characters). No name holds a zero byte and none comes
twice, so a name that ends counts as zeros and nothing is ever equal to the end.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import InputError
from penstock.storage.base.jit import jit
from penstock.storage.convert.sort.spill_room import ArrayStore, StoredArrays
from penstock.storage.encoding.string_array import LONGEST_NAME, StringArray, comes_before
from penstock.storage.ingest.core.edges import LocalNames, find_or_add

KEY_BYTES = 16
SMALLEST_RUN = 1 << 20
NAME_BYTES = 40
"""What sorting a name takes besides its text."""
MOST_NAMES = (1 << 32) - 2


class NameTable:
    """Numbers for names in the order of their first occurrence. ``limit_bytes`` bounds the table."""

    def __init__(self, limit_bytes: int) -> None:
        self.count = 0
        self._limit = limit_bytes
        self._keys = np.empty((1 << 10, 2), np.uint64)
        self._slots = np.zeros(1 << 11, np.uint32)

    def numbers(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """The number of each of a batch's distinct names, and which of them are new (ascending).

        Raises:
            InputError: there are more than the memory can hold.
        """
        self._make_room(self.count + len(keys))
        numbers = np.empty(len(keys), np.uint32)
        new = np.empty(len(keys), np.int64)
        found = int(insert_keys(keys, self._keys, self._slots, self.count, numbers, new))
        self.count += found
        return numbers, new[:found]

    def _make_room(self, names: int) -> None:
        if names > len(self._keys):
            grown = max(names, len(self._keys) * 3 // 2)
            slots = len(self._slots)
            while slots * 3 < grown * 5:
                slots *= 2
            self._check(grown, slots if slots > len(self._slots) else 0)
            self._keys.resize((grown, 2), refcheck=False)
            if slots > len(self._slots):
                self._slots = np.zeros(slots, np.uint32)
                insert_again(self._keys, self.count, self._slots)

    def _check(self, names: int, new_slots: int) -> None:
        needed = names * KEY_BYTES + 4 * (len(self._slots) + new_slots)
        if needed > self._limit or names > MOST_NAMES:
            raise InputError(
                f"--renumber: the table of {self.count} different names and more needs {format_bytes(needed)}, and may "
                f"have {format_bytes(self._limit)}; raise --host-memory (at most 2^32 - 2 names are possible)"
            )


@jit
def insert_keys(
    keys: NDArray[np.uint64],
    known: NDArray[np.uint64],
    slots: NDArray[np.uint32],
    count: int,
    numbers: NDArray[np.uint32],
    new: NDArray[np.int64],
) -> int:
    """Find or add each key. Returns how many were added."""
    added = 0
    for i in range(len(keys)):
        number = find_or_add(keys[i, 0], keys[i, 1], known, slots, count + added)
        numbers[i] = number
        if number == count + added:
            new[added] = i
            added += 1
    return added


@jit
def insert_again(known: NDArray[np.uint64], count: int, slots: NDArray[np.uint32]) -> None:
    """Put all known keys into empty slots."""
    mask = np.uint64(len(slots) - 1)
    for number in range(count):
        slot = known[number, 0] & mask
        while slots[slot] != 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = number + 1


@dataclass(frozen=True, slots=True)
class SpilledNames:
    """Names in the order of bytes, perhaps with their numbers, in a store. See `spilled`."""

    store: ArrayStore
    arrays: StoredArrays
    count: int
    text_bytes: int

    def lengths(self, first: int, last: int) -> NDArray[np.int64]:
        """Bytes of names [first, last)."""
        return self.store.read(self.arrays, 1, first, last).astype(np.int64) + 1

    def numbers(self, first: int, last: int) -> NDArray[Any]:
        """Numbers of names [first, last)."""
        return self.store.read(self.arrays, 2, first, last)

    def text(self, first: int, last: int) -> NDArray[Any]:
        """Bytes [first, last) of all text."""
        return self.store.read(self.arrays, 0, first, last)

    def names(self) -> StringArray:
        """All of them."""
        return StringArray(self.text(0, self.text_bytes), np.cumsum(self.lengths(0, self.count)))

    def forget(self) -> None:
        """Give back their memory; the space of those on disk is the store's until the end."""
        self.store.forget(self.arrays)


def spilled(store: ArrayStore, names: StringArray, *numbers: NDArray[Any]) -> SpilledNames:
    """Keep names, and their numbers if there are any. Raises as `ArrayStore.keep`."""
    lengths = (names.lengths - 1).astype(np.uint16)
    return SpilledNames(store, store.keep(names.text, lengths, *numbers), len(names), len(names.text))


def joined(parts: list[StringArray]) -> StringArray:
    """Some names, one after another; ``parts`` is empty then."""
    text = np.concatenate([names.text for names in parts])
    bases = np.cumsum([0, *(len(names.text) for names in parts)])
    ends = np.concatenate([names.ends + base for names, base in zip(parts, bases, strict=False)])
    parts.clear()
    return StringArray(text, ends)


class NameRuns:
    """New names in the order of their numbers, sorted run by run in ``pool``."""

    def __init__(self, store: ArrayStore, pool: Executor, run_bytes: int) -> None:
        self._store, self._pool = store, pool
        self._run_bytes = max(run_bytes, SMALLEST_RUN)
        self._held: list[StringArray] = []
        self._held_bytes = 0
        self._first = self._next = 0
        self._sorting: deque[Future[tuple[StringArray, NDArray[np.uint32]]]] = deque()
        self._runs: list[SpilledNames] = []

    def add(self, local: LocalNames, new: NDArray[np.int64]) -> None:
        """Take the new ones among a batch's names."""
        if len(new):
            names = local.names if len(new) == len(local.names) else local.names.taken(new)
            self._held.append(names)
            self._held_bytes += len(names.text) + NAME_BYTES * len(names)
            self._next += len(names)
            if self._held_bytes >= self._run_bytes:
                self._sort()

    def finish(self) -> list[SpilledNames]:
        """All runs."""
        self._sort()
        self._collect(0)
        return self._runs

    def _sort(self) -> None:
        if self._held:
            self._sorting.append(self._pool.submit(_sorted_run, self._held, self._first))
            self._held, self._held_bytes, self._first = [], 0, self._next
        self._collect(1)

    def _collect(self, most: int) -> None:
        while len(self._sorting) > most:
            self._runs.append(spilled(self._store, *self._sorting.popleft().result()))


def _sorted_run(parts: list[StringArray], first: int) -> tuple[StringArray, NDArray[np.uint32]]:
    """Names in the order of bytes, with their numbers, which count from ``first``."""
    names = joined(parts)
    order = sorted_order(names.text, names.ends)
    return names.taken(order), (order + first).astype(np.uint32)


def merged(runs: list[SpilledNames], memory_bytes: int) -> Iterator[tuple[StringArray, NDArray[np.uint32]]]:
    """Yield all names of sorted runs in the order of bytes, with their numbers, a bounded piece at a time.

    A piece is what every run's window has up to the least of the windows' last names, sorted together: no name that
    comes before one of these is still behind a window.
    """
    share = max(memory_bytes // (4 * len(runs) + 4), 2 * LONGEST_NAME)
    windows = [_Window(run) for run in runs]
    while windows := [window for window in windows if window.fill(share)]:
        last = min((window.name(len(window.names) - 1) for window in windows if not window.is_last), default=None)
        pieces = [window.take(last) for window in windows]
        names = joined([part for part, _ in pieces])
        order = sorted_order(names.text, names.ends)
        yield names.taken(order), np.concatenate([numbers for _, numbers in pieces])[order]


class _Window:
    """The next names of a run, refilled when they are used up."""

    def __init__(self, run: SpilledNames) -> None:
        self.names, self._numbers = StringArray(np.empty(0, np.uint8), np.empty(0, np.int64)), np.empty(0, np.uint32)
        self._run = run
        self._at = self._next = self._next_text = 0

    @property
    def is_last(self) -> bool:
        """Whether nothing of the run comes behind the window."""
        return self._next == self._run.count

    def name(self, number: int) -> bytes:
        """One name of the window."""
        return self.names.text[self._start(number) : self.names.ends[number]].tobytes()

    def fill(self, size: int) -> bool:
        """Refill a used-up window with up to ``size`` bytes of text; whether anything is left."""
        if self._at == len(self.names):
            ends = np.cumsum(self._run.lengths(self._next, min(self._run.count, self._next + size // 16)))
            count = int(np.searchsorted(ends, size, "right"))
            text = self._run.text(self._next_text, self._next_text + (int(ends[count - 1]) if count else 0))
            self.names, self._numbers = (
                StringArray(text, ends[:count]),
                self._run.numbers(self._next, self._next + count),
            )
            self._at, self._next, self._next_text = 0, self._next + count, self._next_text + len(text)
        return self._at < len(self.names)

    def take(self, last: bytes | None) -> tuple[StringArray, NDArray[Any]]:
        """The names up to ``last`` (None: all), with their numbers."""
        first, start = self._at, self._start(self._at)
        count = len(self.names)
        self._at = count if last is None else bisect_right(range(count), last, first, key=self.name)
        names = StringArray(self.names.text[start : self._start(self._at)], self.names.ends[first : self._at] - start)
        return names, self._numbers[first : self._at]

    def _start(self, number: int) -> int:
        return int(self.names.ends[number - 1]) if number else 0


_SMALL = 12


def sorted_order(text: NDArray[np.uint8], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of distinct names in the order of their bytes."""
    order = np.arange(len(ends), dtype=np.int64)
    if len(ends):
        sort_words(text, ends, order, np.empty(len(ends), np.uint64))
    return order


@jit
def word_at(text: NDArray[np.uint8], start: int, end: int) -> Any:
    """The first eight bytes from ``start``, the first most significant; zeros from ``end`` on."""
    word = np.uint64(0)
    for i in range(8):
        byte = np.uint64(text[start + i]) if start + i < end else np.uint64(0)
        word = (word << np.uint64(8)) | byte
    return word


@jit
def sort_words(
    text: NDArray[np.uint8], ends: NDArray[np.int64], order: NDArray[np.int64], words: NDArray[np.uint64]
) -> None:
    """Sort ``order``, numbers of names; ``words`` is room for as many: eight bytes of each from some depth on."""
    pending = np.empty((len(order) // _SMALL + 64, 4), np.int64)
    pending[0, 0], pending[0, 1], pending[0, 2], pending[0, 3] = 0, len(order), 0, 1
    top = 1
    while top > 0:
        top -= 1
        low, high, depth = pending[top, 0], pending[top, 1], pending[top, 2]
        if pending[top, 3] == 1:
            for i in range(low, high):
                name = order[i]
                words[i] = word_at(text, (ends[name - 1] if name > 0 else 0) + depth, ends[name])
        if high - low <= _SMALL:
            _insertion(text, ends, order, low, high, depth)
            continue
        below, above = _divide(order, words, low, high)
        for part in range(3):
            start = low if part == 0 else below if part == 1 else above
            stop = below if part == 0 else above if part == 1 else high
            if stop - start <= _SMALL:
                _insertion(text, ends, order, start, stop, depth)
                continue
            pending[top, 0], pending[top, 1] = start, stop
            pending[top, 2] = depth + 8 if part == 1 else depth
            pending[top, 3] = 1 if part == 1 else 0
            top += 1


@jit
def _divide(order: NDArray[np.int64], words: NDArray[np.uint64], low: int, high: int) -> tuple[int, int]:
    """Put what is below a middle word before it and what is above behind it; return where those equal begin and end."""
    one, middle, other = words[low], words[(low + high) >> 1], words[high - 1]
    pivot = max(min(one, middle), min(max(one, middle), other))
    below, at, above = low, low, high
    while at < above:
        word = words[at]
        if word < pivot:
            words[at], words[below] = words[below], word
            order[at], order[below] = order[below], order[at]
            below += 1
            at += 1
        elif word > pivot:
            above -= 1
            words[at], words[above] = words[above], word
            order[at], order[above] = order[above], order[at]
        else:
            at += 1
    return below, above


@jit
def _insertion(
    text: NDArray[np.uint8], ends: NDArray[np.int64], order: NDArray[np.int64], low: int, high: int, depth: int
) -> None:
    for i in range(low + 1, high):
        name = order[i]
        start = (ends[name - 1] if name > 0 else 0) + depth
        j = i
        while j > low:
            other = order[j - 1]
            other_start = (ends[other - 1] if other > 0 else 0) + depth
            if not comes_before(text, start, ends[name], text, other_start, ends[other]):
                break
            order[j] = other
            j -= 1
        order[j] = name
