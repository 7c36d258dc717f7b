"""Owns string ids while a graph is converted: numbers at once, order at the end, names on disk.

A name gets the next number when it is first met (`NameTable`: 24 bytes of memory a name, the hash
of 128 bits and its place in an open-addressing table). The names themselves go into runs, sorted
as soon as one is full, and runs are merged at the end (external merge sort, Knuth vol. 3, 5.4): a name's
rank in the order of bytes is its vertex. Refuses more names than the table's memory holds.
"""

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
from penstock.storage.convert.renumber.name_sort import merge_windows, sorted_order
from penstock.storage.convert.sort.memory_quota import MemoryQuota, Scratch, ScratchFile
from penstock.storage.encoding.string_array import LONGEST_NAME, StringArray
from penstock.storage.format.edges import LocalNames

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
    """Find or add each key; ``slots`` hold numbers plus one, 0 where free. Returns how many were added."""
    mask = np.uint64(len(slots) - 1)
    added = 0
    for i in range(len(keys)):
        slot = keys[i, 0] & mask
        while True:
            number = np.int64(slots[slot]) - 1
            if number < 0:
                known[count + added] = keys[i]
                slots[slot] = count + added + 1
                numbers[i] = count + added
                new[added] = i
                added += 1
                break
            if known[number, 0] == keys[i, 0] and known[number, 1] == keys[i, 1]:
                numbers[i] = number
                break
            slot = (slot + np.uint64(1)) & mask
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


@dataclass(slots=True)
class KeptNames:
    """Names in the order of bytes with their numbers, in memory or (``starts``) in a scratch file."""

    count: int
    text_bytes: int
    arrays: tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None = None
    file: ScratchFile | None = None
    starts: tuple[int, int, int] = (0, 0, 0)
    taken: int = 0

    def read(self, first: int, last: int, text_first: int, text_last: int) -> tuple[NDArray[Any], ...]:
        """Lengths and numbers of names [first, last), and bytes [text_first, text_last) of text."""
        if self.arrays is not None:
            text, lengths, numbers = self.arrays
            return lengths[first:last], numbers[first:last], text[text_first:text_last]
        assert self.file is not None
        lengths, numbers = np.empty(last - first, np.uint16), np.empty(last - first, np.uint32)
        text = np.empty(text_last - text_first, np.uint8)
        self.file.read(self.starts[1] + 2 * first, lengths)
        self.file.read(self.starts[2] + 4 * first, numbers)
        self.file.read(self.starts[0] + text_first, text)
        return lengths, numbers, text


class SpilledNames:
    """Where names wait: in memory while there is room, then in a scratch file."""

    def __init__(self, room: MemoryQuota, scratch: Scratch) -> None:
        self._room, self._scratch = room, scratch
        self._file: ScratchFile | None = None

    def keep(self, names: StringArray, numbers: NDArray[np.uint32]) -> KeptNames:
        """Keep names and their numbers. Raises as `ScratchFile.append`."""
        lengths = (names.lengths - 1).astype(np.uint16)
        kept = KeptNames(len(names), len(names.text))
        size = names.text.nbytes + lengths.nbytes + numbers.nbytes
        if self._room.take(size):
            kept.arrays, kept.taken = (names.text, lengths, numbers), size
        else:
            self._file = self._file or self._scratch.open()
            file = kept.file = self._file
            kept.starts = (file.append(names.text), file.append(lengths), file.append(numbers))
        return kept

    def forget(self, kept: KeptNames) -> None:
        """Give back the memory of some names; those on disk stay until the end."""
        self._room.give(kept.taken)
        kept.arrays, kept.taken = None, 0


class NameRuns:
    """New names in the order of their numbers, sorted run by run in ``pool``."""

    def __init__(self, shelf: SpilledNames, pool: Executor, run_bytes: int) -> None:
        self._shelf, self._pool = shelf, pool
        self._run_bytes = max(run_bytes, SMALLEST_RUN)
        self._held: list[StringArray] = []
        self._held_bytes = 0
        self._first = self._next = 0
        self._sorting: deque[Future[tuple[StringArray, NDArray[np.uint32]]]] = deque()
        self._runs: list[KeptNames] = []

    def add(self, local: LocalNames, new: NDArray[np.int64]) -> None:
        """Take the new ones among a batch's names."""
        if len(new):
            names = local.names if len(new) == len(local.names) else local.names.taken(new)
            self._held.append(names)
            self._held_bytes += len(names.text) + NAME_BYTES * len(names)
            self._next += len(names)
            if self._held_bytes >= self._run_bytes:
                self._sort()

    def finish(self) -> list[KeptNames]:
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
            self._runs.append(self._shelf.keep(*self._sorting.popleft().result()))


def _sorted_run(parts: list[StringArray], first: int) -> tuple[StringArray, NDArray[np.uint32]]:
    """Names in the order of bytes, with their numbers, which count from ``first``."""
    text = np.concatenate([names.text for names in parts])
    bases = np.cumsum([0, *(len(names.text) for names in parts)])
    ends = np.concatenate([names.ends + base for names, base in zip(parts, bases, strict=False)])
    parts.clear()
    order = sorted_order(text, ends)
    return StringArray(text, ends).taken(order), (order + first).astype(np.uint32)


def merged(runs: list[KeptNames], memory_bytes: int) -> Iterator[tuple[StringArray, NDArray[np.uint32]]]:
    """Yield all names of sorted runs in the order of bytes, with their numbers, a bounded piece at a time."""
    if not runs:
        return
    share = memory_bytes // (2 * len(runs) + 2)
    windows = _Windows(runs, max(share, 2 * LONGEST_NAME))
    while windows.fill():
        yield windows.merge()


class _Windows:
    """A window into each run, refilled when one is used up."""

    def __init__(self, runs: list[KeptNames], window_bytes: int) -> None:
        self._runs = runs
        most = max(64, window_bytes // 16)
        self._text = np.empty((len(runs), window_bytes), np.uint8)
        self._ends = np.zeros((len(runs), most + 1), np.int64)
        self._numbers = np.empty((len(runs), most), np.uint32)
        self._counts = np.zeros(len(runs), np.int64)
        self._at = np.zeros(len(runs), np.int64)
        self._next = [(0, 0) for _ in runs]

    def fill(self) -> bool:
        """Refill used-up windows; whether anything is left."""
        for number, run in enumerate(self._runs):
            if self._at[number] == self._counts[number]:
                self._load(number, run)
        return bool((self._counts > 0).any())

    def _load(self, number: int, run: KeptNames) -> None:
        first, text_first = self._next[number]
        last = min(run.count, first + self._numbers.shape[1])
        lengths, numbers, _ = run.read(first, last, 0, 0)
        ends = np.cumsum(lengths.astype(np.int64) + 1)
        count = int(np.searchsorted(ends, self._text.shape[1], "right"))
        size = int(ends[count - 1]) if count else 0
        text = run.read(0, 0, text_first, text_first + size)[2]
        self._text[number, :size] = text
        self._ends[number, 1 : count + 1] = ends[:count]
        self._numbers[number, :count] = numbers[:count]
        self._counts[number], self._at[number] = count, 0
        self._next[number] = first + count, text_first + size

    def merge(self) -> tuple[StringArray, NDArray[np.uint32]]:
        """Merge until a window is used up."""
        left = self._counts - self._at
        text = np.empty(self._text.size, np.uint8)
        ends = np.empty(int(left.sum()), np.int64)
        numbers = np.empty(len(ends), np.uint32)
        windows = (self._text, self._ends, self._numbers)
        count = int(merge_windows(windows, self._counts, self._at, text, ends, numbers))
        size = int(ends[count - 1]) if count else 0
        return StringArray(text[:size].copy(), ends[:count].copy()), numbers[:count].copy()
