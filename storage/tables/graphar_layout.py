"""Owns how Apache GraphAr lays a graph out: YAML files name types of vertices and edges, whose columns are in chunks.

A chunk is a file of so many rows, Parquet or CSV. Vertices are numbered from 0 and stored in that order, a folder a
group of properties. Edges are stored by the chunk of their source (or target) vertices, a folder each, which chunks of
edges have files in; those of properties have the same rows. Counts are files of 8 bytes, little-endian.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from penstock.storage.base.errors import InputError, brief, installing
from penstock.storage.base.places import Address, FilePlace, asking, open_stored

ENDS = "_graphArSrcIndex", "_graphArDstIndex"
INDEX = "_graphArVertexIndex"
KINDS = ("parquet", "csv")
LARGEST = 1 << 20
"""Bytes of a YAML file, at most."""
_LISTS = {
    (True, "src"): "ordered_by_source/",
    (False, "src"): "unordered_by_source/",
    (True, "dst"): "ordered_by_dest/",
    (False, "dst"): "unordered_by_dest/",
}
"""Adjacency lists in the order in which they are preferred, and their folders unless they say another."""


@dataclass(frozen=True, eq=False)
class Group:
    """Columns that are stored together: their folder, the format of its chunks, and GraphAr's types by name."""

    folder: FilePlace
    kind: str
    types: Mapping[str, str]


@dataclass(frozen=True)
class VertexType:
    """Vertices of a type: how many, how many a chunk, the folder and the groups of their properties."""

    name: str
    count: int
    chunk_rows: int
    folder: FilePlace
    groups: tuple[Group, ...]

    @property
    def properties(self) -> tuple[str, ...]:
        """The names of properties that are numbers or text, and no lists."""
        return tuple(name for group in self.groups for name, kind in group.types.items() if kind[:4] != "list")


@dataclass(frozen=True)
class EdgeType:
    """Edges of a type, by one of their adjacency lists, whose columns are first among the groups.

    ends: types of vertices; vertices: of the end whose chunks divide the edges; counts: the edges of each such chunk.
    """

    ends: tuple[str, str]
    directed: bool
    vertices: int
    chunk_rows: int
    counts: tuple[int, ...]
    groups: tuple[Group, ...]

    def chunks(self) -> Iterator[tuple[str, int]]:
        """Yield the name of every chunk below the folder of a group, and its rows."""
        for part, count in enumerate(self.counts):
            for chunk, first in enumerate(range(0, count, self.chunk_rows)):
                yield f"part{part}/chunk{chunk}", min(self.chunk_rows, count - first)


def yaml_of(place: FilePlace) -> Any:
    """PyYAML. Raises InputError where it is not installed."""
    try:
        return import_module("yaml")
    except ImportError:
        raise InputError(f"{place} is YAML, which the package pyyaml reads; {installing('tables')}") from None


def described(place: FilePlace) -> dict[str, Any]:
    """What a YAML file says. Raises InputError for one that is not of version 1 of GraphAr."""
    yaml = yaml_of(place)
    text = _bytes_of(place, LARGEST + 1)
    try:
        found = None if len(text) > LARGEST else yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise InputError(f"{place} is no readable YAML: {brief(str(error).partition(chr(10))[0])}; mend it") from error
    if not isinstance(found, dict) or not str(found.get("version")).startswith("gar/v1"):
        raise InputError(f"{place} does not say version: gar/v1, so it is no file of Apache GraphAr that can be read")
    return found


def vertex_type(place: FilePlace) -> VertexType:
    """The vertices that a `.vertex.yml` describes. Raises InputError."""
    facts = described(place)
    with _reading(place):
        folder = place.parent / str(facts.get("prefix") or f"vertex/{facts['type']}/")
        groups = tuple(_group(folder, group, place) for group in facts.get("property_groups") or ())
        return VertexType(
            str(facts["type"]), _count(folder / "vertex_count"), _positive(facts["chunk_size"]), folder, groups
        )


def edge_type(place: FilePlace) -> EdgeType:
    """The best adjacency list that a `.edge.yml` describes, or a `.graph.yml` with one type of edges.

    Raises
    ------
    InputError
        There are several types, no list, or a file is not as GraphAr has it.
    """
    facts = described(place)
    if "edges" in facts:
        named = facts["edges"] or []
        if not isinstance(named, list) or len(named) != 1:
            listed = brief(", ".join(map(str, named))) or "none"
            raise InputError(f"{place} has {len(named)} types of edges ({listed}); name the file of one")
        return edge_type(place.parent / str(named[0]))
    with _reading(place):
        lists = {(bool(one["ordered"]), one["aligned_by"]): one for one in facts["adj_lists"]}
        kind = next(kind for kind in _LISTS if kind in lists)
        folder = place.parent / str(
            facts.get("prefix") or f"edge/{facts['src_type']}_{facts['edge_type']}_{facts['dst_type']}/"
        )
        folder /= str(lists[kind].get("prefix") or _LISTS[kind])
        edges = Group(folder / "adj_list", _chunk_kind(lists[kind], place), dict.fromkeys(ENDS, "int64"))
        groups = (_group(folder, group, place) for group in facts.get("property_groups") or ())
        vertices, rows = _count(folder / "vertex_count"), _positive(facts[f"{kind[1]}_chunk_size"])
        return EdgeType(
            (str(facts["src_type"]), str(facts["dst_type"])),
            bool(facts.get("directed", False)),
            vertices,
            _positive(facts["chunk_size"]),
            tuple(_count(folder / f"edge_count{part}") for part in range(-(-vertices // rows))),
            (edges, *groups),
        )


@contextmanager
def _reading(place: FilePlace) -> Iterator[None]:
    """Make an InputError of what a YAML file lacks or has in another form."""
    try:
        yield
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError, StopIteration) as error:
        reason = brief(f"{type(error).__name__} {error}")
        raise InputError(f"{place} is not as GraphAr describes a type ({reason}); mend it") from error


def _group(folder: FilePlace, facts: Mapping[str, Any], place: FilePlace) -> Group:
    types = {str(one["name"]): str(one["data_type"]) for one in facts["properties"]}
    return Group(folder / str(facts.get("prefix") or f"{'_'.join(types)}/"), _chunk_kind(facts, place), types)


def _chunk_kind(facts: Mapping[str, Any], place: FilePlace) -> str:
    kind = str(facts.get("file_type"))
    if kind not in KINDS:
        raise InputError(f"{place}: its chunks are {brief(kind)}, and {' and '.join(KINDS)} are read; write it so")
    return kind


def _positive(value: Any) -> int:
    if not 1 <= int(value) < 1 << 63:
        raise ValueError(f"{value} rows in a chunk")
    return int(value)


def _count(place: FilePlace) -> int:
    data = _bytes_of(place, 9)
    if len(data) != 8 or data[7] > 127:
        raise InputError(f"{place} is no count of 8 bytes; write the graph again")
    return int.from_bytes(data, "little")


def _bytes_of(place: FilePlace, most: int) -> bytes:
    with asking(place):
        file: Any = open_stored(place, ordered=False)[0] if isinstance(place, Address) else place.open("rb")
        with file:
            return bytes(file.read(most))
