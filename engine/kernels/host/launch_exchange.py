"""What ranks merge of their states in host memory, as `../cuda/launch_exchange.py` does on a GPU.

Compiled: NumPy would unpack bitmaps, a byte a vertex, and look up and check every id. Kernels run on the caller's
thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.kernels.host.atomics import COMBINE_ALONE, lowest_bit
from penstock.engine.kernels.host.jit import JitKernel, inline, kernel
from penstock.engine.kernels.interface import SharedLists
from penstock.engine.program.combiners import COMBINERS
from penstock.engine.state.state import EXCHANGED_AT_ONCE, SPAN
from penstock.storage.base.thread_atomics import pop_count

if TYPE_CHECKING:
    from penstock.engine.state.state import Bitmap

Span = tuple[int, int]
ONE, SIX, LOW, ALL = np.uint64(1), np.uint64(6), np.uint64(63), np.uint64(2**64 - 1)


@kernel("exchange")
def list_marks(words, summary, first, last, target, ids, values):  # type: ignore[no-untyped-def]
    """Return how many of the vertices [first, last) are marked; list them, and their values, where all have room.

    values: of no items where only vertices are wanted.
    """
    count, with_values = np.int64(0), len(values) > 0
    for over in range(first // SPAN, (last + SPAN - 1) // SPAN):
        upper = summary[over]
        while upper != 0:
            word = (np.uint64(over) << SIX) | lowest_bit(upper)
            upper &= upper - ONE
            left, begin = words[word], np.int64(word << SIX)
            if begin < first:
                left &= ALL << np.uint64(first - begin) if first - begin < 64 else np.uint64(0)
            if begin + 64 > last:
                left &= ALL >> np.uint64(begin + 64 - last) if begin < last else np.uint64(0)
            at = count
            count += np.int64(pop_count(left))
            if count > len(ids):
                continue
            while left != 0:
                v = (word << SIX) | lowest_bit(left)
                left &= left - ONE
                ids[at] = v
                if with_values:
                    values[at] = target[v]
                at += 1
    return count


def _merging(name: str, merge: Any) -> JitKernel:
    """Kernel: merge values into those of listed vertices, none twice, and mark these in a bitmap."""

    @kernel(f"exchange {name}")
    def merge_listed(ids, values, target, words, summary):  # type: ignore[no-untyped-def]
        for at in range(len(ids)):
            v = np.uint64(ids[at])
            merge(target, v, values[at])
            word = v >> SIX
            words[word] |= ONE << (v & LOW)
            summary[word >> SIX] |= ONE << (word & LOW)

    return merge_listed


@inline
def put(target, at, value):  # type: ignore[no-untyped-def]
    """Write a value in the place of an entry."""
    target[at] = value


PUT = _merging("put", put)
MIN, MAX, ADD, OR = (_merging(name, COMBINE_ALONE[name]) for name in ("min", "max", "sum", "or"))
_MERGES = {"min": MIN, "max": MAX, "sum": ADD, "or": OR}


class HostExchangeKernels:
    """Kernels for the exchange of one run; spans (first, last) are of vertices.

    exchanged_at_once: of so many vertices messages travel at once, which ranks hold beside their states.
    """

    exchanged_at_once = EXCHANGED_AT_ONCE

    def __init__(self, combiner: str) -> None:
        self._combiner = combiner
        self._lists: dict[str, SharedLists] = {}

    def count(self, bitmap: Bitmap, span: Span, target: NDArray[Any], lists: SharedLists) -> int:
        """How many of a span are marked, and which, if lists has room."""
        return int(list_marks(bitmap.words, bitmap.summary, *span, target, lists.ids, lists.values))

    def marked(self, bitmap: Bitmap, span: Span) -> int:
        """How many of a span are marked."""
        nothing = bitmap.words[:0]
        return int(list_marks(bitmap.words, bitmap.summary, *span, nothing, nothing, nothing))

    def listed(
        self, bitmap: Bitmap, span: Span, count: int, target: NDArray[Any], ids: NDArray[Any], values: NDArray[Any]
    ) -> None:
        """List the `count` marked vertices of a span, and their values."""
        if count:
            list_marks(bitmap.words, bitmap.summary, *span, target, ids, values)

    def enumerated(self, words: NDArray[np.uint32], span: Span, ids: NDArray[Any]) -> None:
        """List the marked vertices of a span, of which there are as many as ids."""
        every = np.full(-(-span[1] // SPAN), ALL)
        list_marks(words.view(np.uint64), every, *span, ids, ids, ids[:0])

    def copy_marks(self, bitmap: Bitmap, span: Span, found: NDArray[np.uint32]) -> None:
        """Found = the words of a bitmap without marks outside the span."""
        first, last, words = *span, found.view(np.uint64)
        words[:] = bitmap.words
        words[: first // 64] = 0
        words[-(-last // 64) :] = 0
        for word, inside in ((first // 64, ALL << np.uint64(first % 64)), (last // 64, ~(ALL << np.uint64(last % 64)))):
            words[word : word + 1] &= inside

    def move_marks(self, bitmap: Bitmap, target: Bitmap) -> None:
        """Set in target what is set in a bitmap, and unset it there."""
        target.unite(bitmap)
        bitmap.clear()

    def reset(self, ids: NDArray[Any], part: Span, target: NDArray[Any], identity: Any) -> None:
        """Set the entries of target that a part of ids lists to the identity."""
        target[ids[slice(*part)]] = identity

    def merge(
        self,
        ids: NDArray[Any],
        values: NDArray[Any],
        part: Span,
        target: NDArray[Any],
        bitmap: Bitmap,
        *,
        instead: bool,
    ) -> None:
        """Merge a part of values into target where ids say, none twice, or put it there instead; and mark the ids."""
        made, part_of = PUT if instead else _MERGES[self._combiner], slice(*part)
        made(ids[part_of], values[part_of], target, bitmap.words, bitmap.summary)

    def combine(self, found: NDArray[Any], ours: NDArray[Any], combiner: str | None = None) -> None:
        """Ours = the slices of all ranks, one after another in `found`, combined in their order."""
        if len(ours):
            merge, slices = COMBINERS[combiner or self._combiner].ufunc, found.reshape(-1, len(ours))
            ours[...] = slices[0]
            for other in slices[1:]:
                merge(ours, other, out=ours)

    def buffer(self, name: str, count: int, dtype: Any) -> NDArray[Any]:
        """An array for this exchange only, not filled."""
        return np.empty(count, dtype)

    def shared_lists(self, name: str, room: int, ids: Any, values: Any) -> SharedLists:
        """Lists of these dtypes with such room, kept from call to call, not filled."""
        if name not in self._lists:
            arrays = np.empty(room, ids), np.empty(room, values)
            self._lists[name] = SharedLists(*arrays, *arrays)
        return self._lists[name]
