"""The steps of a conversion that keeps the order of its input: edges are read, and written in their order.

Nothing is sorted. Edges wait in a log until it is known which ids occur, unless that is known before
(`--no-renumber`, `--vertices 0:N`, a number of vertices that the input states): then they come straight from it.
Weights wait until all have come, because their dtype is known then.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from penstock.storage.base.errors import InputError
from penstock.storage.base.threads import ordered_map
from penstock.storage.convert.list_writer import EndCounts, ListBase, ListWriter
from penstock.storage.convert.rename import logged
from penstock.storage.convert.renumber.input_ids import InputIds, known_ids
from penstock.storage.convert.renumber.name_store import Original
from penstock.storage.convert.sort.groups import check_density
from penstock.storage.convert.sort.options import ConvertReport
from penstock.storage.convert.sort.seen_ids import OccurringIds
from penstock.storage.convert.sort.spill_room import ArrayStore
from penstock.storage.convert.sort.weights import WeightExtent, narrow
from penstock.storage.convert.sort.workspace import Workspace
from penstock.storage.format.file_set import FileSet
from penstock.storage.format.schema import LIST_VERSION, LIST_VERTICES, WEIGHTS, WITHOUT_EDGES, Header
from penstock.storage.ingest.core.edges import EdgeBatch


class InputOrder:
    """The edges of one conversion in the order of its input; ids 0 to ``named - 1`` are vertices at least.

    Attributes
    ----------
    original : ndarray, NameStore or None
        The ids of the input by vertex; known when the first batch has come.
    left : int or None
        Of two sides, how many sources; known when the first batch has come.
    weights : WeightExtent
        The range of all weights so far.
    input_edges : int
        How many edges have come, left out ones included.
    ids : OccurringIds or None
        The ids that the edges are in; None where they are in vertices. Known when the first batch has come.
    renumbered : bool
        Whether the ids that occur are not 0 to n-1, and become so.
    vertices : int
        How many vertices there are as far as edges have come; all of them when the last batch has come.
    """

    def __init__(self, space: Workspace, named: int) -> None:
        self._space, self._named = space, named
        self.original: Original = None
        self.left: int | None = None
        self.weights = WeightExtent()
        self.input_edges = 0
        self.renumbered = False
        self.ids: OccurringIds | None = None
        self._known: int | None = None

    @property
    def vertices(self) -> int:
        """See above."""
        return self._space.known_vertices if self._known is None else self._known

    def weight_dtype(self, header: Header | None) -> np.dtype[Any]:
        """The dtype of all weights: that of an older graph, or the narrowest. Raises InputError if they do not fit."""
        wanted = self.weights.dtype()
        found = None if header is None else header.array(f"out/{WEIGHTS}")
        if found is None:
            return wanted
        if self.input_edges and np.promote_types(wanted, found.kind) != found.kind:
            raise InputError(
                f"{self._space.source.name}: its weights take {wanted}, and the graph has {found.kind}, which stays as "
                "it is; convert all inputs together"
            )
        return found.kind

    def batches(self) -> Iterator[EdgeBatch]:
        """Yield all edges, once. Raises InputError, as the source or for an id from 2^32 on."""
        self._space.stage("read")
        ids = InputIds(self._space, self._named)
        logs = ids.renames or (ids.compacts and self._space.source.known_vertices is None)
        return map(self._prepared, self._renamed(ids) if logs else self._read(ids))

    def _read(self, ids: InputIds) -> Iterator[EdgeBatch]:
        space = self._space
        self.original, self.left = known_ids(space)
        with closing(ids.batches()) as batches:
            for batch in batches:
                if len(batch) == 0:
                    continue
                space.saw_id(max(int(batch.sources.max()), int(batch.targets.max())))
                yield batch
                space.say("read")
        self._known = max(space.known_vertices, self._named, space.options.vertex_count or 0)
        self._check_vertices()

    def _renamed(self, ids: InputIds) -> Iterator[EdgeBatch]:
        space = self._space
        log, assigned = logged(space, ids)
        self._known, self.original, self.left = assigned.vertices, assigned.original, assigned.left
        self.renumbered = ids.renumbered
        self._check_vertices()
        batches, done = log.drain(), 0
        if isinstance(assigned.sources, OccurringIds):
            self.ids = assigned.sources  # the writer's threads make keys of their ranks at once
        else:
            packing = replace(space.packing, new_ids=assigned.sources, new_targets=assigned.targets)
            batches = ordered_map(space.pool, packing.renamed, batches, packing.in_flight)
        for batch in batches:
            yield batch
            done += len(batch)
            space.say("map", done, log.edges)

    def _prepared(self, batch: EdgeBatch) -> EdgeBatch:
        """A batch with weights of a narrow dtype, perhaps without self-loops."""
        self.input_edges += len(batch)
        self._check_vertices()
        if self._space.options.drop_self_loops:
            keep = np.asarray(batch.sources != batch.targets)
            weights = None if batch.weights is None else batch.weights[keep]
            batch = EdgeBatch(batch.sources[keep], batch.targets[keep], weights)
        if batch.weights is None:
            return batch
        values, extent = narrow(batch.weights, self._space.source.name)
        self.weights = self.weights.joined(extent)
        return EdgeBatch(batch.sources, batch.targets, values)

    def _check_vertices(self) -> None:
        if self.vertices > LIST_VERTICES:
            raise InputError(
                f"{self._space.source.name}: a list holds vertices below 2^32, and there is {self.vertices - 1}; "
                "--renumber numbers those that occur from 0 on, and --layout rows holds any"
            )


def write_list(space: Workspace, target: Path) -> ConvertReport:
    """Read all edges and write them; on return the graph file is in its place. Raises as `convert.convert`."""
    files = FileSet(
        target, [folder.absolute() for folder in space.options.stripes], space.share.encoders, version=LIST_VERSION
    )
    counts = EndCounts(space.share.counting_bytes, both=space.mirror)
    return write_edges(space, files, counts, None)


def write_edges(space: Workspace, files: FileSet, counts: EndCounts, base: ListBase | None) -> ConvertReport:
    """Write the edges of the source, behind those of ``base``."""
    header = None if base is None else base.header
    edges = InputOrder(space, 0 if header is None else header.vertices)
    store = ArrayStore(space.room)
    with ListWriter(files, store, counts, force=space.options.force, base=base) as writer:
        weighted = header is not None and header.weight_range is not None
        for batch in edges.batches():
            weighted = weighted or batch.weights is not None
            writer.append(batch, edges.vertices, edges.ids)
        vertices = max(edges.vertices, 0 if header is None else header.vertices)
        check_density(vertices, writer.edges, space.source.name)
        space.stage("close")
        kind = edges.weight_dtype(header) if weighted else None
        extent = writer.finish_edges(kind)
        without = writer.finish_vertices(vertices, edges.original)
        input_edges = edges.input_edges + (0 if header is None else header.input_edges)
        writer.commit(
            {
                "vertices": vertices,
                "input_edges": input_edges,
                "directed": not space.mirror,
                "provenance": _provenance(space, header, renumbered=edges.renumbered)
                | ({} if without is None else {WITHOUT_EDGES: without}),
                "weight_range": extent,
                "left": edges.left,
            }
        )
    store.close()
    space.stage("finish")
    return ConvertReport(
        output=files.path,
        vertices=vertices,
        edges=writer.edges,
        input_edges=input_edges,
        directed=not space.mirror,
        weight_dtype=None if kind is None else kind.name,
        input_bytes=space.source.bytes_done,
        output_bytes=writer.file_bytes,
        scratch_bytes=space.room.written,
        without_edges=without,
        seconds=space.seconds,
    )


def _provenance(space: Workspace, header: Header | None, *, renumbered: bool) -> dict[str, Any]:
    """The provenance of a graph, which may get the edges of another source; renumbered: its ids are not 0 to n-1."""
    if header is None:
        return space.provenance(renumbered=renumbered)
    before, options = header.provenance.get("appended"), header.provenance.get("options")
    times = before.get("times", 0) if isinstance(before, dict) else 0
    kept = {name: value for name, value in header.provenance.items() if name != WITHOUT_EDGES}
    if renumbered:
        kept["options"] = (options if isinstance(options, dict) else {}) | {"renumber": True}
    return kept | {"appended": {"times": times + 1, "last": space.source.name}}
