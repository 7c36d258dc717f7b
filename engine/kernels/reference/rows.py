"""The definition of right for programs on whole rows: messages kept apart, corners of triangles, vectors.

The same methods as `host/whole_rows/launch_rows.py`, in plain Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock.engine.kernels.reference.vertex import ReferenceKernels, row
from penstock.engine.state.row_blocks import offsets

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.state.oriented_rows import OrientedRows
    from penstock.engine.state.row_blocks import RowBlock
    from penstock.engine.state.state import Frontier, State
    from penstock.storage.format.index import Index
    from penstock.transfer.values.view import View


class ReferenceRowKernels(ReferenceKernels):
    """The kernels of one program on whole rows, in plain Python."""

    def collect(
        self, view: View, state: State, block: RowBlock, walk: int, out: Index, scalars: tuple[Any, ...],
        buffer: NDArray[Any],
    ) -> None:  # fmt: skip
        """Put the messages of the view's edges that belong to the block's rows where they belong in the buffer."""
        for place, e, v in self._places(view, block, walk):
            if not self.author.calls["chosen"](state.arrays, v, state.first):
                continue
            u = int(view.neighbors[e - view.e0])
            buffer[place] = self._value(view, e, (u, v), out, state, scalars, 0)

    def apply_rows(
        self, state: State, following: tuple[Any, ...], block: RowBlock, out: Index, scalars: tuple[Any, ...],
        buffer: NDArray[Any],
    ) -> None:  # fmt: skip
        """Run `vertex` on the rows of the block; new values go to `following`, shares of the Globals to `partial`."""
        calls, base, places = self.author.calls, state.first, offsets(block)
        for v in range(block.first, block.last):
            if not calls["chosen"](state.arrays, v, base):
                continue
            start, end = row(out, v)
            incoming = buffer[places[v - block.first] : places[v - block.first + 1]]
            old = calls["load"](state.arrays, v, base)
            new = calls["vertex"](state.arrays, scalars, incoming, True, v, end - start, base)
            calls["store"](following, v, base, new)
            calls["accumulate"](state.partial, (v - base) >> 12, following, old, scalars, v, end - start, base)

    def copy_rows(self, view: View, block: RowBlock, walk: int, buffer: NDArray[Any]) -> None:
        """Put the neighbors that the view holds of the block's rows where they belong in the buffer."""
        for place, e, _ in self._places(view, block, walk):
            buffer[place] = view.neighbors[e - view.e0]

    def count_neighbors(self, block: RowBlock, buffer: NDArray[Any], neighbors: NDArray[np.int64]) -> None:
        """neighbors[v] = distinct neighbors of the block's rows, the vertices themselves not counted."""
        for v, found in self._sets(block, buffer):
            neighbors[v] = len(found)

    def keep(self, block: RowBlock, buffer: NDArray[Any], neighbors: NDArray[np.int64], kept: OrientedRows) -> None:
        """Append to `kept` the edges that belong to the block's rows."""
        for v, found in self._sets(block, buffer):
            mine = {w: ways for w, ways in sorted(found.items()) if (neighbors[v], v) < (neighbors[w], w)}
            starts, targets, arcs = kept.extend(np.array([len(mine)]))
            targets[starts[0] :] = list(mine)
            arcs[starts[0] :] = list(mine.values())

    def intersect(
        self, ones: OrientedRows, others: OrientedRows, each: int, state: State, scalars: tuple[Any, ...]
    ) -> None:
        """Give the corners of every triangle with its first edge from `ones` to `others` their messages."""
        assert state.incoming is not None
        corner, far = self.author.calls["corner"], dict(_kept(others))
        for v, mine in _kept(ones):
            for w, x in [pair for two in combinations(mine, 2) for pair in (two, two[::-1])]:
                if x in far.get(w, {}):
                    for at, opposite in ((v, far[w][x]), (w, mine[x]), (x, mine[w])):
                        state.incoming[at - state.first] += corner(scalars, opposite * each)

    def count_sides(
        self, ones: OrientedRows, others: OrientedRows, sides: NDArray[np.int32], other_sides: NDArray[np.int32]
    ) -> None:
        """Add 1 to each edge of every triangle with its first edge from `ones` to `others`."""
        for i, j in (two for v in range(len(ones.starts) - 1) for two in permutations(_places(ones, v), 2)):
            w = int(ones.targets[i]) - others.first
            for k in _places(others, w) if 0 <= w < len(others.starts) - 1 else ():
                if others.targets[k] == ones.targets[j]:
                    sides[i] += 1
                    sides[j] += 1
                    other_sides[k] += 1

    def pull(
        self, view: View, state: State, frontier: Frontier, indices: tuple[Index, Index], scalars: tuple[Any, ...],
        skip: int = 0,
    ) -> None:  # fmt: skip
        """Combine the vectors that come along the view's edges; `indices`: of the in-, of the out-adjacency."""
        assert state.incoming is not None
        view, (into, out) = view.narrowed(), indices
        merge, row_of = partial(self.author.calls["merge"], scalars), self._rows(into)
        message = np.zeros(state.incoming.shape[1], dtype=state.incoming.dtype)
        for v in range(view.v0, view.v1):
            (start, end), found = row_of(v), state.incoming[v - state.first]
            for e in range(max(start, view.e0), min(end, view.e1)):
                self._value(view, e, (view.neighbors.item(e - view.e0), v), out, state, scalars, message)
                found[:] = _merged(merge, found, message)

    def _value(
        self, view: View, e: int, ends: tuple[int, int], out: Index, state: State, scalars: tuple[Any, ...], sent: Any
    ) -> Any:
        """The message of `edge` along one edge."""
        start, end = self._rows(out)(ends[0])
        weight = view.weights[e - view.e0].item() if self.author.weighted and view.weights is not None else 1
        return self.author.calls["edge"](state.arrays, scalars, sent, *ends, weight, end - start, state.first)

    def _places(self, view: View, block: RowBlock, walk: int) -> Iterator[tuple[int, int, int]]:
        """(place in the buffer, edge, row) of every edge of the view that belongs to the block."""
        places = offsets(block)
        for v in range(block.first, block.last):
            start, end = row(block.indexes[walk], v)
            at = places[v - block.first + 1] - end if walk else places[v - block.first] - start
            for e in range(max(start, view.e0), min(end, view.e1)):
                yield int(at) + e, e, v

    def _sets(self, block: RowBlock, buffer: NDArray[Any]) -> Iterator[tuple[int, dict[int, int]]]:
        """Every row of the block with its distinct neighbors and how many of the walks led to each."""
        places = offsets(block)
        for v in range(block.first, block.last):
            first, last = places[v - block.first : v - block.first + 2].tolist()
            start, end = row(block.indexes[0], v)
            middle = first + end - start
            found: dict[int, int] = {}
            for part in (buffer[first:middle], buffer[middle:last]):
                for w in set(part.tolist()) - {v}:
                    found[w] = found.get(w, 0) + 1
            yield v, found


def _merged(merge: Callable[[Any, Any], Any], one: NDArray[Any], other: NDArray[Any]) -> Any:
    """Two vectors merged, number by number: all in one call, unless the function needs single numbers."""
    try:
        return merge(one, other)
    except (TypeError, ValueError):  # it compares them, say
        return [merge(*both) for both in zip(one, other, strict=True)]


def _places(rows: OrientedRows, at: int) -> range:
    """Where the edges of a row are."""
    return range(*rows.starts[at : at + 2].tolist())


def _kept(rows: OrientedRows) -> Iterator[tuple[int, dict[int, int]]]:
    for at, (first, last) in enumerate(zip(rows.starts[:-1].tolist(), rows.starts[1:].tolist(), strict=True)):
        yield (
            rows.first + at,
            dict(zip(rows.targets[first:last].tolist(), rows.arcs[first:last].tolist(), strict=True)),
        )
