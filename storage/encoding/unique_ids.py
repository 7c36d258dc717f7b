"""Whether ids repeat: numbers or strings, in order (as conversion leaves them, hubs aside) or not.

Ids that rise are not sorted again: one comparison of neighbors is enough. Strings out of order are compared by 64-bit
hashes first (FNV-1a: Fowler, Noll and Vo), and by their bytes where two hashes are equal.
"""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.jit import jit
from penstock.storage.encoding.string_array import StringArray

_BASIS = np.uint64(0xCBF29CE484222325)
_PRIME = np.uint64(0x100000001B3)


def repeated_number(ids: NDArray[Any]) -> int | None:
    """Return an id that occurs more than once, None if all are distinct."""
    if (ids[1:] > ids[:-1]).all():
        return None
    ordered = np.sort(ids)
    same = np.flatnonzero(ordered[1:] == ordered[:-1])
    return int(ordered[same[0]]) if len(same) else None


def repeated_name(names: StringArray, first: int, last: int) -> str | None:
    """Return a name that occurs more than once among those numbered first..last-1, None if all are distinct."""
    hashes = np.empty(last - first, np.uint64)
    _hash_names(names.text, names.ends, first, hashes)
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    for at in np.flatnonzero(ordered[1:] == ordered[:-1]).tolist():
        group = order[np.searchsorted(ordered, ordered[at]) : np.searchsorted(ordered, ordered[at], "right")]
        texts = sorted(_name(names, first + int(number)) for number in group)
        for one, other in pairwise(texts):
            if one == other:
                return one.decode(errors="replace")
    return None


def _name(names: StringArray, number: int) -> bytes:
    start = int(names.ends[number - 1]) if number else 0
    return names.text[start : int(names.ends[number])].tobytes()


@jit
def _hash_names(text: NDArray[np.uint8], ends: NDArray[np.int64], first: int, hashes: NDArray[np.uint64]) -> None:
    for i in range(len(hashes)):
        start = ends[first + i - 1] if first + i > 0 else 0
        value = _BASIS
        for j in range(start, ends[first + i]):
            value = (value ^ np.uint64(text[j])) * _PRIME
        hashes[i] = value
