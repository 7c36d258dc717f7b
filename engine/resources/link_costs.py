"""What a device reads over its link, or from disk, in the numbers that the direction rule compares.

Owns the questions to the two streams between which it chooses (`direction_cost.py` has the arithmetic). Moves nothing,
changes nothing, and refuses nothing.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.engine.resources.direction_cost import DirectionSide, LinkCosts
from penstock.engine.state.state import Frontier
from penstock.storage.format.row_pages import OFFSET_BYTES
from penstock.transfer.planning.plan import routes_of

if TYPE_CHECKING:
    from penstock.engine.resources.edge_stream import EdgeStream

WIDE = 15
"""A frontier of more than this part of the edges leaves few vertices behind that nothing was found for."""
REUSED = 0.25
"""Share of a pull's first reading that counts where what is read stays in memory: pulls of the next iterations read the
same rows, while a push of many vertices, and the pull that follows at the widest frontier, read both adjacencies."""


def link_costs_of(push: EdgeStream, pull: EdgeStream, frontier: Frontier, windows: int = 1) -> LinkCosts:
    """What a push of this frontier, and a pull, would find; windows: how many are pushed along, of which `push` is one.

    Where a device has values in pages, rows of an index come over the link, too: for each window.
    """
    assert pull.degrees is not None, "on a device behind a link every stream has them"
    options, rates, pushed, pulled = push.pipeline.options, push.feedback.given, side_of(push), side_of(pull)
    pages, count = push.index.pages, push.index.vertices
    rows = 0.0 if pages is None else OFFSET_BYTES * count / rates.copy_bytes
    active = 1.0 if pages is None else -math.expm1(-frontier.vertices * pages.rows / count)  # share of pages
    return LinkCosts(
        rates,
        pull.edge_bytes,
        pull.degrees,
        replace(pushed, fetch_seconds=windows * pushed.fetch_seconds, rows_seconds=windows * rows * active),
        replace(pulled, rows_seconds=rows),
        routes=routes_of(options),
        head=pull.skip,
        at_once=push.slight(frontier),
        glance=push.pipeline.device.glance,
    )


def fetched_of(
    push: EdgeStream, pull: EdgeStream, frontier: Frontier, unvisited: int, keeps: bool
) -> tuple[float, float]:
    """What reading from disk takes a push of this frontier, and a pull, on the cores: in edges pushed meanwhile.

    keeps: whether a pull keeps the rows that it reads in vain. After one of a wide frontier there is room for them, and
    the iterations that follow read nothing, while a push leaves it to the next of them to read everything.
    """
    rate = push.feedback.given.kernel_edges
    sides = (side_of(push), frontier.vertices), (side_of(pull), unvisited)
    found = [side.fetch_seconds * side.touched(rows) * rate for side, rows in sides]
    wide = keeps and frontier.edges * WIDE > pull.index.edges
    return found[0], found[1] * (REUSED if wide else 1.0)


def side_of(stream: EdgeStream) -> DirectionSide:
    """Where a stream's edges are now; reckoned anew where that has changed."""
    changes = sum(cache.changes for cache in stream.caches)
    if stream.side is None or stream.side[0] != changes:
        stream.side = changes, _side_of(stream)
    return stream.side[1]


def _side_of(stream: EdgeStream) -> DirectionSide:
    directory = stream.directory
    edges = max(1, stream.index.edges)
    chunks, here = -(-edges // stream.chunk_edges), float(directory.table.lengths[stream.here].sum()) / edges
    pieces, plain = directory.pieces, edges * stream.edge_bytes
    copied = 1.0 if pieces is None else pieces.layout.nbytes / plain
    if not stream.from_disk:
        return DirectionSide(chunks, here, copied=copied)
    rates, adjacency = stream.feedback.given, directory.adjacency
    if stream.pipeline.device.reads_host:
        lacking = 1.0 - float(directory.held(stream.with_weights).mean())
    else:
        source = directory.staging.link if pieces is None else directory.staging.packed_link
        held = directory.filled(source.complete(adjacency, stream.with_weights))
        lacking = (1.0 - here) * (1.0 - float(held.mean()))
    sizes = adjacency.chunk_bytes(stream.with_weights)
    seconds = max(float(sizes.sum()) / rates.disk_bytes, plain * copied / rates.decode_bytes)
    cache = stream.pipeline.cache if stream.pipeline.device.reads_host else stream.pipeline.source.cache
    again = REUSED if stream.direction == "pull" and cache is not None and cache.whole else 1.0
    return DirectionSide(chunks, here, seconds * lacking * again, copied)
