"""Whether the disks have room for the answers of a job, asked before it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from penstock.storage.access.graph_queries import text_bytes
from penstock.storage.base.atomic import check_room, free_bytes, written_at
from penstock.storage.base.budget import format_bytes
from penstock.storage.tables.formats import ColumnSize, SizeRange, column_size, digits_of_first, table_size

if TYPE_CHECKING:
    from penstock.engine.program.program import Program
    from penstock.storage.format.graph import Graph
    from penstock.tools.run.answer_options import AnswerOptions

PROPERTY_BYTES = 10
"""Of a property as text, about."""


def check_answer_room(
    answers: Iterable[tuple[AnswerOptions, Sequence[Program]]], graph: Graph, note: Callable[[str], None]
) -> None:
    """Refuse answers that cannot fit, each of one program or of several; note those that may not. Raises InputError."""
    sizes = {}
    for wanted, programs in answers:
        if wanted.path is not None and not wanted.printed:
            sizes[written_at(wanted.path)] = answer_size(programs, graph, str(wanted.file_format), wanted.joined)
    check_sizes(sizes, note)


def check_sizes(sizes: Mapping[Path, SizeRange], note: Callable[[str], None]) -> None:
    """Refuse files that cannot fit on their disks; note those that may not. Raises InputError."""
    check_room({path: size.least for path, size in sizes.items()})
    for path, size in sizes.items():
        free = free_bytes(path)
        if size.likely > free:
            note(
                f"{path} may take {format_bytes(size.likely)}, and the disk of {path.parent} has {format_bytes(free)} "
                "free: free space while this runs"
            )


def answer_size(programs: Sequence[Program], graph: Graph, format: str, joined: Sequence[str] = ()) -> SizeRange:
    """About how many bytes the answers of programs take in a file, with properties of the vertices.

    Of several programs it is with the files in which their answers are kept before.
    """
    from penstock.engine.program.program import fields_of, resolve_dtype

    rows = graph.vertices
    ids = id_column(graph)
    fields: list[ColumnSize] = []
    for field in chain.from_iterable(fields_of(program).values() for program in programs):
        if field.output:
            dtype = resolve_dtype(field.dtype, graph.vertex_dtype)
            column = column_size(dtype, rows, sparse=field.unreached is not None)
            fields += [column] * int(np.prod(field.shape, dtype=np.int64))
    more = [ColumnSize(0, rows * PROPERTY_BYTES, 0) for _ in joined]
    sides = [] if graph.left is None else [column_size(np.dtype(np.uint8), rows, sparse=False)]
    if format == "npy":  # of other orders only the ids themselves tell whether they are 0 to n-1
        named = graph.original is not None and (graph.id_dtype.kind == "T" or graph.reordered is False)
        return table_size(format, rows, [*([ids, *sides] if named or sides else []), *fields[:1]])
    size = table_size(format, rows, [ids, *fields[:1]] if format == "graphalytics" else [ids, *sides, *fields, *more])
    kept = sum(field.in_memory for field in fields) if len(programs) > 1 else 0
    return SizeRange(size.least + kept, size.likely + kept)


def id_column(graph: Graph) -> ColumnSize:
    """The size of the original ids of all vertices."""
    rows = graph.vertices
    if graph.original is None or graph.id_dtype.kind != "T":
        part = rows if graph.left is None else rows - rows // 2  # each of two sides may begin at 0
        digits = digits_of_first(part) + digits_of_first(rows - part)
        return ColumnSize(digits, digits, rows * graph.id_dtype.itemsize)
    size = text_bytes(graph)
    return ColumnSize(size, size, size)
