"""The names of all vertices until they are written: in the order of their bytes, or of new ids (`--order`).

Names that are to come in another order take one more pass through the store: every piece of them is sorted by new id
and kept again, and then blocks of new ids, as large as the memory given, are gathered from all pieces.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.convert.renumber.name_table import NAME_BYTES, SpilledNames, joined, spilled
from penstock.storage.convert.sort.seen_ids import OccurringIds
from penstock.storage.convert.sort.spill_room import ArrayStore
from penstock.storage.encoding.string_array import StringArray

STEP = 1 << 16
"""Names whose lengths are added up at a time."""


@dataclass(frozen=True, slots=True)
class _SortedPiece:
    """Names in the order of their new ids, in a store; block k has names ``bounds[k]`` to ``bounds[k + 1]``, whose text
    begins and ends at ``text_bounds``."""

    names: SpilledNames
    bounds: NDArray[np.int64]
    text_bounds: NDArray[np.int64]

    def block(self, number: int) -> tuple[StringArray, NDArray[Any]]:
        """The names of one block, with their new ids."""
        first, last = (int(bound) for bound in self.bounds[number : number + 2])
        text = self.names.text(*(int(bound) for bound in self.text_bounds[number : number + 2]))
        return StringArray(text, np.cumsum(self.names.lengths(first, last))), self.names.numbers(first, last)


def _sorted_piece(
    store: ArrayStore, piece: SpilledNames, new_ids: NDArray[Any], blocks: NDArray[np.int64]
) -> _SortedPiece:
    """Keep the names of a piece again, in the order of their new ids."""
    order = np.argsort(new_ids)
    names, ids = piece.names().taken(order), new_ids[order]
    bounds = np.searchsorted(ids, blocks)
    ends = np.concatenate([np.zeros(1, np.int64), names.ends])
    return _SortedPiece(spilled(store, names, ids), bounds, ends[bounds])


class NameStore:
    """The names of all vertices, piece by piece; ``new_ids``, if set, are their vertices by order of bytes.

    ``block_bytes``: about so much text is in memory while they are brought in another order.
    """

    def __init__(self, store: ArrayStore, *, sides: bool, block_bytes: int) -> None:
        self._store, self._sides, self._block_bytes = store, sides, block_bytes
        self._pieces: list[SpilledNames] = []
        self.new_ids: NDArray[Any] | None = None

    def add(self, names: StringArray) -> None:
        """Keep the next names."""
        self._pieces.append(spilled(self._store, names))

    def pieces(self) -> Iterator[StringArray]:
        """Yield the names of the vertices from 0 on. Raises as `ArrayStore.keep` and `ArrayStore.read`."""
        if self.new_ids is None:
            yield from map(self._names, self._pieces)
            return
        bounds = self._blocks(self.new_ids)
        parts, first = [], 0
        for piece in self._pieces:
            parts.append(_sorted_piece(self._store, piece, self.new_ids[first : first + piece.count], bounds))
            first += piece.count
            piece.forget()
        for number in range(len(bounds) - 1):
            found = [part.block(number) for part in parts]
            order = np.argsort(np.concatenate([ids for _, ids in found]))
            yield joined([names for names, _ in found]).taken(order)

    def _blocks(self, new_ids: NDArray[Any]) -> NDArray[np.int64]:
        """Bounds of blocks of new ids, each of about ``block_bytes``."""
        lengths = np.empty(len(new_ids), np.uint16)
        first = 0
        for piece in self._pieces:
            lengths[new_ids[first : first + piece.count]] = piece.lengths(0, piece.count) - 1
            first += piece.count
        bounds, held, block = [np.zeros(1, np.int64)], 0, 0
        for first in range(0, len(lengths), STEP):
            ends = held + np.cumsum(lengths[first : first + STEP] + np.int64(NAME_BYTES))
            blocks = ends // self._block_bytes
            bounds.append(first + np.flatnonzero(np.diff(blocks, prepend=block)))
            held, block = int(ends[-1]), int(blocks[-1])
        return np.unique(np.concatenate([*bounds, [len(lengths)]]))

    def _names(self, piece: SpilledNames) -> StringArray:
        names = piece.names()
        if not self._sides:
            return names
        keep = np.ones(len(names.text), bool)
        keep[names.ends - names.lengths] = False
        return StringArray(names.text[keep], names.ends - np.arange(1, len(names) + 1))


Original = NDArray[Any] | OccurringIds | NameStore | None
"""The ids that vertices had, by vertex: numbers, strings, or None where they are the same."""


def pieces_of(original: Original) -> Iterable[NDArray[Any] | StringArray]:
    """Original ids in the order of their vertices, some at a time."""
    if original is None or isinstance(original, np.ndarray):
        return () if original is None else (original,)
    return original.pieces()
