"""When pushes that sum keep the sums of the graph's first, hottest vertices apart: replicas, on GPUs and on cores.

Garaph's (USENIX ATC 2017), which has as many as there are to be fewer collisions; `decisions/replicas.md` has what they
gain. Only for sums: every message counts as a change, so marks need not wait for the sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.engine.program.bindings import Author
    from penstock.engine.state.state import Frontier
    from penstock.storage.format.index import Index
    from penstock.transfer.values.view import View

KEPT_BYTES = 32 << 10
"""Of sums: what multiprocessors and cores hold nearest."""
EDGES_EACH = 32
"""Edges a sum that is kept: with fewer, adding the replicas up takes a part of the time."""
LEAST_SHARE = 1 / 8
"""Of the edges, in rows of vertices whose sums are kept: with fewer, too few messages go there."""


def sums_numbers(author: Author) -> bool:
    """Whether messages are summed that are numbers, one a vertex."""
    return author.combine == "sum" and not author.has_vectors


def is_hot(index: Index, kept: int) -> bool:
    """Whether the first vertices have a good part of the edges."""
    last = min(kept, index.vertices)
    return int(index.starts(last, last + 1)[0]) >= LEAST_SHARE * index.edges


def pushes_many(view: View, frontier: Frontier, edges: int) -> bool:
    """Whether a push along the view's rows sends along so many edges at least.

    A list's rows are pushed from as all others are then, if they have at least half of the view's edges.
    """
    here = view.e1 - view.e0
    sent = here if frontier.everything else min(here, frontier.edges)
    return sent >= edges and (not frontier.listed or (2 * sent >= here and view.record.route != "zero-copy"))


def has_sums_apart(state: Any) -> bool:
    """Whether a state's messages are kept apart from its fields, from vertex 0 on."""
    return state.first == 0 and state.incoming is not None
