"""What was added to the stored edges of an adjacency and removed from them (`penstock append`, `remove`), by place.

Edges stay in their file as they were. Each added edge has the number of the stored edge that it comes before, and
removed are numbers of stored edges, so rows need not be known where chunks are decoded: a stored edge moves on by the
added edges up to it, less the removed ones before it. `pieces` turns wanted chunks into the stored chunks whose decoded
edges belong there; each of these is put to its places on its own, in any order, by any thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import DamagedError
from penstock.storage.base.jit import jit
from penstock.storage.encoding.codec import Decoder, checksum
from penstock.storage.format.frames import WAY_OUT, Frames
from penstock.storage.format.schema import (
    ADDED,
    ADDED_AT,
    ADDED_IDS,
    ADDED_TURN,
    ADDED_WEIGHTS,
    NEIGHBORS,
    REMOVED_AT,
    WEIGHTS,
)

NONE, NO_TURNS = np.empty(0, np.int64), np.empty(0, np.uint32)


@jit
def _put(items: Any, first: int, at: Any, added: int, removed: Any, gone: int, out: Any, origin: int) -> None:
    """Put stored edges first.. to their places; added: how many are up to ``first``, gone: removed before it."""
    b, end = first, first + len(items)
    while b < end:
        if gone < len(removed) and removed[gone] == b:
            gone += 1
            b += 1
            continue
        while added < len(at) and at[added] <= b:
            added += 1
        stop = end
        if gone < len(removed) and removed[gone] < stop:
            stop = removed[gone]
        if added < len(at) and at[added] < stop:
            stop = at[added]
        to = b + added - gone - origin
        for i in range(stop - b):
            out[to + i] = items[b - first + i]
        b = stop


@dataclass(frozen=True, slots=True)
class Splice:
    """Edges added to the stored ones of an adjacency, and removed from them.

    Attributes
    ----------
    stored : int
        Stored edges.
    at : ndarray of int64, (added,)
        The stored edge that each added one comes before, ascending; those of one place are in their order.
    neighbors, weights : ndarray, (added,)
        The added edges; weights None without any.
    removed : ndarray of int64
        Stored edges that are removed, ascending.
    turns : ndarray of uint32, (added,)
        The number of the change that added each, among those of the provenance.
    first : int
        The number of the first edge, among all that there are, which is edge 0 of the adjacency (`Adjacency.of_rows`).
    """

    stored: int
    at: NDArray[np.int64]
    neighbors: NDArray[Any]
    weights: NDArray[Any] | None
    removed: NDArray[np.int64]
    turns: NDArray[np.uint32]
    first: int = 0
    places: NDArray[np.int64] = field(init=False, repr=False)
    _left: NDArray[np.int64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Note `places`, the number of each added edge among all, and how many stored ones stay before a removed."""
        moved = np.arange(len(self.at)) - np.searchsorted(self.removed, self.at)
        object.__setattr__(self, "places", self.at + moved)
        object.__setattr__(self, "_left", self.removed - np.arange(len(self.removed)))

    @property
    def edges(self) -> int:
        """How many edges there are."""
        return self.stored + len(self.at) - len(self.removed)

    @property
    def nbytes(self) -> int:
        """Bytes of memory held."""
        arrays = (self.at, self.places, self.neighbors, self.weights, self.turns, self.removed, self._left)
        return sum(array.nbytes for array in arrays if array is not None)

    @property
    def digest(self) -> str:
        """16 hexadecimal digits of what it adds and removes."""
        arrays = [array for array in (self.at, self.neighbors, self.weights, self.removed) if array is not None]
        return f"{checksum(b''.join(np.ascontiguousarray(array).tobytes() for array in arrays)):016x}"

    def stored_before(self, edges: NDArray[Any], *, last: bool = False) -> NDArray[np.int64]:
        """Return which stored edge each of these edges, if it is stored, or else the next one is.

        last: one past the stored edge before it, instead; between the two only removed ones are.
        """
        kept = edges - np.searchsorted(self.places, edges)
        return np.asarray(kept + np.searchsorted(self._left, kept, "left" if last else "right"))

    def of_edges(self, first: int) -> Splice:
        """The same, where edge ``first`` is number 0."""
        return replace(self, first=self.first + first)

    def spans(self, first: int, last: int) -> tuple[int, int]:
        """Return the stored edges, first and past the last, among edges first..last-1."""
        low, high = np.array([first, last]) + self.first
        b0, b1 = int(self.stored_before(low)), int(self.stored_before(high, last=True))
        return b0, max(b0, b1)

    def stored_bytes(self, lengths: NDArray[np.int64], size: int, edges: int) -> NDArray[np.int64]:
        """Return about how many bytes are read for each chunk of so many edges; lengths: those of stored chunks."""
        ends = np.minimum(np.arange(-(-edges // size) + 1) * size, edges) + self.first
        begins = np.concatenate([[0], np.cumsum(lengths)])
        stored = np.minimum(self.stored_before(ends), self.stored)
        at: NDArray[np.int64] = np.interp(stored / size, np.arange(len(begins)), begins).astype(np.int64)
        return at[1:] - at[:-1]

    def fill_added(self, first: int, out: NDArray[Any], *, weights: bool) -> None:
        """Put added edges, or their weights, among edges first.. to their places in ``out``."""
        places, values = self.places, self.weights if weights else self.neighbors
        assert values is not None, "the graph has no weights"
        here = slice(*np.searchsorted(places, [first + self.first, first + self.first + len(out)]))
        out[places[here] - first - self.first] = values[here]

    def put(self, first: int, out: NDArray[Any], stored: int, items: NDArray[Any]) -> None:
        """Put stored edges, ``stored`` the number of the first, to their places among edges first.. in ``out``."""
        low, high = self.spans(first, first + len(out))
        low, high = max(low, stored), min(high, stored + len(items))
        if low < high:
            added, gone = np.searchsorted(self.at, low, "right"), np.searchsorted(self.removed, low)
            part = items[low - stored : high - stored]
            _put(part, low, self.at, int(added), self.removed, int(gone), out, first + self.first)

    def pieces(
        self, frames: Frames, chunks: NDArray[np.int64], slab: NDArray[Any], first: int, *, weights: bool
    ) -> Iterator[tuple[int, NDArray[Any], SplicedFill]]:
        """Yield the stored chunks that wanted ones take edges of, the part of the slab, and what fills it.

        Edge e of the adjacency goes to ``slab[e - first]``. Added edges are there when this ends.
        """
        size, edges = frames.spec.chunk_items, self.edges - self.first
        runs = np.split(chunks, np.flatnonzero(np.diff(chunks) > 1) + 1) if len(chunks) else []
        for run in runs:
            e0, e1 = int(run[0]) * size, min((int(run[-1]) + 1) * size, edges)
            out = slab[e0 - first : e1 - first]
            if e0 < first or len(out) < e1 - e0:
                raise ValueError(f"a slab of {len(slab)} edges from edge {first} for edges {e0}..{e1}")
            self.fill_added(e0, out, weights=weights)
            b0, b1 = self.spans(e0, e1)
            for chunk in range(b0 // size, -(-b1 // size) if b0 < b1 else b0 // size):
                yield chunk, out, SplicedFill(self, frames, e0)

    def part(self, frames: Frames, first: int, last: int, *, weights: bool) -> NDArray[Any]:
        """Edges first..last-1, or their weights; only their chunks are read, by the caller's thread. Raises RunError.

        frames: of the stored ones.
        """
        out = np.empty(last - first, frames.kind)
        self.fill_added(first, out, weights=weights)
        b0, b1 = self.spans(first, last)
        self.put(first, out, b0, frames.part(b0, b1))
        return out


@dataclass(frozen=True, slots=True)
class SplicedFill:
    """Fills a part of a slab, which begins with edge ``first``, with the edges of a stored chunk that belong there."""

    splice: Splice
    frames: Frames
    first: int

    def __call__(self, chunk: int, frame: Any, decoder: Decoder, out: NDArray[Any]) -> None:
        """Verify and decode a frame, and put its edges. Raises RunError naming the chunk."""
        items = np.empty(self.frames.spec.chunk_length(chunk), self.frames.kind)
        self.frames.decode(chunk, frame, decoder, items)
        self.splice.put(self.first, out, chunk * self.frames.spec.chunk_items, items)


def splice_of(frames: Mapping[str, Frames], name: str, weighted: bool) -> Splice | None:
    """Return what was added to an adjacency of a file, and removed; None where nothing was. Raises RunError."""
    found = {part: frames.get(f"{name}/{part}") for part in (*ADDED, REMOVED_AT)}
    held = {part: one.whole() for part, one in found.items() if one is not None}
    if not held:
        return None
    stored = frames[f"{name}/{NEIGHBORS}"]
    at, removed = (held.get(part, NONE).astype(np.int64) for part in (ADDED_AT, REMOVED_AT))
    rising = (np.diff(at) >= 0).all() and (np.diff(removed) > 0).all()
    if not (rising and (at <= stored.spec.items).all() and (removed < stored.spec.items).all()):
        raise DamagedError(f"{stored.files[0]} is damaged: places of its added or removed edges do not rise; {WAY_OUT}")
    return Splice(
        stored=stored.spec.items,
        at=at,
        neighbors=held.get(ADDED_IDS, np.empty(0, stored.kind)),
        weights=held.get(ADDED_WEIGHTS, np.empty(0, frames[f"{name}/{WEIGHTS}"].kind)) if weighted else None,
        removed=removed,
        turns=held.get(ADDED_TURN, NO_TURNS),
    )
