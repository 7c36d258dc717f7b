"""Merging the results of several devices after each iteration.

Every device has its own State of all vertices and walks its own share of the edges. After an exchange all states hold
the same accumulators and the same marks, so that all of them take the same next step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from penstock.engine.program.combiners import COMBINERS
from penstock.engine.state.state import SPAN, Bitmap, State

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Exchange(Protocol):
    """What a run asks after each walk; a collective between GPUs or machines implements the same."""

    def share_messages(self, everything: bool, bounds: NDArray[np.int64] | None = None) -> None:
        """Combine accumulators and marks over all states; everything: of every vertex, not only of touched ones.

        bounds: of a pull of several ranks, the vertices that each of them owns.
        """


class HostExchange:
    """Between the states of one run, all in the memory of this process."""

    def __init__(self, states: Sequence[State], combiner: str) -> None:
        self.states = states
        self.combiner = combiner

    def share_messages(self, everything: bool, bounds: NDArray[np.int64] | None = None) -> None:
        """Combine accumulators and marks over all states, where any of them was touched (or everywhere)."""
        if len(self.states) == 1:
            return
        touched = [state.touched for state in self.states]
        spans = np.arange(len(touched[0].summary)) if everything else self._dirty(touched)
        self.combine([state.target for state in self.states], spans)
        self.unite([state.touched for state in self.states], spans)

    def combine(self, arrays: Sequence[NDArray[Any]], spans: NDArray[np.intp]) -> None:
        """Combine one array per state over the dirty spans of 4096 vertices; all get the result.

        Only changed entries may differ: where a state did not touch a vertex it holds the identity, or, for a
        self-combining program, the value that all had before.
        """
        merge = COMBINERS[self.combiner].ufunc
        for span in spans:
            window = slice(int(span) * SPAN, (int(span) + 1) * SPAN)
            total = arrays[0][window]
            for other in arrays[1:]:
                merge(total, other[window], out=total)
            for other in arrays[1:]:
                other[window] = total

    def unite(self, bitmaps: Sequence[Bitmap], spans: NDArray[np.intp]) -> None:
        """Set in every bitmap what is set in any."""
        for span in spans:
            words = slice(int(span) * 64, (int(span) + 1) * 64)
            for bitmap in bitmaps[1:]:
                bitmaps[0].words[words] |= bitmap.words[words]
                bitmaps[0].summary[span] |= bitmap.summary[span]
            for bitmap in bitmaps[1:]:
                bitmap.words[words] = bitmaps[0].words[words]
                bitmap.summary[span] = bitmaps[0].summary[span]

    @staticmethod
    def _dirty(bitmaps: Sequence[Bitmap]) -> NDArray[np.intp]:
        found = bitmaps[0].summary.copy()
        for bitmap in bitmaps[1:]:
            found |= bitmap.summary
        return np.flatnonzero(found)
