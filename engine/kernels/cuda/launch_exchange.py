"""Launching the kernels of `exchange.py`: what ranks merge of their states on GPUs. One number comes to the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.kernels.cuda import exchange
from penstock.engine.kernels.cuda.driver import BLOCK, blocks_for

if TYPE_CHECKING:
    from penstock.transfer.devices.device import Device

Span = tuple[int, int]


class CudaExchangeKernels:
    """Kernels for the exchange of one run, and their scratch on the device.

    Arrays are the device's, of one dimension. A span (first, last) is of vertices; a bitmap has uint32 words.
    """

    def __init__(self, device: Device, combiner: str) -> None:
        self._device, self._combiner = device, combiner
        self._buffers: dict[str, Any] = {}
        self._readback, self._readback_here = device.shared_array(1, np.int64)

    def count(self, words: Any, span: Span) -> int:
        """How many of a span are marked; the host waits for it. `listed` may follow."""
        blocks, known = self._known(words, span)
        exchange.count_marks(blocks, *known)
        exchange.sum_counts(1, known[-1], self._readback_here)
        self._device.finish()
        return int(self._readback[0])

    def listed(self, words: Any, span: Span, count: int, target: Any, ids: Any, values: Any) -> None:
        """List the `count` marked vertices of a span, and their values; right after `count`."""
        blocks, known = self._known(words, span)
        if count:
            exchange.list_marks(blocks, *known, ids, target, values)

    def enumerated(self, words: Any, span: Span, ids: Any) -> None:
        """List the marked vertices of a span, of which there are as many as ids; the host does not wait."""
        blocks, known = self._known(words, span)
        exchange.count_marks(blocks, *known)
        exchange.sum_counts(1, known[-1], self._readback_here)
        nothing = self.buffer("nothing", 0, ids.dtype)
        if len(ids):
            exchange.list_marks(blocks, *known, ids, nothing, nothing)

    def _known(self, words: Any, span: Span) -> tuple[int, tuple[Any, ...]]:
        """Blocks for the words that hold a span, and what the kernels that count and list take."""
        first, last = span[0] // 32, -(-span[1] // 32)
        blocks = max(1, -(-(last - first) // BLOCK))
        counts = self.buffer("counts", blocks, np.int64)
        return blocks, (words, np.int64(first), np.int64(span[0]), np.int64(span[1]), counts)

    def copy_marks(self, words: Any, span: Span, found: Any) -> None:
        """Found = words without marks outside the span."""
        exchange.copy_marks(blocks_for(len(found)), words, np.int64(span[0]), np.int64(span[1]), found)

    def move_marks(self, words: Any, target: Any) -> None:
        """Set in target what is set in words, and unset it there."""
        exchange.move_marks(blocks_for(len(words)), words, target)

    def reset(self, ids: Any, target: Any, identity: Any) -> None:
        """Set the listed entries of target to the identity."""
        if len(ids):
            exchange.reset_listed(blocks_for(len(ids)), ids, target, target.dtype.type(identity))

    def merge(self, ids: Any, values: Any, target: Any, words: Any, *, instead: bool) -> None:
        """Merge values into target where ids say, none twice, or put them there instead; and mark the ids."""
        if len(ids):
            merge = exchange.make_merge_listed(None if instead else self._combiner)
            merge(blocks_for(len(ids)), ids, values, target, words)

    def combine(self, found: Any, ours: Any, combiner: str | None = None) -> None:
        """Ours = the slices of all ranks, one after another in `found`, combined in their order."""
        if len(ours):
            combine = exchange.make_combine_slices(combiner or self._combiner)
            combine(blocks_for(len(ours)), found, ours)

    def settle(self, found: Any, rank: int, ours: Any, marks: Any, pending: Any, first: int) -> None:
        """As `combine`; and mark as pending who is marked, or is not what this rank has found alone."""
        if len(ours):
            settle = exchange.make_settle_slices(self._combiner)
            mine = np.int64(rank * len(ours))
            settle(blocks_for(len(ours)), found, mine, ours, marks, pending, np.int64(first))

    def buffer(self, name: str, count: int, dtype: Any) -> Any:
        """Scratch of the device, kept from call to call, not filled."""
        known = self._buffers.get(name)
        if known is None or len(known) < count or known.dtype != dtype:
            if known is not None:
                self._device.free(self._buffers.pop(name))
            known = self._buffers[name] = self._device.array(max(1, count), dtype)
        return known[:count]
