"""Searches from up to 64 sources at once: one sweep over the edges is a step of all of them.

Then et al., "The More the Merrier: Efficient Multi-Source Graph Traversal", VLDB 2014 (MS-BFS): a vertex has a bit for
every search, and sends those that came in the last step. A pull leaves a row once every bit that is missing has come.
Levels are stored by their digits: word j of a vertex has bit j of the level of every search, so that a level takes a
byte while searches run. They count hops; searches by weights run one after another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.program import Field, Program, Start, fields_of, like
from penstock.engine.program.program_description import class_maker, variant
from penstock.engine.program.vertex_ranges import over_ranges

if TYPE_CHECKING:
    from penstock.storage.format.graph import Graph

State = dict[str, NDArray[Any]]

TOGETHER = 64
"""Most searches that run together: the bits of a message."""
FEWEST = 8
"""Fewest searches that run together: so many alone take as long, where edges are in memory (R-MAT 20: 8 to 12)."""
DEEPEST = 255
"""Largest level that eight digits hold. Graphs with larger ones, for instance roads, are searched one by one."""
ENDING = 2
"""Iterations after that of the last level: one in which nothing comes, and one that finds nothing active."""
SPARSE = 8
"""Mean degree below which paths may be long: roads and grids have 2 to 4. There the first source is searched alone."""
LONG = 64
"""Levels of the first search from which on all run alone: 64 searches need not meet (a grid: 4 times slower)."""
BLOCK = 1 << 12
"""Vertices whose levels are put together at once: some 256 KiB."""

_NONE, _ONE, _TWO, _FOUR = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(4)
_8, _16, _32 = np.uint64(8), np.uint64(16), np.uint64(32)
_PAIRS, _NIBBLES = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
_BYTES, _COUNT = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x7F)


class SharedSearch(Program):
    """What all have in common: which searches have not come to a vertex (`left`), which came last (`fresh`).

    sources: internal ids, of search 0, 1 and so on.
    """

    left = Field(np.uint64, output=False)
    fresh = Field(np.uint64, output=False)
    combine = "or"
    starts_anywhere = True

    def __init__(self, sources: Sequence[int]) -> None:
        self.sources = [int(one) for one in sources]

    def start(self, graph: Graph, state: State) -> Start:
        """Every search has come to its source. Of one whose source has no edges nothing is waited for."""
        ids, places = np.unique(self.sources, return_inverse=True)
        own = np.zeros(len(ids), state["left"].dtype)
        np.bitwise_or.at(own, places, own.dtype.type(1) << np.arange(len(places), dtype=own.dtype))
        degrees = graph.degree_index(self.along)
        leave = np.full(len(ids), True) if degrees is None else degrees.lengths_of(ids) > 0
        missing = np.bitwise_or.reduce(own[leave], initial=own.dtype.type(0))
        state["left"][:] = missing
        state["left"][ids] = missing & ~own
        state["fresh"][ids] = own
        return Start(active=ids)

    def edge(fresh):  # type: ignore[no-untyped-def]
        """Travels along an edge: the searches that came last."""
        return fresh

    def cond(left):  # type: ignore[no-untyped-def]
        """Only vertices to which a search has not come take part."""
        return left != _NONE

    def suffices(incoming, left):  # type: ignore[no-untyped-def]
        """Whether every search has come."""
        return incoming & left == left

    def active(fresh):  # type: ignore[no-untyped-def]
        """Who passes on what came."""
        return fresh != _NONE


class SharedLevels(SharedSearch):
    """Levels of every vertex in every search, up to DEEPEST; `levels` has them after the run.

    last: the largest level that is wanted.
    """

    digit_0 = Field(np.uint64, output=False)
    digit_1 = Field(np.uint64, output=False)
    digit_2 = Field(np.uint64, output=False)
    digit_3 = Field(np.uint64, output=False)
    digit_4 = Field(np.uint64, output=False)
    digit_5 = Field(np.uint64, output=False)
    digit_6 = Field(np.uint64, output=False)
    digit_7 = Field(np.uint64, output=False)
    by_ranges = True

    def __init__(self, sources: Sequence[int], last: float | None = None) -> None:
        super().__init__(sources)
        self.max_iter = DEEPEST + ENDING if last is None or last >= DEEPEST else int(last)

    def vertex(  # type: ignore[no-untyped-def]
        left, digit_0, digit_1, digit_2, digit_3, digit_4, digit_5, digit_6, digit_7, incoming, iteration
    ):
        """The searches that are new here, and their level."""
        new, level = incoming & left, iteration + 1
        return (
            left ^ new,
            new,
            digit_0 | (new if level & 1 else _NONE),
            digit_1 | (new if level & 2 else _NONE),
            digit_2 | (new if level & 4 else _NONE),
            digit_3 | (new if level & 8 else _NONE),
            digit_4 | (new if level & 16 else _NONE),
            digit_5 | (new if level & 32 else _NONE),
            digit_6 | (new if level & 64 else _NONE),
            digit_7 | (new if level & 128 else _NONE),
        )

    def finish(self, graph: Graph, state: State) -> State:
        """Keep the digits for `levels`."""
        self._digits = [state[f"digit_{place}"] for place in range(8)]
        return super().finish(graph, state)

    @property
    def too_deep(self) -> bool:
        """Whether there are vertices beyond the deepest level that can be counted."""
        return self.max_iter > DEEPEST and not self.converged

    def levels(self, first: int, last: int) -> Iterator[tuple[int, int, NDArray[np.uint8]]]:
        """Yield levels, shape (b - a, searches), of blocks [a, b) of a range; 0: not reached, or the source."""
        for a in range(first, last, BLOCK):
            b = min(a + BLOCK, last)
            found = numbers_of([digit[a:b] for digit in self._digits])
            yield a, b, found[:, : len(self.sources)]

    def forget(self) -> None:
        """Give the digits back."""
        self._digits = []


class SharedSums(SharedSearch):
    """Adds to every vertex what its distances count: `total`, of the squares (`squares`), and how many (`reached`).

    inverse: a distance counts as its inverse.
    """

    total = Field(np.float64, output=False)
    squares = Field(np.float64, output=False)
    reached = Field(np.uint32, output=False)

    def __init__(self, sources: Sequence[int], inverse: bool) -> None:
        super().__init__(sources)
        self.inverse = inverse

    def vertex(left, total, squares, reached, incoming, iteration, inverse):  # type: ignore[no-untyped-def]
        """The searches that are new here, counted by the population count of their bits (Warren, Hacker's Delight)."""
        new = incoming & left
        bits = new - ((new >> _ONE) & _PAIRS)
        bits = (bits & _NIBBLES) + ((bits >> _TWO) & _NIBBLES)
        bits = (bits + (bits >> _FOUR)) & _BYTES
        bits += bits >> _8
        bits += bits >> _16
        bits += bits >> _32
        came, step = float(bits & _COUNT), float(iteration + 1)
        counts = 1.0 / step if inverse else step
        return left ^ new, new, total + came * counts, squares + came * counts * counts, reached + int(came)


class Together:
    """What a program has that searches from many sources, `together` at a time; comes before `Program`.

    tries: 1 where the first source is searched alone, to see how far it is. apart: (phase, number of a source): from
    that phase on searches run one after another, from that source on.
    """

    together: ClassVar[int] = TOGETHER
    tries: int = 0
    apart: tuple[int, int] | None = None

    def look_at(self, graph: Graph) -> None:
        """Decide whether the first search is alone: where paths may be long. Called by `form`."""
        self.tries = int(graph.out.edges < SPARSE * graph.vertices)

    def note_levels(self, number: int, levels: NDArray[Any]) -> None:
        """After a search alone: where the first one took many levels, all run one after another."""
        if self.tries and number == 0 and self.apart is None:

            def largest(first: int, last: int) -> int:
                part = levels[first:last]
                return int(part.max(initial=0, where=part != np.iinfo(part.dtype).max))

            if max(over_ranges(largest, len(levels)), default=0) >= LONG:
                self.apart = 1, 1

    def turns(self, count: int, first: int = 0) -> Iterator[tuple[int, int, int]]:
        """Yield phases, from number `first` on: (number, a, b) searches from the sources [a, b), of one source alone.

        `apart` may be set between two of them.
        """
        while first < self.turn_count(count):
            yield first, *self.turn(first, count)
            first += 1

    def shares(self, count: int) -> bool:
        """Whether some of so many searches run together, if paths are not long."""
        return self.together > 1 and count - self.tries >= FEWEST

    def turn_count(self, count: int) -> int:
        """How many phases so many sources take."""
        if self.apart is not None:
            return self.apart[0] + count - self.apart[1]
        if not self.shares(count):
            return count
        rest = (count - self.tries) % self.together
        return self.tries + (count - self.tries) // self.together + (1 if rest >= FEWEST else rest)

    def turn(self, number: int, count: int) -> tuple[int, int]:
        """The numbers [a, b) of the sources of one phase."""
        if self.apart is not None and number >= self.apart[0]:
            at = self.apart[1] + number - self.apart[0]
            return at, at + 1
        if not self.shares(count) or number < self.tries:
            return number, number + 1
        before, whole = number - self.tries, (count - self.tries) // self.together
        at = self.tries + min(before, whole) * self.together
        if before < whole or count - at >= FEWEST:
            return at, min(at + self.together, count)
        return at + before - whole, at + before - whole + 1

    def turn_name(self, number: int, count: int) -> str:
        """Return a name for a phase: ``source 3 of 64``, ``sources 1 to 64 of 128``."""
        first, last = self.turn(number, count)
        if last - first == 1:
            return f"source {last:,} of {count:,}"
        return f"sources {first + 1:,} to {last:,} of {count:,}"

    def lighter(self, graph: Graph) -> Program | None:
        """The same with fewer searches together, whose bits take less memory; None where they run one by one."""
        if self.together == 1:
            return None
        ours: Any = self  # which comes before `Program` among the bases
        made: Program = like(ours, variant(type(ours), together=32 if self.together > 32 else 1))
        return made


def shared(kind: Any, together: int, along: str = "out") -> Any:
    """The class of such searches for so many sources at most, whose messages go so."""
    return _shared(kind, 8 if together > 32 else 4, along)


@class_maker
def _shared(kind: Any, size: int, along: str) -> Any:
    """A search whose bits take so many bytes."""
    bits = np.dtype(f"u{size}")
    fields = {name: Field(bits, output=False) for name, field in _bits_of(kind)}
    return type(kind.__name__, (kind,), {"__doc__": kind.__doc__, "__module__": __name__, "along": along, **fields})


def _bits_of(kind: type[Program]) -> list[tuple[str, Field]]:
    """Its fields with a bit for each search."""
    return [(name, field) for name, field in fields_of(kind).items() if field.dtype is np.uint64]


def numbers_of(digits: Sequence[NDArray[Any]]) -> NDArray[np.uint8]:
    """Numbers from their eight binary digits, the lowest first.

    Parameters
    ----------
    digits : sequence of ndarray of uint32 or uint64, shape (n,)
        Bit k of each has the digits of number k.

    Returns
    -------
    ndarray of uint8, shape (n, 32) or (n, 64)
        Number k of each. Eight by eight bits are transposed in a word (Warren, Hacker's Delight, 7-3).
    """
    width = digits[0].dtype.itemsize
    words = np.stack(digits, axis=1).astype(f"<u{width}", copy=False).view(np.uint8).reshape(-1, 8, width)
    found = np.ascontiguousarray(words.transpose(0, 2, 1)).view("<u8")
    for shift, mask in ((7, 0x00AA00AA00AA00AA), (14, 0x0000CCCC0000CCCC), (28, 0x00000000F0F0F0F0)):
        swapped = (found ^ (found >> np.uint64(shift))) & np.uint64(mask)
        found ^= swapped ^ (swapped << np.uint64(shift))
    return found.view(np.uint8).reshape(-1, 8 * width)
