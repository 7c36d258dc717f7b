"""What a device reads over its link, in the numbers that the direction rule compares.

Owns the questions to the two lanes between which it chooses (`direction_cost.py` has the arithmetic). Moves nothing,
changes nothing, and refuses nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.resources.direction_cost import GLANCE, DirectionSide, LinkCosts
from penstock.engine.state.frontier import Frontier
from penstock.transfer.planning.plan import CARRIERS

if TYPE_CHECKING:
    from penstock.engine.resources.edge_stream import EdgeStream


def link_costs_of(push: EdgeStream, pull: EdgeStream, frontier: Frontier) -> LinkCosts:
    """What a push of this frontier, and a pull, would find."""
    assert pull.degrees is not None, "on a device behind a link every lane has them"
    options = push.pipeline.options
    forced = options.route not in ("auto", "resident")
    return LinkCosts(
        push.feedback.given,
        pull.edge_bytes,
        pull.degrees,
        side_of(push),
        side_of(pull),
        routes=(CARRIERS.get(options.route, options.route),) if forced else options.routes,
        head=pull.skip,
        at_once=push.slight(frontier),
        glance=GLANCE[push.pipeline.device.kind],
    )


def side_of(lane: EdgeStream) -> DirectionSide:
    """Where a lane's edges are now; reckoned anew where that has changed."""
    caches = [owner.cache for owner in (lane.pipeline, lane.pipeline.source) if owner.cache is not None]
    changes = sum(cache.changes for cache in caches)
    if lane.side is None or lane.side[0] != changes:
        lane.side = changes, _side_of(lane)
    return lane.side[1]


def _side_of(lane: EdgeStream) -> DirectionSide:
    directory, source = lane.directory, lane.pipeline.source
    edges = max(1, lane.index.edges)
    chunks, here = -(-edges // lane.chunk_edges), float(directory.table.lengths[lane.here].sum()) / edges
    if not source.staged:
        return DirectionSide(chunks, here)
    rates, adjacency = lane.feedback.given, directory.adjacency
    held = directory.filled(directory.staging.link.complete(adjacency, lane.with_weights))
    sizes = adjacency.chunk_bytes(lane.with_weights)
    seconds = max(float(sizes.sum()) / rates.disk_bytes, edges * lane.edge_bytes / rates.decode_bytes)
    return DirectionSide(chunks, here, seconds * (1.0 - here) * (1.0 - float(held.mean())))
