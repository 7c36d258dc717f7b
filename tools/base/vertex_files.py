"""Files of vertices: one id on each line, two, or one and a number.

Lines are looked up some at a time, so that memory holds the numbers of the vertices, and no text of the file.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from penstock.engine.program.vertex_ids import VertexFinder, VertexReferences
from penstock.storage.access.vertex_lookup import internal_id
from penstock.storage.base.errors import InputError, brief
from penstock.storage.format.graph import Graph
from penstock.storage.ingest.bytes.file import open_text
from penstock.tools.base.find_program import is_negative, read_vertex

LONGEST_LINE = 1 << 20
"""Characters of the longest line of a file that gives vertices."""
HEADS = (("source", "target"), ("vertex", "other"), ("u", "v"), ("from", "to"))
"""First lines that name columns."""

BATCH = 1 << 14
"""Lines of a file of ids that are looked up at once: what Python has of these is small."""

Line = tuple[int, list[int | str], float]
"""The number of a line, the ids on it, and a value."""


def read_sources(path: Path, graph: Graph) -> VertexReferences:
    """Read vertices, one id on each line, in their order. Raises InputError as `read_pairs`."""
    return VertexReferences(graph, _vertices(graph, path, _source_lines(path), graph.vertex_dtype))


def _source_lines(path: Path) -> Iterator[Line]:
    empty = True
    for number, line in lines_of(path, "sources"):
        if is_negative(text := line.strip()):
            raise InputError(f"{path}:{number}: {brief(text)} is negative, and no vertex has such an id")
        if text:
            empty = False
            yield number, [read_vertex(text)], 0.0
    if empty:
        raise InputError(f"--sources {path} has no line; give one vertex id on each")


def read_pairs(path: Path, graph: Graph) -> VertexReferences:
    """Read pairs of ids, (n, 2); a first line that names the columns is left out, and so are columns after the second.

    Raises InputError for a file that cannot be read, that has no pair, or a line that is none, and for strangers.
    """
    return VertexReferences(graph, _vertices(graph, path, _pair_lines(path), np.int64).reshape(-1, 2))


def _pair_lines(path: Path) -> Iterator[Line]:
    empty = True
    for number, line in lines_of(path, "pairs"):
        if not line.strip() or line.startswith("#"):
            continue
        between = next((mark for mark in ",;\t" if mark in line), None)
        try:
            cells = line.split() if between is None else next(csv.reader([line], delimiter=between))
        except csv.Error as error:
            raise InputError(f"{path}:{number}: {brief(line)!r} is no line of CSV: {error}") from error
        parts = [cell.strip() for cell in cells]
        if number == 1 and tuple(part.lower() for part in parts[:2]) in HEADS:
            continue
        if len(parts) < 2 or not parts[0] or not parts[1]:
            raise InputError(f"{path}:{number}: {brief(line)!r} is no pair; write two ids, as in 3,17")
        if is_negative(parts[0]) or is_negative(parts[1]):
            raise InputError(f"{path}:{number}: {brief(line)!r} has a negative number, and no vertex has such an id")
        empty = False
        yield number, [read_vertex(parts[0]), read_vertex(parts[1])], 0.0
    if empty:
        raise InputError(f"--pairs {path} has no pair; write two ids on each line")


def read_values(path: Path, name: str, graph: Graph) -> NDArray[np.float64]:
    """Read a file of numbers of vertices, the parameter `name`: float64 (vertices,), by internal id.

    Of `personalization` they are weights, 1 where a line has none, which are added up; 0 where there is no line. Of
    others each vertex has one, NaN where there is none, and the first line may be the header of an answer,
    `vertex,NAME`.

    Raises InputError where it cannot be read, a line is not that, or the graph lacks a vertex.
    """
    weights = name == "personalization"
    found = np.full(graph.vertices, 0.0 if weights else np.nan)
    lines = _lines(path, name, "a weight", 1.0) if weights else _lines(path, name, "a value", None)
    for batch, places in _batches(graph, path, lines):
        values = [value for _, _, value in batch]
        if weights:
            np.add.at(found, places, values)
            continue
        for (number, ids, value), place in zip(batch, places.tolist(), strict=True):
            if not np.isnan(found[place]):
                raise InputError(
                    f"{path}:{number}: vertex {brief(str(ids[0]))} has a value already, {found[place]:g}; give it one"
                )
            found[place] = value
    return found


def _vertices(graph: Graph, path: Path, lines: Iterator[Line], dtype: DTypeLike) -> NDArray[Any]:
    """The vertices of all lines."""
    return np.concatenate([places.astype(dtype) for _, places in _batches(graph, path, lines)])


def _batches(graph: Graph, path: Path, lines: Iterator[Line]) -> Iterator[tuple[list[Line], NDArray[np.int64]]]:
    """Lines, some at a time, with the vertices of their ids. Raises InputError, naming the line, for strangers."""
    finder = VertexFinder(graph)
    while batch := list(islice(lines, BATCH)):
        places = finder.found([one for _, ids, _ in batch for one in ids])
        for stranger in np.flatnonzero(places < 0)[:1].tolist():
            number, ids, _ = batch[stranger // len(batch[0][1])]
            try:
                internal_id(graph, ids[stranger % len(ids)])
            except InputError as error:
                raise InputError(f"{path}:{number}: {error}") from None
        yield batch, places


def is_header(words: list[str]) -> bool:
    """Whether a line is the first one of an answer in CSV."""
    return len(words) == 2 and words[0] == "vertex" and words[1].isidentifier() and words[1].lower() != "nan"


def _lines(path: Path, name: str, what: str, missing: float | None) -> Iterator[Line]:
    """The lines of a file with an id and a number; missing: the number where there is none, None: an error."""
    for number, line in lines_of(path, name):
        words = line.partition("#")[0].replace(",", " ").split()
        if not words or (missing is None and number == 1 and is_header(words)):
            continue
        try:
            value = float(words[1]) if len(words) > 1 or missing is None else missing
        except (ValueError, IndexError):
            value = float("nan")
        wrong = not math.isfinite(value) or (missing is not None and value < 0)
        if is_negative(words[0]) or len(words) > 2 or wrong:
            raise InputError(f"{path}:{number}: {brief(line.strip())!r} is not a vertex id and {what}, such as 42 0.5")
        yield number, [read_vertex(words[0])], value


def lines_of(path: Path, name: str) -> Iterator[tuple[int, str]]:
    """The lines of a text file, and their numbers from 1. Raises InputError naming the option that takes the file."""
    try:
        with open_text(path) as file:
            for number in count(1):
                line = file.readline(LONGEST_LINE + 1)
                if len(line) > LONGEST_LINE:
                    raise InputError(f"{path}: line {number} is longer than {LONGEST_LINE} characters")
                if not line:
                    return
                yield number, line.rstrip("\n")
    except InputError as error:
        raise InputError(f"--{name.replace('_', '-')} {error}") from error
