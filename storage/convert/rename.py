"""The story of ids that change: edges go into a log, ids become vertices, and the log becomes a spill.

Needed where ids are renumbered, listed, are strings, have two sides, or where `--order` puts vertices in another
order. See id_mapping.py for the ways to number, vertex_order.py for the orders.
"""

from contextlib import closing, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.base.parallel_map import ordered_map
from penstock.storage.base.threads import ThreadPool
from penstock.storage.convert.input_edges import InputEdges
from penstock.storage.convert.renumber.degree_count import count_degrees
from penstock.storage.convert.renumber.id_mapping import (
    AssignedIds,
    BipartiteIds,
    CompactIds,
    IdMapping,
    KeptIds,
    ListedIds,
    NamedIds,
    Unlisted,
)
from penstock.storage.convert.renumber.name_store import NameStore
from penstock.storage.convert.renumber.path_order import PathOrder, by_paths
from penstock.storage.convert.renumber.vertex_order import Permuted, by_degree, hubs_first, inverse
from penstock.storage.convert.sort.edge_log import EdgeLog
from penstock.storage.convert.sort.groups import check_density
from penstock.storage.convert.sort.read import SpillFiller, Steps
from penstock.storage.convert.sort.spill import Spill
from penstock.storage.convert.sort.workspace import Workspace
from penstock.storage.convert.vertex_properties import name_batches
from penstock.storage.format.edges import EdgeBatch
from penstock.storage.ingest.text.columns import Columns
from penstock.storage.ingest.text.diagnose import bad_line
from penstock.storage.ingest.text.edge_list import TextSource, read_ids
from penstock.storage.ingest.text.strings import NamedTextSource

COUNTING_SHARE = 4
"""One part in so many of the budget may count degrees, or hold edges of paths: the writer's, which has not begun."""


def read_and_rename(space: Workspace) -> InputEdges:
    """Read edges, find their new ids, and spill them under those.

    Raises:
        InputError: as the source, or more ids than the memory can map.
    """
    log, assigned = logged(space)
    check_density(assigned.vertices, log.edges, space.source.name)
    original = assigned.original
    steps = replace(space.steps, new_ids=assigned.sources, new_targets=assigned.targets)
    if space.options.order != "none":
        new = _new_order(space, log, steps, assigned.vertices)
        sources, targets = Permuted(new, assigned.sources), Permuted(new, assigned.targets)
        steps = replace(space.steps, new_ids=sources, new_targets=targets)
        if isinstance(original, NameStore):
            original.new_ids = new
        else:
            original = inverse(new) if original is None else original[inverse(new)]
    spill = _spilled(space, log, steps)
    return InputEdges(
        store=spill,
        vertices=assigned.vertices,
        input_edges=log.edges,
        weights=spill.weight_range,
        original=original,
        left=assigned.left,
    )


def logged(space: Workspace) -> tuple[EdgeLog, AssignedIds]:
    """Read all edges into a log, and find the new ids. Raises as `read_and_rename`."""
    log = space.log()
    mapping = _mapping(space)
    _read_log(space, log, mapping)
    space.stage("map")
    return log, mapping.assign()


def _spilled(space: Workspace, log: EdgeLog, steps: Steps) -> Spill:
    """Spill the log's edges in new ids, and forget the log."""
    spill = space.spill()
    done = 0
    # The C library keeps the memory that a thread freed for that thread, or for one that starts when it has ended: new
    # threads take what a log in memory leaves, and those of `space.pool` take fresh pages, which the system must clear.
    threads = nullcontext(space.pool) if log.on_disk else ThreadPool(space.options.workers, "renumber")
    with threads as pool:
        for count in SpillFiller(spill, steps, pool).fill(log.drain()):
            done += count
            space.say("map", done, log.edges)
    return spill


def _mapping(space: Workspace) -> IdMapping:
    """The mapping of ids that the source and the options ask for; ``--vertices`` is read first."""
    path = space.options.vertices_file
    if not space.named:
        if path is not None:
            listed = space.table.ids() if space.table else read_ids(path, space.ingest)
            return ListedIds(space, map(np.asarray, listed))
        if space.options.bipartite:
            return BipartiteIds(space)
        return CompactIds(space) if space.options.renumber else KeptIds(space)
    names = NamedIds(space, sides=space.options.bipartite)
    if path is not None:
        listing = NamedTextSource([path], space.ingest, Columns(0, 0)).batches
        with closing(name_batches(space.table, path) if space.table else listing()) as batches:
            for batch in batches:
                names.record(batch, None)
        names.close_list()
    return names


def _read_log(space: Workspace, log: EdgeLog, mapping: IdMapping) -> None:
    """Read all edges into the log, and every id into the mapping."""
    space.stage("read")

    def scan(batch: EdgeBatch) -> tuple[EdgeBatch, Any]:
        return batch, mapping.scan(batch)

    with closing(space.source.batches()) as batches:
        for batch, found in ordered_map(space.pool, scan, batches, space.steps.in_flight):
            try:
                logged = mapping.record(batch, found)
            except Unlisted as other:
                raise _refused(space, other) from None
            if len(logged):
                log.add(logged)
            space.read_edges += len(batch)
            space.say("read")


def _refused(space: Workspace, other: Unlisted) -> InputError:
    """What is wrong with an edge, and where it is as far as that can be found out."""
    reason = (
        f"{other.role} {other.name} is not listed in {space.options.vertices_file}, and exactly the vertices listed "
        "there exist (--vertices); add it to the list, or leave the edge out"
    )
    if other.edge is None:
        return InputError(f"{space.source.name}: {reason}")
    edge = space.read_edges + other.edge
    place = space.source.place_of(edge) if isinstance(space.source, TextSource) else None
    if place is None:
        return InputError(f"{space.source.name}: edge {edge + 1} (from 1): {reason}")
    return bad_line(*place, reason)


def _new_order(space: Workspace, log: EdgeLog, steps: Steps, vertices: int) -> NDArray[Any]:
    """New ids by old id, as ``--order`` says."""
    space.check_vertex_memory(vertices)
    if space.options.order == "paths":
        order = PathOrder(vertices, space.options.host_memory // COUNTING_SHARE, log.edges, both=space.mirror)
        return by_paths(lambda: map(steps.renamed, log.batches()), order)
    # in a mirrored graph every edge counts at both its ends, and so do both degrees of a hub
    apart = space.options.order == "hubs" and not space.mirror
    room = space.options.host_memory // COUNTING_SHARE // max(1, vertices * (2 if apart else 1) * 4)
    degrees = count_degrees(
        log.batches(),
        steps.renamed,
        vertices,
        apart=apart,
        pool=space.pool,
        copies=max(1, min(space.options.workers, room)),
    )
    new = hubs_first(degrees[0], degrees[-1]) if space.options.order == "hubs" else by_degree(degrees[0])
    space.balance_buckets(new, degrees, log.edges)
    return new
