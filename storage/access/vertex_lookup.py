"""Finds the vertex that a user's id names. Refuses ids that the graph does not have, with the range of those it has."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.budget import cores
from penstock.storage.base.errors import InputError, brief, printable
from penstock.storage.base.threads import ROWS, map_ranges, ranges
from penstock.storage.encoding.string_array import NO_ORDER, string_array
from penstock.storage.tables.edge_pieces import StoredRows

KEPT = 64
"""Ids whose vertices a graph keeps, in some kilobytes: programs that start again from one of them read nothing."""
READ_AT_ONCE = 1 << 18
"""Ids of a graph that a thread reads at once: a chunk of a file's."""


class QueriedGraph(Protocol):
    """What queries and lookups need to know of a graph; see `Graph`."""

    @property
    def vertices(self) -> int:
        """Number of vertices."""

    @property
    def left(self) -> int | None:
        """Number of sources of a bipartite graph."""

    @property
    def original(self) -> Any:
        """The ids of the input, None where they are the internal ids."""

    @property
    def looked_up(self) -> dict[str, list[int]]:
        """The vertices of some ids that were looked up, by their texts: Python's True is the key 1."""

    @property
    def reordered(self) -> bool | None:
        """Whether vertices are in another order than that of their ids; None: it is not known."""

    @property
    def rising(self) -> int:
        """How many vertices, from 0 on, surely have ids that rise."""

    @property
    def id_dtype(self) -> np.dtype[Any]:
        """The dtype of original ids."""

    def original_ids(self) -> NDArray[Any] | None:
        """Return the ids of all vertices."""

    def original_ids_in(self, first: int, last: int) -> NDArray[Any]:
        """Return the ids of vertices first..last-1."""

    @property
    def directed(self) -> bool:
        """Whether edges have a direction."""

    @property
    def layout(self) -> str:
        """Whether edges are stored as "rows", or as a "list" in the order of the input."""

    @property
    def out(self) -> StoredRows:
        """Out-edges by row."""

    @property
    def into(self) -> StoredRows | None:
        """In-edges by row, None where they are not stored."""

    def original_ids_of(self, vertices: NDArray[Any]) -> NDArray[Any]:
        """Return the ids of some vertices."""


def internal_id(graph: QueriedGraph, original: int | str) -> int:
    """Internal id of one vertex; see `few_internal_ids`."""
    return few_internal_ids(graph, [original])[0]


def few_internal_ids(graph: QueriedGraph, originals: Sequence[int | str]) -> list[int]:
    """Internal ids of a few vertices, in their order; the graph's ids are read once at most.

    originals: numbers, or strings where ids are strings. In a bipartite graph `"source:7"` and `"target:7"` name a
    side, which an id that is on both needs. Raises InputError naming the first that the graph lacks.
    """
    asked = [side_of(graph, one) for one in originals]
    places = _places(graph, dict.fromkeys(plain for _, plain in asked)) if asked else {}
    found = []
    for original, (side, plain) in zip(originals, asked, strict=True):
        at = places[plain]
        if side is not None and graph.left is not None:
            at = [one for one in at if (one < graph.left) == (side == "source")]
        if len(at) != 1:
            raise _refusal(graph, printable(brief(str(original))), at)
        found.append(at[0])
    return found


def _refusal(graph: QueriedGraph, named: str, found: list[int]) -> InputError:
    """Why an id names no vertex, or two."""
    if found:
        return InputError(f"vertex {named} is on both sides of the graph; say source:{named} or target:{named}")
    if graph.vertices == 0:
        return InputError(f"vertex {named} is not in the graph: it has no vertices")
    if graph.original is None:
        return InputError(f"vertex {named} is not in the graph: its ids are 0 to {graph.vertices - 1}")
    first, last = _ends(graph)
    return InputError(f"vertex {named} is not in the graph: its {graph.vertices} ids lie between {first} and {last}")


def side_of(graph: QueriedGraph, original: int | str) -> tuple[str | None, int | str]:
    """Which side of a bipartite graph is named, if one is, and the bare id."""
    if graph.left is not None and isinstance(original, str):
        side, colon, rest = original.partition(":")
        if colon and side in ("source", "target"):
            return side, rest
    return None, original


def is_number(value: int | str) -> bool:
    """Whether an id is a number, or a text of digits, no more of them than 2^64 has."""
    if isinstance(value, int | np.integer):
        return True
    return value.isascii() and value.isdigit() and len(value) <= len(str(1 << 64))


def _rising_on_disk(graph: QueriedGraph) -> bool:
    """Whether ids are numbers in a file that rise, on each side of a bipartite graph."""
    return graph.reordered is False and graph.id_dtype.kind != "T" and not isinstance(graph.original, np.ndarray)


def _places(graph: QueriedGraph, plain: Collection[int | str]) -> dict[int | str, list[int]]:
    """The vertices of each of some ids; those of a few that were looked up before are kept with the graph."""
    if graph.original is None:
        return {one: [int(one)] if is_number(one) and 0 <= int(one) < graph.vertices else [] for one in plain}
    kept = graph.looked_up
    found = {one: places for one in plain if (places := kept.get(str(one))) is not None}
    if others := [one for one in plain if one not in found]:
        found |= _read_places(graph, others)
        if len(kept) + len(others) > KEPT:
            kept.clear()
        kept.update((str(one), places) for one, places in found.items())
    return found


def _read_places(graph: QueriedGraph, plain: Collection[int | str]) -> dict[int | str, list[int]]:
    """The vertices of each of some ids, found by reading ids of the graph."""
    if _rising_on_disk(graph):
        return _bisected(graph, plain)
    if graph.id_dtype.kind != "T":
        ids = graph.original_ids()
        return {one: np.flatnonzero(ids == int(one)).tolist() if is_number(one) else [] for one in plain}
    if graph.reordered is False and not isinstance(graph.original, np.ndarray):
        names, left = graph.original.names(), graph.left or 0
        sides = [names.places(plain, span).tolist() for span in ((0, left), (left, graph.vertices))]
        return {one: [at for at in pair if at >= 0] for one, *pair in zip(plain, *sides, strict=True)}
    texts = {one: str(one) for one in plain if not any("\ud800" <= mark <= "\udfff" for mark in str(one))}
    found: dict[int | str, list[int]] = {one: [] for one in plain}
    for first, part in name_ranges(graph):
        for one, text in texts.items():
            found[one] += [first + at for at in np.flatnonzero(part == text).tolist()]
    return found


def vertices_of_ids(
    graph: QueriedGraph, wanted: NDArray[Any], side: tuple[int, int] | None = None
) -> NDArray[np.int64]:
    """Return the vertices of distinct ids, ascending numbers or strings; -1 for one that the graph lacks.

    Numbers are found as the ids of the graph are read, of which none are held. side: which vertices, first and past the
    last, are meant. Raises RunError where ids cannot be read.
    """
    first, last = (0, graph.vertices) if side is None else side
    found = np.full(len(wanted), -1, np.int64)
    if graph.original is None:
        known = wanted < last
        found[known] = wanted[known]
        return found
    if graph.id_dtype.kind == "T":
        stored, rising = graph.original, min(max(graph.rising, first), last)
        names = string_array(stored) if isinstance(stored, np.ndarray) else stored.names()
        order = np.argsort(names.taken(np.arange(rising, last)).strings(), kind="stable")
        for span, sorter in (((first, rising), NO_ORDER), ((rising, last), order)):
            found = np.maximum(found, names.places(wanted.tolist(), span, sorter))
        return found

    def look(begin: int, end: int) -> None:
        ids = graph.original_ids_in(first + begin, first + end)
        at = np.minimum(np.searchsorted(wanted, ids), len(wanted) - 1)
        here = np.flatnonzero(wanted[at] == ids)
        found[at[here]] = first + begin + here

    if len(wanted):
        map_ranges(look, last - first, READ_AT_ONCE, cores())
    return found


def _bisected(graph: QueriedGraph, plain: Collection[int | str]) -> dict[int | str, list[int]]:
    """The vertices of each of some ids, found by reading a few chunks of rising ids, each once for all of them."""
    largest = np.iinfo(graph.id_dtype).max
    numbers = {one: int(one) for one in plain if is_number(one) and 0 <= int(one) <= largest}
    places: dict[int, list[int]] = {number: [] for number in numbers.values()}
    size: int = graph.original.spec.chunk_items
    wanted, left = np.array(sorted(places), graph.id_dtype), graph.left or 0
    spans = [(0, left, wanted), (left, graph.vertices, wanted)]
    while spans:
        low, end, wanted = spans.pop()
        if low < end and len(wanted):
            chunk = (low + end) // 2 // size * size
            first, last = max(low, chunk), min(end, chunk + size)
            ids = graph.original_ids_in(first, last)
            for number, at in zip(wanted.tolist(), np.searchsorted(ids, wanted).tolist(), strict=True):
                if at < len(ids) and ids[at] == number:
                    places[number].append(first + at)
            spans += [(low, first, wanted[wanted < ids[0]]), (last, end, wanted[wanted > ids[-1]])]
    return {one: places[numbers[one]] if one in numbers else [] for one in plain}


def name_ranges(graph: QueriedGraph, size: int = ROWS) -> Iterator[tuple[int, NDArray[Any]]]:
    """Names of ranges of vertices, and the first of each; all are read, and few of them are NumPy's strings at once."""
    stored = graph.original
    held = stored.names() if hasattr(stored, "names") else None
    for first, last in ranges(graph.vertices, size):
        found = graph.original_ids_in(first, last) if held is None else held.taken(np.arange(first, last)).strings()
        yield first, found


def _ends(graph: QueriedGraph) -> tuple[str, str]:
    """The first and the last id as messages name them; of a bipartite graph those of the first and the last vertex."""
    if _rising_on_disk(graph) or graph.left is not None:
        ends = [graph.original_ids_in(vertex, vertex + 1)[0] for vertex in (0, graph.vertices - 1)]
    elif graph.id_dtype.kind != "T":
        ids = graph.original_ids()
        assert ids is not None, "numbers of vertices are not looked up"
        ends = [ids.min(), ids.max()]
    else:
        parts = [(min(names), max(names)) for names in (names.tolist() for _, names in name_ranges(graph))]
        ends = [min(first for first, _ in parts), max(last for _, last in parts)]
    first, last = (printable(brief(str(end))) for end in ends)
    return first, last
