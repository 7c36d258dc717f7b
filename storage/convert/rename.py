"""The story of ids that change: edges go into a log, ids become vertices, and the log becomes a spill.

Needed where ids are renumbered, listed, are strings, have two sides, or where `--order` puts vertices in another
order. See id_mapping.py for the ways to number, vertex_order.py for the orders.
"""

from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.threads import ThreadPool, ordered_map
from penstock.storage.convert.renumber.id_mapping import (
    IdMapping,
    ListedIds,
    NamedIds,
    TableIds,
)
from penstock.storage.convert.renumber.input_ids import AssignedIds, InputIds, Unlisted, refused
from penstock.storage.convert.renumber.name_store import NameStore, Original
from penstock.storage.convert.renumber.vertex_order import (
    PathOrder,
    by_degree,
    by_paths,
    count_degrees,
    hubs_first,
    inverse,
    permuted,
)
from penstock.storage.convert.sort.groups import check_density
from penstock.storage.convert.sort.seen_ids import OccurringIds, SeenIds, bitmap_bytes
from penstock.storage.convert.sort.spill import Spill
from penstock.storage.convert.sort.spill_filler import Packing, SpillFiller
from penstock.storage.convert.sort.weights import WeightExtent
from penstock.storage.convert.sort.workspace import EdgeLog, Workspace
from penstock.storage.convert.vertex_properties import name_batches
from penstock.storage.ingest.core.edges import EdgeBatch
from penstock.storage.ingest.formats.csr import CsrSource
from penstock.storage.ingest.text.columns import Columns
from penstock.storage.ingest.text.edge_list import TextSource, read_ids


@dataclass(frozen=True, slots=True, kw_only=True)
class InputEdges:
    """What reading came to: where the edges are, of which vertices and with what weights; their original ids
    if ids were changed; of two sides, how many sources; how many vertices have no edge (None: not known yet).

    ids: those that the store's edges are in; None where they are in vertices. renumbered: whether ids that occur were
    found not to be 0 to n-1.
    """

    store: Spill | CsrSource
    vertices: int
    input_edges: int
    weights: WeightExtent | None
    original: Original = None
    left: int | None = None
    without_edges: int | None = None
    ids: OccurringIds | None = None
    renumbered: bool = False


def read_and_rename(space: Workspace, ids: InputIds) -> InputEdges:
    """Read edges, find their new ids, and spill them under those.

    Raises:
        InputError: as the source, or more ids than the memory can map.
    """
    log, assigned = logged(space, ids)
    check_density(assigned.vertices, log.edges, space.source.name)
    original = assigned.original
    packing = replace(space.packing, new_ids=assigned.sources, new_targets=assigned.targets)
    if space.options.order != "none":
        new = _new_order(space, log, packing, assigned.vertices)
        sources, targets = permuted(new, assigned.sources), permuted(new, assigned.targets)
        packing = replace(space.packing, new_ids=sources, new_targets=targets)
        if isinstance(original, NameStore):
            original.new_ids = new
        else:
            before = original.whole() if isinstance(original, OccurringIds) else original
            original = inverse(new) if before is None else before[inverse(new)]
    seen = SeenIds(min(space.share.edgeless_bytes, bitmap_bytes(assigned.vertices)))
    spill = _spilled(space, log, replace(packing, seen=seen))
    return InputEdges(
        store=spill,
        vertices=assigned.vertices,
        input_edges=log.edges,
        weights=spill.weight_range,
        original=original,
        left=assigned.left,
        renumbered=ids.renumbered,
        without_edges=None if seen.with_edges is None else assigned.vertices - seen.with_edges,
    )


def logged(space: Workspace, ids: InputIds) -> tuple[EdgeLog, AssignedIds]:
    """Read all edges into a log, and find the new ids. Raises as `read_and_rename`."""
    log = space.log()
    mapping = _mapping(space, ids)
    _read_log(space, log, mapping, ids)
    space.stage("map")
    return log, mapping.assign()


def _spilled(space: Workspace, log: EdgeLog, packing: Packing) -> Spill:
    """Spill the log's edges in new ids, and forget the log."""
    spill = space.spill()
    done = 0
    # The C library keeps the memory that a thread freed for that thread, or for one that starts when it has ended: new
    # threads take what a log in memory leaves, and those of `space.pool` take fresh pages, which the system must clear.
    threads = ThreadPool(space.workers, "renumber") if log.in_memory else nullcontext(space.pool)
    with threads as pool:
        for count in SpillFiller(spill, packing, pool).fill(log.drain()):
            done += count
            space.say("map", done, log.edges)
    return spill


def _mapping(space: Workspace, ids: InputIds) -> IdMapping:
    """The mapping of ids that the source and the options ask for; ``--vertices`` is read first."""
    path = space.options.vertices_file
    if not space.named:
        if path is not None and space.options.vertex_count is None:
            listed = space.table.ids() if space.table else read_ids(path, space.ingest)
            return ListedIds(space, map(np.asarray, listed))
        sides = space.options.bipartite
        return TableIds(space, sides=sides) if sides or ids.by_table else ids
    names = NamedIds(space, sides=space.options.bipartite)
    if path is not None:
        listing = TextSource([path], space.ingest, named=True, columns=Columns(0, 0)).batches
        with closing(name_batches(space.table, path) if space.table else listing()) as batches:
            for batch in batches:
                names.record(batch, None)
        names.close_list()
    return names


def _read_log(space: Workspace, log: EdgeLog, mapping: IdMapping, ids: InputIds) -> None:
    """Read all edges into the log, and every id into the mapping."""

    def scan(batch: EdgeBatch) -> tuple[EdgeBatch, Any]:
        return batch, mapping.scan(batch)

    with closing(ids.batches()) as batches:
        for batch, found in ordered_map(space.pool, scan, batches, space.packing.in_flight):
            try:
                logged = mapping.record(batch, found)
            except Unlisted as other:
                raise refused(space, other, log.edges) from None
            if len(logged):
                log.add(logged)
            space.say("read")


def _new_order(space: Workspace, log: EdgeLog, packing: Packing, vertices: int) -> NDArray[Any]:
    """New ids by old id, as ``--order`` says."""
    space.check_vertex_memory(vertices)
    if space.options.order == "paths":
        order = PathOrder(vertices, space.share.counting_bytes, log.edges, both=space.mirror)
        return by_paths(lambda: map(packing.renamed, log.batches()), order)
    # in a mirrored graph every edge counts at both its ends, and so do both degrees of a hub
    apart = space.options.order == "hubs" and not space.mirror
    room = space.share.counting_bytes // max(1, vertices * (2 if apart else 1) * 4)
    degrees = count_degrees(
        log.batches(),
        packing.renamed,
        vertices,
        apart=apart,
        pool=space.pool,
        copies=max(1, min(space.workers, room)),
    )
    new = hubs_first(degrees[0], degrees[-1]) if space.options.order == "hubs" else by_degree(degrees[0])
    space.balance_buckets(new, degrees, log.edges)
    return new
