"""The story of ids that change: edges go into a log, ids become vertices, and the log becomes a spill.

Needed where ids are renumbered, listed, are strings, have two sides, or where hubs come first. See id_mapping.py
for the ways to number, hub_order.py for the order of hubs.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.base.parallel_map import ordered_map
from penstock.storage.convert.renumber.hub_order import DegreeCount, hub_order, inverse
from penstock.storage.convert.renumber.id_mapping import Named, NameStore, Numbered, Numbering, Unlisted, numbering_for
from penstock.storage.convert.renumber.listed_ids import ListedIds
from penstock.storage.convert.sort.edge_log import EdgeLog
from penstock.storage.convert.sort.groups import check_density
from penstock.storage.convert.sort.read import NewIds, closed_after, fill_spill
from penstock.storage.convert.sort.spill import Spill
from penstock.storage.convert.sort.workspace import Workspace
from penstock.storage.format.edges import EdgeBatch
from penstock.storage.ingest.text.columns import Columns
from penstock.storage.ingest.text.diagnose import bad_line
from penstock.storage.ingest.text.edge_list import TextSource, read_ids
from penstock.storage.ingest.text.strings import NamedTextSource

Original = NDArray[Any] | NameStore | None


@dataclass(frozen=True, slots=True)
class Renamed:
    """Edges in a spill under their new ids; ``numbered`` says of which vertices, ``original`` what they were."""

    spill: Spill
    edges: int
    numbered: Numbered
    original: Original


def read_and_rename(space: Workspace) -> Renamed:
    """Read edges, find their new ids, and spill them under those.

    Raises:
        InputError: as the source, or more ids than the memory can map.
    """
    log = space.log()
    numbering = _numbering(space)
    _read_log(space, log, numbering)
    space.stage("map")
    numbered = numbering.finish()
    check_density(numbered.vertices, log.edges, space.source.name)
    original = numbered.original
    steps = replace(space.steps, new_ids=numbered.sources, new_targets=numbered.targets)
    if space.options.hub_sort:
        order = _hubs(space, log, steps.renamed, numbered.vertices)
        original = _reordered(original, order)
        new = inverse(order)
        ends = (_through(new, numbered.sources), _through(new, numbered.targets))
        steps = replace(steps, new_ids=ends[0], new_targets=ends[1])
    spill = space.spill()
    done = 0
    for count in fill_spill(spill, log.drain(), steps, space.pool):
        done += count
        space.say("map", done, log.edges)
    return Renamed(spill, log.edges, numbered, original)


def _read_log(space: Workspace, log: EdgeLog, numbering: Numbering) -> None:
    """Read all edges into the log, and every id into the numbering."""
    space.stage("read")

    def look(batch: EdgeBatch) -> tuple[EdgeBatch, Any]:
        return batch, numbering.look(batch)

    with closed_after(space.source.batches()) as batches:
        for batch, seen in ordered_map(space.pool, look, batches, space.steps.in_flight):
            try:
                logged = numbering.take(batch, seen)
            except Unlisted as other:
                raise _refused(space, other) from None
            if len(logged):
                log.add(logged)
            space.read_edges += len(batch)
            space.say("read")


def _numbering(space: Workspace) -> Numbering:
    """The numbering that the source and the options ask for; ``--vertices`` is read first."""
    path = space.options.vertices_file
    if path is None:
        return numbering_for(space)
    if not space.named:
        return ListedIds(space, read_ids(path, space.ingest))
    numbering = Named(space, sides=False)
    with closed_after(NamedTextSource([path], space.ingest, Columns(0, 0)).batches()) as batches:
        for batch in batches:
            numbering.take(batch, None)
    numbering.close_list()
    return numbering


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


def _hubs(space: Workspace, log: EdgeLog, renamed: Callable[[EdgeBatch], EdgeBatch], vertices: int) -> NDArray[Any]:
    """Old ids in hub order."""
    space.check_vertex_memory(vertices)
    degrees = DegreeCount(vertices, space.options.workers, space.pool)
    for batch in ordered_map(space.pool, renamed, log.batches(), space.steps.in_flight):
        degrees.add(batch)
    if space.mirror:
        both = degrees.out + degrees.into
        return hub_order(both, both)
    return hub_order(degrees.out, degrees.into)


def _reordered(original: Original, order: NDArray[Any]) -> Original:
    if isinstance(original, NameStore):
        original.order = order
        return original
    return order if original is None else original[order]


def _through(new: NDArray[Any], first: NewIds | None) -> NewIds:
    return (lambda ids: new[ids]) if first is None else (lambda ids: new[first(ids)])
