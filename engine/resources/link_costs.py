"""What a device reads over its link, in the numbers that the direction rule compares.

Owns the questions to the two streams between which it chooses (`direction_cost.py` has the arithmetic). Moves nothing,
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
    assert pull.degrees is not None, "on a device behind a link every stream has them"
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


def side_of(stream: EdgeStream) -> DirectionSide:
    """Where a stream's edges are now; reckoned anew where that has changed."""
    caches = [owner.cache for owner in (stream.pipeline, stream.pipeline.source) if owner.cache is not None]
    changes = sum(cache.changes for cache in caches)
    if stream.side is None or stream.side[0] != changes:
        stream.side = changes, _side_of(stream)
    return stream.side[1]


def _side_of(stream: EdgeStream) -> DirectionSide:
    directory, source = stream.directory, stream.pipeline.source
    edges = max(1, stream.index.edges)
    chunks, here = -(-edges // stream.chunk_edges), float(directory.table.lengths[stream.here].sum()) / edges
    if not source.staged:
        return DirectionSide(chunks, here)
    rates, adjacency = stream.feedback.given, directory.adjacency
    held = directory.filled(directory.staging.link.complete(adjacency, stream.with_weights))
    sizes = adjacency.chunk_bytes(stream.with_weights)
    seconds = max(float(sizes.sum()) / rates.disk_bytes, edges * stream.edge_bytes / rates.decode_bytes)
    return DirectionSide(chunks, here, seconds * (1.0 - here) * (1.0 - float(held.mean())))
