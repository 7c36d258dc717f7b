"""Edge batches: bounded numbers of edges on their way to disk, in any order; what typed columns may hold as such.

Of ids that are strings, a batch has the distinct names among its fields (`local_names`). With ``sides`` a source and a
target of the same name are two vertices, and every name is preceded by a byte, 1 or 2, that says which. A name is known
by 128 bits of hash, so that no names are kept to compare with: among 10^9 names two share one with probability 10^-21.
Each 64-bit half mixes eight bytes at a time by xor, multiply and shift (after Appleby's MurmurHash64A) with its own
constants.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.base.jit import jit
from penstock.storage.encoding.string_array import StringArray
from penstock.storage.format.schema import EXACT

_K1 = np.uint64(0xC6A4A7935BD1E995)
_K2 = np.uint64(0x9FB21C651E98DF25)
_FINAL = np.uint64(0xFF51AFD7ED558CCD)
_47 = np.uint64(47)
_29 = np.uint64(29)
_32 = np.uint64(32)


@dataclass(frozen=True, slots=True)
class LocalNames:
    """The distinct names of a batch: 128 bits of hash of each, uint64 (n, 2), where each came first, and
    the names themselves."""

    keys: NDArray[np.uint64]
    firsts: NDArray[np.int64]
    names: StringArray


@dataclass(frozen=True, slots=True)
class EdgeBatch:
    """A bounded number of edges.

    ``sources`` and ``targets`` are uint32 or uint64 (both the same) of shape ``(m,)``, in external or
    internal ids as their producer says; ``weights`` is a numeric array of shape ``(m,)``, or None. ``lone``,
    uint64, are ids of vertices that the input names without an edge (None: none). With ``names``, sources and
    targets are numbers of these names. ``again``, where there is one, reads the same edges from the input once more, in
    any thread; it raises RunError or InputError where the input was changed.
    """

    sources: NDArray[Any]
    targets: NDArray[Any]
    weights: NDArray[Any] | None = None
    lone: NDArray[Any] | None = None
    names: LocalNames | None = None
    again: Callable[[], "EdgeBatch"] | None = None

    def __len__(self) -> int:
        return len(self.sources)


def joined(
    batches: Sequence[EdgeBatch], weight_dtype: DTypeLike | None
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """Sources, targets and weights of all batches, one after another; weight_dtype: None where they have no weights."""
    sources = np.concatenate([np.empty(0, np.uint32), *(batch.sources for batch in batches)])
    targets = np.concatenate([np.empty(0, np.uint32), *(batch.targets for batch in batches)])
    if weight_dtype is None:
        return sources, targets, None
    weights = [batch.weights for batch in batches if batch.weights is not None]
    return sources, targets, np.concatenate([np.empty(0, weight_dtype), *weights]).astype(weight_dtype, copy=False)


OTHERS = "--columns names other columns"


def as_ids(values: NDArray[Any], name: str, file: str, row: int, way_out: str = OTHERS) -> NDArray[Any]:
    """Ids as uint32, or uint64 where one does not fit; floats must be whole numbers below 2^53.

    ``name``, ``file``, the ``row`` of the first value and the ``way_out`` are for messages.

    Raises:
        InputError: a value that is no id.
    """
    if values.dtype.kind not in "iuf":
        raise InputError(f"{file}: {name} holds {values.dtype}, and ids are whole numbers; {way_out}")
    if values.dtype.kind == "f":
        values = _whole(values, name, file, row, way_out)
    if values.dtype.kind == "i" and len(values) and int(values.min()) < 0:
        at = int(np.argmax(values < 0))
        raise InputError(f"{file}, row {row + at} (from 0): {name} {values[at]} is negative; ids are 0 or more")
    narrow = len(values) == 0 or int(values.max()) < 1 << 32
    return values.astype(np.uint32 if narrow else np.uint64)


def _whole(values: NDArray[Any], name: str, file: str, row: int, way_out: str) -> NDArray[Any]:
    bad = ~((values == np.floor(values)) & (np.abs(values) < EXACT))
    if bad.any():
        at = int(np.argmax(bad))
        if np.isnan(values[at]):
            raise InputError(f"{file}, row {row + at} (from 0): {name} is missing (nan); drop such rows")
        raise InputError(
            f"{file}, row {row + at} (from 0): {name} {values[at]} is not a whole number below 2^53; {way_out}"
        )
    return values.astype(np.int64)


def as_weights(values: NDArray[Any], name: str, file: str, row: int) -> NDArray[Any]:
    """Weights as they are, if they are finite numbers.

    Raises:
        InputError: one that is not.
    """
    if values.dtype.kind not in "iuf":
        raise InputError(f"{file}: {name} holds {values.dtype}, and weights are numbers; --no-weights drops them")
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        at = int(np.argmin(np.isfinite(values)))
        raise InputError(
            f"{file}, row {row + at} (from 0): weight {name} is {values[at]}, and weights are "
            "finite; drop such rows, or leave weights out"
        )
    return values


def edge_batch(sources: NDArray[Any], targets: NDArray[Any], weights: NDArray[Any] | None) -> EdgeBatch:
    """Edges of ids in the dtype that holds both ends."""
    common = np.promote_types(sources.dtype, targets.dtype)
    return EdgeBatch(sources.astype(common, copy=False), targets.astype(common, copy=False), weights)


def local_names(
    text: NDArray[np.uint8], places: NDArray[np.int32], sides: bool
) -> tuple[LocalNames, NDArray[np.uint32]]:
    """The distinct names among fields, and their numbers, uint32 (m, 2).

    ``places`` int32 (m, 4) are as `text.parser.parse_lines` gives them.
    """
    edges = len(places)
    numbers = np.empty((edges, 2), np.uint32)
    keys = np.empty((2 * edges, 2), np.uint64)
    firsts = np.empty(2 * edges, np.int64)
    count = int(distinct_fields(text, places, sides, numbers, keys, firsts))
    firsts = firsts[:count]
    size = int(places[firsts >> 1, 1 + 2 * (firsts & 1)].sum(dtype=np.int64)) + sides * count
    names = StringArray(np.empty(size, np.uint8), np.empty(count, np.int64))
    pack_fields(text, places, firsts, int(sides), names.ends, names.text)
    return LocalNames(keys[:count].copy(), firsts, names), numbers


def places_of(lengths: NDArray[np.int32]) -> NDArray[np.int32]:
    """Where fields of these lengths, sources and targets in turn, are end to end: int32 (m, 4), for `local_names`."""
    places = np.empty((len(lengths) // 2, 4), np.int32)
    places[:, 1::2] = lengths.reshape(-1, 2)
    places[:, 0::2] = (np.cumsum(lengths, dtype=np.int32) - lengths).reshape(-1, 2)
    return places


def not_utf8(text: NDArray[np.uint8], places: NDArray[np.int32], found: LocalNames, sides: bool) -> int | None:
    """Where a name that is no UTF-8 lies in ``text``; None if all are."""
    if int(found.names.text.max(initial=0)) < 128:
        return None
    names = found.names
    lines = np.empty(len(names.text) + len(names) * (1 - sides), np.uint8)
    pack_fields(text, places, found.firsts, 2, np.empty(len(names), np.int64), lines)
    try:
        lines.tobytes().decode()
    except UnicodeDecodeError as error:
        first = found.firsts[lines[: error.start].tobytes().count(b"\n")]
        return int(places[first >> 1, 2 * (first & 1)])
    return None


@jit
def hash_name(text: NDArray[np.uint8], start: int, length: int, side: int) -> tuple[Any, Any]:
    """128 bits of hash of a name; ``side`` sets equal names apart."""
    one = (np.uint64(length) * _K2) ^ np.uint64(side + 1)
    two = (np.uint64(length) + np.uint64(side)) * _K1 ^ _FINAL
    at = start
    left = length
    while left > 0:
        word = np.uint64(0)
        for i in range(min(left, 8)):
            word |= np.uint64(text[at + i]) << np.uint64(8 * i)
        at += 8
        left -= 8
        mixed = word * _K1
        mixed = (mixed ^ (mixed >> _47)) * _K1
        one = (one ^ mixed) * _K1
        two = (two ^ (word ^ (word >> _32))) * _K2
        two ^= two >> _29
    one = (one ^ (one >> _47)) * _FINAL
    two = (two ^ (two >> _32)) * _FINAL
    return one ^ (one >> _32), two ^ (two >> _29)


@jit
def distinct_fields(
    text: NDArray[np.uint8],
    places: NDArray[np.int32],
    sides: bool,
    numbers: NDArray[np.uint32],
    keys: NDArray[np.uint64],
    firsts: NDArray[np.int64],
) -> int:
    """Number the distinct names among ``places`` in the order in which they come, source before target.

    ``sides``: a name as source and the same as target are two. ``numbers`` uint32 (m, 2) takes the
    numbers, ``keys`` uint64 (2m, 2) the hash of each distinct name, ``firsts`` int64 (2m,) where it
    came first: twice the line, plus one as a target. Returns how many there are.
    """
    capacity = 16
    while capacity < 4 * len(places):
        capacity *= 2
    slots = np.zeros(capacity, np.uint32)
    count = 0
    for i in range(len(places)):
        for end in range(2):
            one, two = hash_name(text, places[i, 2 * end], places[i, 2 * end + 1], end if sides else 0)
            number = find_or_add(one, two, keys, slots, count)
            numbers[i, end] = number
            if number == count:
                firsts[count] = 2 * i + end
                count += 1
    return count


@jit
def find_or_add(one: Any, two: Any, keys: NDArray[np.uint64], slots: NDArray[np.uint32], count: int) -> Any:
    """The number of a key (two halves) among the ``count`` in ``keys``; ``count`` if it is new, and was added.

    ``slots``, 2^n, hold numbers plus one, 0 where free.
    """
    mask = np.uint64(len(slots) - 1)
    slot = one & mask
    while slots[slot] != 0:
        number = np.int64(slots[slot]) - 1
        if keys[number, 0] == one and keys[number, 1] == two:
            return number
        slot = (slot + np.uint64(1)) & mask
    slots[slot] = count + 1
    keys[count, 0] = one
    keys[count, 1] = two
    return count


@jit
def pack_fields(
    text: NDArray[np.uint8],
    places: NDArray[np.int32],
    firsts: NDArray[np.int64],
    apart: int,
    ends: NDArray[np.int64],
    out: NDArray[np.uint8],
) -> None:
    """Copy the fields that `distinct_fields` found into ``out``, and where each ends into ``ends``.

    ``apart`` 1: a byte before each, 1 for a source and 2 for a target; 2: a newline after each; 0: nothing.
    """
    at = 0
    for i in range(len(firsts)):
        line = firsts[i] >> 1
        end = firsts[i] & 1
        if apart == 1:
            out[at] = 1 + end
            at += 1
        start = places[line, 2 * end]
        for j in range(start, start + places[line, 2 * end + 1]):
            out[at] = text[j]
            at += 1
        if apart == 2:
            out[at] = 10
            at += 1
        ends[i] = at
