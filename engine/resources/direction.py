"""Push or pull, decided per iteration by numbers alone; and which walks over stored edges each of the two takes.

Early-exit programs on a GPU that holds every edge follow Beamer's direction-optimizing rule (SC 2012): pull once
the frontier's edges outnumber 1/15 of the edges not yet explored, push again when the frontier has shrunk below 1/18
of the vertices. That pulls too early on web graphs, whose many rows that are reached late or never are read to their
ends: where edges come over a link the two are weighed in seconds (`direction_cost.py`), on CPU cores by what they read.
Other programs follow the frontier's density as Lux (VLDB 2017) and Garaph (ATC 2017): pull when more than half of the
edges are active: a push pays for atomics, a pull reads every row. Where edges are in the memory of cores and a push
writes only what changes a vertex, it takes half as long for each edge as a pull, which then has to be of nearly all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from penstock.engine.kernels.interface import WaysName, ways_along
from penstock.engine.resources.direction_cost import LinkCosts, Progress, least_pull_seconds, pull_seconds, push_seconds
from penstock.engine.state.state import Frontier
from penstock.transfer.values.task import Direction as AdjacencyDirection

Direction = Literal["push", "pull"]

ALPHA = 15
BETA = 18
DENSE_SHARE = 1 / 2
ROW_COST = 4.0  # in edges pushed: a pull's visit to a row, wherever it is (measured: 15-20 ns against 3.5 an edge)
PROBE_COST = 0.25  # an edge that a pull reads before it finds an active one
LINKED_DENSE_SHARE = 0.9  # over a link a pull brings every row, a push only active ones
SELECTIVE_DENSE_SHARE = 0.9  # where pushes write little: 7 ns an edge, a pull 6 ns of every edge
SUFFICED_DENSE_SHARE = 1 / 8  # of programs with `suffices`, on cores: 15-25 ns an edge pulled, 50-70 pushed
KEPT_COST = 0.25  # an item of the rows that a pull kept
FEWEST = 1 << 14  # edges of a frontier that is pulled along kept rows in memory: smaller ones are pushed, fused
LOOKS = 64  # a push of fewer edges than 1 / 64 of the vertices takes less than a pull's look at each of them


@dataclass(frozen=True, slots=True)
class Situation:
    """What the rule looks at; edges are counted in the out-adjacency.

    unvisited: vertices that no frontier before this one held. on_cores: kernels read edges where the host has them.
    linked: some edges come over a link; link: its costs, needed where `weighs` is true. from_disk: some edges may still
    come from disk; fetched: what reading them takes a push and a pull on the cores, in edges pushed meanwhile. kept:
    items of the rows that the last pull kept (`engine/state/unmatched_rows.py`), if a pull may read these alone.
    seconds: of several ranks, what a push and a pull take the slowest of those that weigh them; None: none does.
    selective: pushes write only what changes a vertex, as minima do and sums do not. leaves_rows: a pull may leave a
    row once its messages suffice (`Program.suffices`).
    """

    vertices: int
    edges: int
    unexplored_edges: int
    early_exit: bool
    can_pull: bool
    forced: Direction | None = None
    linked: bool = False
    unvisited: int = 0
    on_cores: bool = False
    link: LinkCosts | None = None
    from_disk: bool = False
    fetched: tuple[float, float] = (0.0, 0.0)
    kept: int | None = None
    seconds: tuple[float, float] | None = None
    selective: bool = False
    leaves_rows: bool = False


def choose(situation: Situation, frontier: Frontier, previous: Direction, growing: bool) -> Direction:
    """The direction of the next iteration; `growing`: the frontier is larger than the one before."""
    if situation.forced is not None:
        return situation.forced
    if not situation.can_pull:
        return "push"
    if not situation.early_exit:
        dense = frontier.everything or frontier.edges > situation.edges * _dense_share(situation)
        return "pull" if dense else "push"
    if situation.on_cores:
        push, pull = situation.fetched
        if situation.kept is not None:
            least = max(0 if situation.from_disk else FEWEST, KEPT_COST * situation.kept)
            return "pull" if frontier.edges + push > least else "push"
        return "pull" if frontier.edges + push > _pull_cost(situation, frontier.edges) + pull else "push"
    if situation.linked:
        return _over_a_link(situation, frontier)
    if previous == "pull":
        still = growing or frontier.vertices > situation.vertices // BETA
        return "pull" if still else "push"
    return "pull" if growing and frontier.edges > situation.unexplored_edges // ALPHA else "push"


def weighs(situation: Situation, frontier: Frontier) -> bool:
    """Whether `choose` will look at `situation.link`: a search over a link, and a frontier that is not too small.

    Where edges may come from disk none is: a few rows that lie anywhere are in nearly every chunk.
    """
    small = frontier.edges <= situation.vertices // LOOKS and not situation.from_disk
    return can_choose(situation) and situation.linked and not small


def can_choose(situation: Situation) -> bool:
    """Whether the direction of a search is open."""
    return is_open(situation) and situation.early_exit


def is_open(situation: Situation) -> bool:
    """Whether a run may take either direction."""
    return situation.forced is None and situation.can_pull


def is_certain(situation: Situation, frontier: Frontier) -> bool:
    """Whether `choose` finds the same wherever edges are: of a program without early exit, but for a close call."""
    shares = [DENSE_SHARE, LINKED_DENSE_SHARE, SELECTIVE_DENSE_SHARE]
    shares += [SUFFICED_DENSE_SHARE] * situation.leaves_rows + [1.0] * (situation.edges <= FEWEST)
    least, *_, most = sorted(shares)
    sparse = frontier.edges <= situation.edges * least
    clear = frontier.everything or sparse or frontier.edges > situation.edges * most
    return not situation.early_exit and clear


def _over_a_link(situation: Situation, frontier: Frontier) -> Direction:
    if not weighs(situation, frontier):
        return "push"
    if situation.seconds is not None:
        push, pull = situation.seconds
        return "pull" if pull < push else "push"
    assert situation.link is not None, "a frontier that is weighed comes with its link"
    link = situation.link
    at = Progress(situation.vertices, situation.edges, situation.unvisited, situation.unexplored_edges)
    push = push_seconds(link, at, frontier)
    return "pull" if least_pull_seconds(link, at) < push and pull_seconds(link, at, frontier) < push else "push"


def _pull_cost(situation: Situation, active_edges: int) -> float:
    """What a pull reads, in edges pushed: every unvisited row, and edges of it until one is found active.

    Were active edges anywhere, one in `edges / active_edges` would be; no more are read than there are.
    """
    probes = situation.unvisited * situation.edges / max(1, active_edges)
    return ROW_COST * situation.unvisited + PROBE_COST * min(situation.unexplored_edges, probes)


def certain_push(situation: Situation) -> tuple[int, int, float]:
    """(edges, alpha, per_row) for fused iterations, which push without a new call of `choose`.

    After a push, a frontier of at most so many edges is pushed too, unless it has grown and has more than 1 / alpha of
    the unexplored edges (alpha 0: whatever it has), or has more than per_row edges for each vertex that is unvisited by
    then (0: whatever it has).
    """
    if situation.forced is not None or not situation.can_pull:
        return situation.edges, 0, 0.0
    if situation.early_exit and situation.linked:
        return situation.vertices // LOOKS, 0, 0.0
    if situation.early_exit and situation.on_cores:
        return situation.edges, 0, ROW_COST
    if situation.early_exit:
        return situation.edges, ALPHA, 0.0
    return int(situation.edges * _dense_share(situation)), 0, 0.0


def _dense_share(situation: Situation) -> float:
    """Of the edges, above which a frontier of a program without early exit is pulled."""
    if situation.on_cores and situation.edges <= FEWEST:
        return 1.0
    if situation.linked:
        return LINKED_DENSE_SHARE
    if situation.leaves_rows and situation.on_cores:
        return SUFFICED_DENSE_SHARE
    cheap = situation.selective and situation.on_cores and not situation.from_disk
    return SELECTIVE_DENSE_SHARE if cheap else DENSE_SHARE


class Traversal(NamedTuple):
    """A kernel's direction, and the adjacency it walks: "out" or "in". ways: of a list; None where edges are rows."""

    direction: Direction
    key: AdjacencyDirection
    ways: WaysName | None = None


FORWARD: dict[Direction, Traversal] = {"push": Traversal("push", "out"), "pull": Traversal("pull", "in")}
REVERSE: dict[Direction, Traversal] = {"push": Traversal("push", "in"), "pull": Traversal("pull", "out")}
TRAVERSALS = {"out": (FORWARD,), "in": (REVERSE,), "both": (FORWARD, REVERSE)}


def traversals(
    along: str, *, directed: bool, both_stored: bool, listed: bool = False
) -> dict[Direction, tuple[Traversal, ...]]:
    """For every direction that an iteration may choose, the walks that together carry all its messages.

    Messages go with the edges, against them, or both ways (`Program.along`). Pushing with the edges and pulling against
    them walk the out-adjacency, the two others the in-adjacency. A list is pushed along in one walk that goes the ways
    of the program. An undirected graph stores every edge in both its rows, so there is one walk for every `along`. With
    only the out-adjacency stored there is one direction: that of the first walk. listed: whether edges are in no rows.
    """
    if listed:
        return {"push": (Traversal("push", "out", ways_along(along, directed=directed)),)}
    if not directed:
        return {direction: (walk,) for direction, walk in FORWARD.items()}
    sides = TRAVERSALS[along]
    if both_stored:
        return {direction: tuple(side[direction] for side in sides) for direction in FORWARD}
    possible = tuple(next(walk for walk in side.values() if walk.key == "out") for side in sides)
    return {possible[0].direction: possible}
