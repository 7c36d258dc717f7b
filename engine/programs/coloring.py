"""Greedy coloring: neighbors get different colors, each vertex the smallest that the neighbors before it left.

The order is a hash of the original ids; a vertex is colored after the neighbors that precede it, many
at once (Jones and Plassmann, SIAM J. Sci. Comput. 1993). So the result is that of a serial greedy walk in this order,
however it was run. Colors are tried in windows of 63. For each, one phase counts down the neighbors that a vertex has
to wait for, which tells its turn, and one gives colors turn by turn: a vertex that has had its turn tells the neighbors
behind it once, so that every edge is walked a few times, however long the longest wait. A vertex that finds a window
full goes on to the next. Edge direction and self-loops are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.program import LARGEST, VERTEX, Field, Program, Start
from penstock.engine.program.shuffle import SHUFFLE_BYTES, fill_hashes, shuffle
from penstock.engine.program.vertex_ranges import MANY_ROWS, Mask, each_range, is_any, over_ranges, set_where
from penstock.engine.programs.order_batches import BATCH_BYTES, batch_room, bits_of_earlier, next_batch
from penstock.storage.format.graph import Graph

NONE = np.uint32(2**32 - 1)
WINDOW = 63
COLORS = np.uint64(2**63 - 1)
"""The bits of a window's colors; the one above stands for none of them, and is never used up."""
ONE, TOLD = np.uint64(1), np.uint64(2**63)


class Turns(Program):
    """`turn` of those without a color: 0 with none of them before it among its neighbors, else one after the last."""

    turn = Field(VERTEX)
    before = Field(np.int64)
    color = Field(np.uint32, constant=True)
    rank = Field(VERTEX, constant=True)
    combine = "sum"
    message = np.int64
    along = "both"
    by_ranges = True

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """In the first iteration a vertex counts the uncolored neighbors that precede it."""
        color = state["color"]
        without: Any = Mask(lambda first, last: np.asarray(color[first:last] == NONE), graph.vertices)
        everyone = all(over_ranges(lambda first, last: bool(without[first:last].all()), graph.vertices))
        return Start(everything=True) if everyone else Start(active=without)

    def edge(rank, target_rank):  # type: ignore[no-untyped-def]
        """Travels along an edge, either way: one counted (first iteration), one that has had its turn (later)."""
        return 1 if rank < target_rank else 0

    def cond(color):  # type: ignore[no-untyped-def]
        """Only those without a color take part."""
        return color == NONE

    def vertex(turn, before, incoming, is_active, iteration):  # type: ignore[no-untyped-def]
        """How many are still before it; its turn, once they are none."""
        if iteration == 0:
            return 0, incoming
        return (iteration if incoming != 0 else turn), before - incoming

    def active(before, old_before, iteration):  # type: ignore[no-untyped-def]
        """Once, when no uncolored neighbor precedes it."""
        return before == 0 and (iteration == 0 or old_before != 0)


class ColorBits(Program):
    """What tells vertices without a color which of first .. first + 62 neighbors have that are before them.

    used (uint64): bits of these colors.
    """

    used = Field(np.uint64)
    combine = "or"
    along = "both"

    def __init__(self, first: int) -> None:
        self.first = first

    def edge(sent, rank, target_rank):  # type: ignore[no-untyped-def]
        """Travels along an edge, either way: only those behind listen."""
        return sent if rank < target_rank else np.uint64(0)

    def cond(color):  # type: ignore[no-untyped-def]
        """Only those without a color take part."""
        return color == NONE


class ColorWindow(ColorBits):
    """Give colors first .. first + 62 to those without one; a vertex that finds all of them used stays uncolored."""

    color = Field(np.uint32, fill=LARGEST)
    turn = Field(VERTEX, constant=True)
    rank = Field(VERTEX, constant=True)
    by_ranges = True

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Those without a color begin whose turn it is first."""
        color, turn = state["color"], state["turn"]
        turned: Any = Mask(lambda a, b: (color[a:b] == NONE) & (turn[a:b] == 0), graph.vertices)
        return Start(active=turned)

    def send(used):  # type: ignore[no-untyped-def]
        """The smallest free color, which it takes now; the bit above them where there is none."""
        free = ~np.uint64(used)
        return free & ~(free - ONE)

    def vertex(used, color, incoming, is_active, first):  # type: ignore[no-untyped-def]
        """Colors seen; the smallest free one of the window, at its turn."""
        chosen = 0
        while is_active and (np.uint64(used) >> np.uint64(chosen)) & ONE != 0:
            chosen += 1
        taken = np.uint32(first + chosen) if is_active and chosen < WINDOW else color
        return np.uint64(used) | (np.uint64(incoming) & COLORS), taken

    def active(turn, iteration):  # type: ignore[no-untyped-def]
        """A vertex whose turn is next has received a message: one of those before it was colored in the last turn."""
        return turn == iteration + 1


class Coloring(Program):
    """`color` (uint32), from 0."""

    color = Field(np.uint32, fill=LARGEST)
    turn = Field(VERTEX, output=False)
    rank = Field(VERTEX, output=False)
    working_bytes = SHUFFLE_BYTES
    by_ranges = True
    turns: ClassVar[type[Program]] = Turns
    colors: ClassVar[type[ColorWindow]] = ColorWindow

    def lighter(self, graph: Graph) -> Program | None:
        """By hashes, whose vertices may be in a file without an order of all in memory."""
        return ColoringByHashes()

    def may_run(self, graph: Graph) -> Iterable[Program]:
        """Turns, and a window of colors."""
        return (self.turns(), self.colors(0)) if graph.vertices else ()

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """Compute turns, then colors, window by window until every vertex has a color."""
        self.fill_ranks(graph, state["rank"])
        number = first
        while number == first > 0 or number % 2 == 1 or is_any(state["color"], NONE):
            yield self.colors(number // 2 * WINDOW) if number % 2 else self.turns()
            number += 1

    def fill_ranks(self, graph: Graph, out: NDArray[Any]) -> None:
        """Set `out` to what is smaller of a vertex that comes before another one."""
        shuffle(graph, out)

    def phase_name(self, graph: Graph, number: int) -> str:
        """``turns, window 3``."""
        return f"{('turns', 'colors')[number % 2]}, window {number // 2 + 1:,}"


class ColorsTold(ColorBits):
    """One iteration in which vertices with a new color, of first .. first + 62, tell it those without one behind them.

    used: TOLD once a vertex has told its own.
    """

    color = Field(np.uint32, fill=LARGEST, constant=True)
    rank = Field(np.uint64, constant=True)
    max_iter = 1
    by_ranges = True

    def start(self, graph: Graph, state: dict[str, NDArray[Any]]) -> Start:
        """Those begin that have told no color yet."""
        color, used = state["color"], state["used"]
        new: Any = Mask(lambda a, b: (color[a:b] != NONE) & (used[a:b] < TOLD), graph.vertices)
        return Start(active=new)

    def send(color, first):  # type: ignore[no-untyped-def]
        """Its color's bit."""
        return ONE << np.uint64(color - first)

    def vertex(used, incoming, is_active):  # type: ignore[no-untyped-def]
        """Colors seen."""
        return np.uint64(used) | (TOLD if is_active else np.uint64(incoming))


class ColoringByHashes(Program):
    """The same in batches of the order, which hashes are: a few passes over edges, however long the longest wait."""

    color = Field(np.uint32, fill=LARGEST)
    used = Field(np.uint64, output=False)
    rank = Field(np.uint64, output=False)
    working_bytes = BATCH_BYTES
    by_ranges = True
    in_pages = True

    def may_run(self, graph: Graph) -> Iterable[Program]:
        """What tells colors."""
        return (ColorsTold(0),) if graph.vertices else ()

    def phases(self, graph: Graph, state: dict[str, NDArray[Any]], first: int = 0) -> Iterator[Program]:
        """Color batch by batch, until every vertex has a color, and let each batch tell the rest its colors."""
        color = state["color"]
        fill_hashes(graph, state["rank"])
        colors = max(over_ranges(lambda a, b: _number_of_colors(color[a:b]), graph.vertices), default=0)
        window, goes_on = max(0, colors - 1) // WINDOW, colors > 0  # and the batch of this phase has its colors
        while goes_on or is_any(color, NONE):
            window = window if goes_on else _color_batch(graph, state, window)
            if goes_on or is_any(color, NONE):
                yield ColorsTold(window * WINDOW)
            goes_on = False

    def phase_name(self, graph: Graph, number: int) -> str:
        """``batch 3``."""
        return f"batch {number + 1:,}"


def _number_of_colors(color: NDArray[np.uint32]) -> int:
    """One more than the largest color."""
    return int((color + np.uint32(1)).max(initial=0))


def _color_batch(graph: Graph, state: dict[str, NDArray[Any]], window: int) -> int:
    """Give the next batch that may have a color of a window its colors, or of the next window; return which."""
    color, used, rank = state["color"], state["used"], state["rank"]

    def left(a: int, b: int) -> NDArray[np.bool_]:
        return np.asarray((color[a:b] == NONE) & (used[a:b] != COLORS))

    if not any(over_ranges(lambda a, b: bool(left(a, b).any()), graph.vertices, size=MANY_ROWS)):
        set_where(used, lambda a, b: color[a:b] == NONE, 0)
        return _color_batch(graph, state, window + 1)
    with batch_room(used) as room:
        chosen, ends = next_batch(graph, rank, left, room)
        vertices, bits = bits_of_earlier(rank, ends, used)

        def give(a: int, b: int) -> None:
            seen, colors = used[a:b].copy(), color[a:b].copy()
            i, j = np.searchsorted(vertices, [a, b])
            seen[vertices[i:j] - a] = bits[i:j]
            lowest = ~seen & (seen + ONE)
            new = chosen.mask(a, b) & (lowest != TOLD)
            colors[new] = window * WINDOW + np.bitwise_count(lowest[new] - ONE)
            used[a:b], color[a:b] = seen, colors

        each_range(give, graph.vertices)
    return window
