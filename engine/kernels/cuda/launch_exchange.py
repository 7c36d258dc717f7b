"""Launching the kernels of `exchange.py`: what ranks merge of their states on GPUs.

One number comes to the host, and messages where they are few.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.kernels.cuda import exchange
from penstock.engine.kernels.cuda.driver import BLOCK, blocks_for
from penstock.engine.kernels.interface import SharedLists

if TYPE_CHECKING:
    from penstock.engine.state.device_state import DeviceBitmap
    from penstock.transfer.devices.device import Device

Span = tuple[int, int]


class CudaExchangeKernels:
    """Kernels for the exchange of one run, and their scratch on the device.

    Arrays are the device's, of one dimension. A span (first, last) is of vertices; a bitmap has uint32 words.
    kept: what is page-locked, which takes longer than an exchange: it outlives the run. exchanged_at_once: messages of
    all vertices travel at once, since the host waits for every number.
    """

    exchanged_at_once = 1 << 62

    def __init__(self, device: Device, combiner: str, kept: dict[tuple[Any, ...], Any]) -> None:
        self._device, self._combiner, self._kept = device, combiner, kept
        self._buffers: dict[str, tuple[Any, Any]] = {}
        self._readback, self._readback_here = self._shared("readback", 1, np.dtype(np.int64))
        self._total = device.array(1, np.int64)

    def count(self, bitmap: DeviceBitmap, span: Span, target: Any, lists: SharedLists) -> int:
        """How many of a span are marked, and which, if lists has room; the host waits for it. `listed` may follow."""
        blocks, known = self._counted(bitmap.words, span)
        exchange.list_marks(blocks, *known, lists.ids_here, target, lists.values_here)
        self._device.finish()
        return int(self._readback[0])

    def marked(self, bitmap: DeviceBitmap, span: Span) -> int:
        """How many of a span are marked; the host waits for it. `listed` may follow."""
        self._counted(bitmap.words, span)
        self._device.finish()
        return int(self._readback[0])

    def listed(self, bitmap: DeviceBitmap, span: Span, count: int, target: Any, ids: Any, values: Any) -> None:
        """List the `count` marked vertices of a span, and their values; right after `count` or `marked`."""
        blocks, known = self._known(bitmap.words, span)
        if count:
            exchange.list_marks(blocks, *known, ids, target, values)

    def enumerated(self, words: Any, span: Span, ids: Any) -> None:
        """List the marked vertices of a span, of which there are as many as ids; the host does not wait."""
        blocks, known = self._counted(words, span)
        nothing = self.buffer("nothing", 0, ids.dtype)
        if len(ids):
            exchange.list_marks(blocks, *known, ids, nothing, nothing)

    def _counted(self, words: Any, span: Span) -> tuple[int, tuple[Any, ...]]:
        """`_known`, after a count."""
        blocks, known = self._known(words, span)
        exchange.count_marks(blocks, *known[:-1])
        exchange.sum_counts(1, known[-2], self._total, self._readback_here)
        return blocks, known

    def _known(self, words: Any, span: Span) -> tuple[int, tuple[Any, ...]]:
        """Blocks for the words that hold a span, and what the kernels that count and list take."""
        first, last = span[0] // 32, -(-span[1] // 32)
        blocks = max(1, -(-(last - first) // BLOCK))
        counts = self.buffer("counts", blocks, np.int64)
        return blocks, (words, np.int64(first), np.int64(span[0]), np.int64(span[1]), counts, self._total)

    def copy_marks(self, bitmap: DeviceBitmap, span: Span, found: Any) -> None:
        """Found = the words of a bitmap without marks outside the span."""
        exchange.copy_marks(blocks_for(len(found)), bitmap.words, np.int64(span[0]), np.int64(span[1]), found)

    def move_marks(self, bitmap: DeviceBitmap, target: DeviceBitmap) -> None:
        """Set in target what is set in a bitmap, and unset it there."""
        exchange.move_marks(blocks_for(len(bitmap.words)), bitmap.words, target.words)

    def reset(self, ids: Any, part: Span, target: Any, identity: Any) -> None:
        """Set the entries of target that a part of ids lists to the identity."""
        first, last = part
        if first < last:
            ends = np.int64(first), np.int64(last)
            exchange.reset_listed(blocks_for(last - first), ids, *ends, target, target.dtype.type(identity))

    def merge(self, ids: Any, values: Any, part: Span, target: Any, bitmap: DeviceBitmap, *, instead: bool) -> None:
        """Merge a part of values into target where ids say, none twice, or put it there instead; and mark the ids."""
        first, last = part
        if first < last:
            merge = exchange.make_merge_listed(None if instead else self._combiner)
            merge(blocks_for(last - first), ids, values, np.int64(first), np.int64(last), target, bitmap.words)

    def combine(self, found: Any, ours: Any, combiner: str | None = None) -> None:
        """Ours = the slices of all ranks, one after another in `found`, combined in their order."""
        if len(ours):
            combine = exchange.make_combine_slices(combiner or self._combiner)
            combine(blocks_for(len(ours)), found, ours)

    def settle(self, found: Any, rank: int, ours: Any, marks: DeviceBitmap, pending: DeviceBitmap, first: int) -> None:
        """As `combine`; and mark as pending who is marked, or is not what this rank has found alone."""
        if len(ours):
            settle = exchange.make_settle_slices(self._combiner)
            mine = np.int64(rank * len(ours))
            settle(blocks_for(len(ours)), found, mine, ours, marks.words, pending.words, np.int64(first))

    def buffer(self, name: str, count: int, dtype: Any) -> Any:
        """Scratch of the device, kept from call to call, not filled."""
        whole, part = self._buffers.get(name, (None, None))
        if whole is None or len(whole) < count or whole.dtype != dtype:
            if whole is not None:
                self._device.free(self._buffers.pop(name)[0])
            whole = part = self._device.array(max(1, count), dtype)
        if len(part) != count:  # a slice takes the host longer than a launch
            part = whole[:count]
        self._buffers[name] = whole, part
        return part

    def shared_lists(self, name: str, room: int, ids: Any, values: Any) -> SharedLists:
        """Lists of these dtypes with such room, in memory of the host that kernels read and write; kept, not filled."""
        key = name, room, ids, values
        if key not in self._kept:
            (own_ids, ids_here), (own_values, values_here) = (self._device.shared_array(room, kind) for kind in key[2:])
            self._kept[key] = SharedLists(own_ids, own_values, ids_here, values_here)
        found: SharedLists = self._kept[key]
        return found

    def _shared(self, name: str, count: int, dtype: np.dtype[Any]) -> tuple[Any, Any]:
        key = name, count, dtype
        if key not in self._kept:
            self._kept[key] = self._device.shared_array(count, dtype)
        found: tuple[Any, Any] = self._kept[key]
        return found
