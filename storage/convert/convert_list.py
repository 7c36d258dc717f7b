"""The steps of a conversion that keeps the order of its input: edges are read, and written in their order.

Nothing is sorted. Edges wait in a log until it is known which ids occur, unless that is known before (input_order.py);
weights wait until all have come, because their dtype is known then.
"""

from pathlib import Path
from typing import Any

from penstock.storage.convert.input_order import InputOrder
from penstock.storage.convert.list_writer import EndCounts, ListBase, ListWriter
from penstock.storage.convert.sort.groups import check_density
from penstock.storage.convert.sort.memory_quota import ArrayStore
from penstock.storage.convert.sort.options import ConvertReport
from penstock.storage.convert.sort.workspace import Workspace
from penstock.storage.format.file_set import FileSet
from penstock.storage.format.schema import LIST_VERSION, WITHOUT_EDGES, Header

COUNTING_SHARE = 4
"""One part in so many of the budget may count degrees."""


def write_list(space: Workspace, target: Path) -> ConvertReport:
    """Read all edges and write them; on return the graph file is in its place. Raises as `convert.convert`."""
    files = FileSet(
        target, [folder.absolute() for folder in space.options.stripes], encoders(space), version=LIST_VERSION
    )
    counts = EndCounts(space.options.host_memory // COUNTING_SHARE, both=space.mirror)
    return write_edges(space, files, counts, None)


def encoders(space: Workspace) -> int:
    """How many threads encode."""
    return space.share.encoders


def write_edges(space: Workspace, files: FileSet, counts: EndCounts, base: ListBase | None) -> ConvertReport:
    """Write the edges of the source, behind those of ``base``."""
    header = None if base is None else base.header
    edges = InputOrder(space, 0 if header is None else header.vertices)
    store = ArrayStore(space.quota, space.scratch)
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
        scratch_bytes=space.scratch.written,
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
