"""Merging the states of ranks on devices, as `rank_exchange.py` does those in host memory.

The same forms, chosen by the same numbers and exchanged in the same order, so that ranks of both kinds can be in one
run. Marks and messages stay on the device, and how many there are comes to the host. Few messages come with that
number, in memory that kernels write and read in place, and go by way of the hosts.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.ranks.communicator import gather_few, starts_of
from penstock.engine.ranks.rank_exchange import Ints, form_of, room_for_few, takes_ids

if TYPE_CHECKING:
    from penstock.engine.kernels.cuda.launch_exchange import CudaExchangeKernels
    from penstock.engine.ranks.communicator import ArrayRanks, Communicator
    from penstock.engine.state.device_state import DeviceState


class DeviceExchange:
    """Between this rank's state on a device and those of the others, which hold the same vertices.

    ranks: for counts, which are the host's. devices: for arrays.
    """

    def __init__(
        self, state: DeviceState, kernels: CudaExchangeKernels, ranks: Communicator, devices: ArrayRanks
    ) -> None:
        self.state, self.kernels, self.ranks, self.devices = state, kernels, ranks, devices

    def share_messages(self, everything: bool, bounds: Ints | None = None) -> None:
        """Give all ranks the same accumulators and marks; see `RankExchange`."""
        state, rank = self.state, self.ranks.rank
        if everything:
            self._share_values(bounds)
            return
        own = (0, state.last) if bounds is None else (int(bounds[rank]), int(bounds[rank + 1]))
        few = room_for_few(state.last)
        ours = self.kernels.shared_lists("ours", few, state.vertices.dtype, state.target.dtype)
        count = self.kernels.count(state.touched.words, own, state.target, ours)
        found = self.kernels.shared_lists("found", few, ours.ids.dtype, ours.values.dtype)
        some = count if count <= few else 0
        counts = gather_few(self.ranks, count, (ours.ids[:some], ours.values[:some]), (found.ids, found.values))
        form = form_of(int(counts.sum()), state.last, pulled=bounds is not None)
        if form == "few":
            self._merge(found.ids_here, found.values_here, starts_of(counts).tolist(), bounds)
        elif form == "dense":
            self._share_values(bounds)
            self._combine_slices(state.touched.words, "or")
        elif form == "listed":
            self._share_listed(own, counts, bounds)
        if state.incoming is None and state.touched is not state.pending:
            self.kernels.move_marks(state.touched.words, state.pending.words)

    def begin_settling(self) -> None:
        """Let a walk of unsettled rows take, and give back, the marks of all pending vertices."""
        self.kernels.move_marks(self.state.pending.words, self.state.touched.words)

    def share_settled(self, bounds: Ints) -> None:
        """Give all ranks the same values and pending vertices after a walk of unsettled rows.

        Who has sent what it has along its row is pending no more, says the rank that owns the row; unless another rank
        has found a better value for it.
        """
        state, rank, size = self.state, self.ranks.rank, self.ranks.size
        first, last = int(bounds[rank]), int(bounds[rank + 1])
        target, ours = state.target, state.target[first:last]
        found = self.kernels.buffer("slices", size * len(ours), target.dtype)
        self.devices.exchange_slices(target, bounds, found.reshape(size, len(ours)))
        self.kernels.settle(found, rank, ours, state.touched.words, state.pending.words, first)
        self.devices.gather_slices(target, bounds)
        self._combine_slices(state.pending.words, "or")
        state.touched.clear()

    def _share_values(self, bounds: Ints | None) -> None:
        if bounds is None:
            self._combine_slices(self.state.target, None)
        else:
            self.devices.gather_slices(self.state.target, bounds)

    def _share_listed(self, own: tuple[int, int], counts: Ints, bounds: Ints | None) -> None:
        """Exchange messages with their ids, or with a bitmap in their place."""
        state, kernels, rank = self.state, self.kernels, self.ranks.rank
        at = starts_of(counts)
        target, starts = state.target, at.tolist()
        ids = kernels.buffer("ids", starts[-1], state.vertices.dtype)
        values = kernels.buffer("values", starts[-1], target.dtype)
        mine = slice(starts[rank], starts[rank + 1])
        kernels.listed(state.touched.words, own, int(counts[rank]), target, ids[mine], values[mine])
        self.devices.gather_slices(values, at)
        if takes_ids(starts[-1], state.last):
            self.devices.gather_slices(ids, at)
        else:
            self._list_marked(own, ids, starts)
        self._merge(ids, values, starts, bounds)

    def _merge(self, ids: Any, values: Any, starts: list[int], bounds: Ints | None) -> None:
        """Merge what all ranks have listed; rank r has items starts[r] to starts[r + 1] - 1 of ids and values."""
        state, kernels, rank = self.state, self.kernels, self.ranks.rank
        target, words = state.target, state.touched.words
        if bounds is not None:  # no vertex is two ranks', and this one's values are there
            kernels.merge(ids, values, (0, starts[-1]), target, words, instead=True)
            return
        merged = state.incoming is not None
        if merged:  # from nothing on, in the order of ranks: the same bits everywhere
            kernels.reset(ids, (starts[rank], starts[rank + 1]), target, state.identity)
        for other, part in enumerate(pairwise(starts)):
            if other != rank or merged:
                kernels.merge(ids, values, part, target, words, instead=False)

    def _list_marked(self, own: tuple[int, int], ids: Any, starts: list[int]) -> None:
        """List in `ids` what all ranks have marked, by their bitmaps."""
        words, size = self.state.touched.words, self.ranks.size
        found = self.kernels.buffer("bitmaps", size * len(words), words.dtype)
        bitmaps = [found[rank * len(words) : (rank + 1) * len(words)] for rank in range(size)]
        self.kernels.copy_marks(words, own, bitmaps[self.ranks.rank])
        self.devices.gather_slices(found, len(words) * np.arange(size + 1))
        for rank, bitmap in enumerate(bitmaps):
            if rank != self.ranks.rank:
                self.kernels.enumerated(bitmap, (0, self.state.last), ids[starts[rank] : starts[rank + 1]])

    def _combine_slices(self, whole: Any, combiner: str | None) -> None:
        """Combine one array per rank: each rank a slice of it, in the order of ranks; all get the result."""
        size, rank = self.ranks.size, self.ranks.rank
        bounds = np.linspace(0, len(whole), size + 1).astype(np.int64)
        ours = whole[int(bounds[rank]) : int(bounds[rank + 1])]
        found = self.kernels.buffer("slices", size * len(ours), whole.dtype)
        self.devices.exchange_slices(whole, bounds, found.reshape(size, len(ours)))
        self.kernels.combine(found, ours, combiner)
        self.devices.gather_slices(whole, bounds)
