"""Arrays of strings packed end to end: one array of UTF-8 bytes, and where each string ends.

String ids are so in scratch files, in graph files and on their way to results; they become NumPy strings only where a
caller asks for them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit

LONGEST_NAME = 65_535
"""Bytes of the longest id that is a string."""
STRINGS = np.dtypes.StringDType()
NO_ORDER = np.empty(0, np.int64)
_SPREAD_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class StringArray:
    """``text`` uint8, and ``ends`` int64 (names,): name i is ``text[ends[i - 1]:ends[i]]``, the first from 0."""

    text: NDArray[np.uint8]
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def nbytes(self) -> int:
        """Bytes of both arrays."""
        return self.text.nbytes + self.ends.nbytes

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Bytes of each name."""
        return np.diff(self.ends, prepend=0)

    def strings(self) -> NDArray[Any]:
        """The names as an array of NumPy's variable-length strings."""
        out = np.empty(len(self), STRINGS)
        longest = max(1, int(self.lengths.max(initial=0)))
        step = max(1, _SPREAD_BYTES // longest)
        for first in range(0, len(self), step):
            last = min(first + step, len(self))
            wide = np.zeros((last - first, longest), np.uint8)
            spread(self.text, self.ends, first, wide)
            out[first:last] = wide.reshape(-1).view(f"S{longest}").astype(STRINGS)
        return out

    def taken(self, order: NDArray[Any]) -> "StringArray":
        """The names that ``order`` numbers, in that order."""
        starts = np.where(order == 0, 0, self.ends[np.maximum(order, 1) - 1])
        ends = np.cumsum(self.ends[order] - starts, dtype=np.int64)
        text = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
        gather(self.text, self.ends, order, text)
        return StringArray(text, ends)

    def places(
        self, wanted: Iterable[int | str], span: tuple[int, int], order: NDArray[np.int64] = NO_ORDER
    ) -> NDArray[np.int64]:
        """The number of each wanted name among those of a span, -1 where there is none; see `find_names`."""
        texts = string_array(map(str, wanted), "surrogatepass")  # what is no UTF-8 is no name
        found = np.empty(len(texts), np.int64)
        find_names(self.text, self.ends, order, span, texts.text, texts.ends, found)
        return found


def distinct(strings: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return distinct strings, ascending by their bytes, and the number of each given one among them.

    By the stable sort, which `return_index` chooses: NumPy 2.4's other sort of strings that repeat ends the process.
    """
    names, _, numbers = np.unique(strings, return_index=True, return_inverse=True)
    return names, numbers


def ranks_among(ids: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.int64]:
    """How many of ascending ids, numbers or strings, are at most each wanted one.

    Strings are sorted together: NumPy before 2.5 searches strings of one array in the memory of another
    (numpy/numpy#31533).
    """
    if ids.dtype.kind != "T":
        return np.searchsorted(ids, wanted, "right")
    order = np.argsort(np.concatenate([ids, wanted]), kind="stable")
    found = np.empty(len(order), np.int64)
    found[order] = np.cumsum(order < len(ids))
    return found[len(ids) :]


def string_array(strings: Iterable[str], errors: str = "strict") -> StringArray:
    """Texts as their bytes end to end; errors: as `str.encode` has it."""
    encoded = [text.encode(errors=errors) for text in strings]
    ends = np.cumsum([len(name) for name in encoded], dtype=np.int64)
    return StringArray(np.frombuffer(b"".join(encoded), np.uint8), ends)


@jit
def first_invalid(text: NDArray[np.uint8], ends: NDArray[np.int64]) -> int:
    """The number of the first name that is no UTF-8 (RFC 3629, section 4), -1 if all are."""
    at = 0
    for i in range(len(ends)):
        while at < ends[i]:
            lead = text[at]
            length = 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            if 0x80 <= lead < 0xC2 or lead > 0xF4 or at + length > ends[i]:
                return i
            for j in range(1, length):
                if text[at + j] & 0xC0 != 0x80:
                    return i
            second = text[at + 1] if length > 1 else np.uint8(0)
            if (lead == 0xE0 and second < 0xA0) or (lead == 0xED and second > 0x9F):
                return i
            if (lead == 0xF0 and second < 0x90) or (lead == 0xF4 and second > 0x8F):
                return i
            at += length
    return -1


@jit
def comes_before(text: NDArray[np.uint8], one: int, one_end: int, other: NDArray[np.uint8], at: int, end: int) -> bool:
    """Whether the bytes [one, one_end) of a text come before the bytes [at, end) of this or another text."""
    while one < one_end and at < end:
        if text[one] != other[at]:
            return bool(text[one] < other[at])
        one += 1
        at += 1
    return one == one_end and at < end


@jit
def find_names(
    text: NDArray[np.uint8],
    ends: NDArray[np.int64],
    order: NDArray[np.int64],
    span: tuple[int, int],
    wanted: NDArray[np.uint8],
    wanted_ends: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """Set ``out`` to the number of each wanted name, -1 where there is none.

    span: the names that count, [first, last). order: their places in it by name; empty: they ascend.
    """
    for i in range(len(out)):
        begin, end = (wanted_ends[i - 1] if i > 0 else 0), wanted_ends[i]
        low, high = span
        while low < high:
            middle = (low + high) // 2
            name = order[middle - span[0]] + span[0] if len(order) else middle
            if comes_before(text, ends[name - 1] if name > 0 else 0, ends[name], wanted, begin, end):
                low = middle + 1
            else:
                high = middle
        out[i] = -1
        if low < span[1]:
            name = order[low - span[0]] + span[0] if len(order) else low
            if not comes_before(wanted, begin, end, text, ends[name - 1] if name > 0 else 0, ends[name]):
                out[i] = name


@jit
def spread(text: NDArray[np.uint8], ends: NDArray[np.int64], first: int, wide: NDArray[np.uint8]) -> None:
    """Copy names from number ``first`` on into the rows of ``wide``, which is zero."""
    for i in range(len(wide)):
        start = ends[first + i - 1] if first + i > 0 else 0
        for j in range(ends[first + i] - start):
            wide[i, j] = text[start + j]


@jit
def gather(text: NDArray[np.uint8], ends: NDArray[np.int64], order: NDArray[Any], out: NDArray[np.uint8]) -> None:
    """Copy the names that ``order`` numbers into ``out``, one after another."""
    at = 0
    for i in range(len(order)):
        name = order[i]
        start = ends[name - 1] if name > 0 else 0
        for j in range(start, ends[name]):
            out[at] = text[j]
            at += 1
