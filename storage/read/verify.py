"""Verifying a graph: every checksum, and everything that README.md promises of what is under them.

The file is opened, which checks header, tables, stripes and places; then every chunk of every array is read, verified
and decoded (scan.py), degrees first, because rows come of them; edges are checked for order, range, sides and
weights, and both adjacencies, and the windows of each, for holding the same edges (checks.py); at last original ids and
properties. What is wrong is listed, not raised, and a bad chunk does not hide the next one. Nothing is repaired.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from penstock.storage.base.budget import cores
from penstock.storage.base.errors import DamagedError, InputError, RunError
from penstock.storage.base.threads import ThreadPool, pooled_map
from penstock.storage.format.degrees import ListFacts
from penstock.storage.format.frames import Frames, StringIdFrames
from penstock.storage.format.graph import Adjacency, Graph
from penstock.storage.format.index import Index
from penstock.storage.format.schema import DIRECTIONS, EXTRACTED, NEW_IDS
from penstock.storage.read.checks import (
    ChunkChecks,
    ListInspection,
    check_edges,
    first_of,
    is_bounded,
    repeated_name,
    repeated_number,
)
from penstock.storage.read.scan import GraphProblem, Items, Scan, ScannedChunk, reason
from penstock.storage.tables.properties import open_properties, property_path

T = TypeVar("T")
Sums = tuple[int, int, int, int]
"""Of all edges and of all reversed, with their weights; the same with each of the columns beside them."""
MOST_PROBLEMS = 100
"""Problems that are listed one by one; the others are counted."""
Progress = Callable[[str, int, int], None]  # of an array, bytes read so far of all, bytes in all


@dataclass(slots=True)
class VerifyResult:
    """What came of verifying: chunks, bytes and seconds it took, the first `MOST_PROBLEMS` problems, their number."""

    path: Path
    chunks: int = 0
    bytes: int = 0
    seconds: float = 0.0
    problems: list[GraphProblem] = field(default_factory=list)
    count: int = 0

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong."""
        return self.count == 0

    def note(self, *problems: GraphProblem) -> None:
        """Add problems."""
        for problem in problems:
            self.count += 1
            if len(self.problems) < MOST_PROBLEMS:
                self.problems.append(problem)


def verify(
    path: Path,
    *,
    stripes: Sequence[Path] = (),
    threads: int | None = None,
    direct_io: bool = False,
    progress: Progress = lambda array, done, total: None,
) -> VerifyResult:
    """Read a whole graph and tell what is wrong with it.

    Memory: some 16 MiB a thread (by default twice the cores, at least 4), 4.1 bytes a vertex, of a list 10, and 16 for
    each block; original ids that do not rise (`--order`), or have properties, 16 bytes a vertex, names all of theirs.

    Raises:
        InputError: there is no such file, it is no graph, or of a newer version.
    """
    began = time.perf_counter()
    result = VerifyResult(path)
    try:
        graph = Graph.open(path, stripes=stripes)
    except DamagedError as error:
        result.note(GraphProblem(str(path), reason(error)))
    else:
        workers = threads or max(4, 2 * cores())
        with ThreadPool(workers, "verify") as pool:
            scan = partial(Scan, pool=pool, threads=workers, direct_io=direct_io)
            _Inspection(graph, result, scan, progress).run()
        result.note(*property_problems(graph))
    result.seconds = time.perf_counter() - began
    return result


class _Inspection:
    """One graph under verification; ``scan`` opens a `Scan` of arrays that go together."""

    def __init__(
        self, graph: Graph, result: VerifyResult, scan: Callable[[Sequence[Frames]], Scan], progress: Progress
    ) -> None:
        self.graph, self.result, self.progress = graph, result, progress
        self._open_scan = scan
        arrays = [frames for a in graph.all_rows for frames in (a.degrees, a.neighbors, a.weights)]
        arrays += self._list_arrays()
        arrays += [frames for a in graph.adjacencies for one in a.columns for frames in (one.frames, one.bounds)]
        self._total = sum(int(frames.lengths.sum()) for frames in (*arrays, *self._id_arrays()) if frames is not None)

    def run(self) -> None:
        """Check everything but properties."""
        if self.graph.listed is not None:
            self._list(self.graph.listed)
        else:
            sums = [self._adjacency(adjacency) for adjacency in self.graph.adjacencies]
            self._compare(sums)
            for adjacency, found in zip(self.graph.adjacencies, sums, strict=True):
                self._windows(adjacency, found)
        self._ids()

    def _list_arrays(self) -> list[Frames]:
        """What a list has beside its edges."""
        listed = self.graph.listed
        if listed is None:
            return []
        return [frames for frames in (listed.spans, *listed.degrees.values()) if isinstance(frames, Frames)]

    def _list(self, listed: ListFacts) -> None:
        """Check the edges of a list, then the degrees that they have."""
        out, sound = self.graph.out, [self._sound([frames]) for frames in self._list_arrays()]
        assert out.neighbors is not None
        arrays = [out.neighbors] + ([] if out.weights is None else [out.weights])
        if not all(sound):
            self._sound(arrays)
            return
        inspection = ListInspection(self.graph, listed.read_spans(), degrees=bool(listed.degrees))
        found = [(seen.chunk, seen.found) for seen in self._scan(arrays, inspection.look)]
        checks = [facts for _, facts in found if facts is not None]
        for chunk, facts in found:
            if facts is not None:
                self.result.note(*_complaints(out.neighbors.name(chunk), facts))
        if len(checks) < len(found):
            return
        loops = sum(facts.self_loops for facts in checks)
        if loops != listed.self_loops:
            what = f"{loops} edges lead from a vertex to itself, and the header says {listed.self_loops}"
            self.result.note(GraphProblem(str(self.graph.path), what))
        if out.weights is not None and checks:
            self._weights_in_range("out", min(facts.low for facts in checks), max(facts.high for facts in checks))
        for number, frames in enumerate(listed.degrees.values()):
            if isinstance(frames, Frames):
                self._degrees(inspection, number, frames)

    def _degrees(self, inspection: ListInspection, number: int, frames: Frames) -> None:
        """Compare the degrees of one direction with those counted."""
        for chunk, items in enumerate(frames.load()):
            vertex = inspection.wrong_degrees(number, chunk * frames.spec.chunk_items, items)
            if vertex >= 0:
                self.result.note(
                    GraphProblem(frames.name(chunk), f"the degree of vertex {vertex} is not that of its edges")
                )

    def _weights_in_range(self, direction: str, low: float, high: float) -> None:
        stated = self.graph.weight_range
        spliced = self.graph.out.splice is not None  # a removed weight may have been the least, or the greatest
        if stated and (low, high) != stated[::2] and not (spliced and stated[0] <= low and high <= stated[2]):
            what = f"weights go from {low:g} to {high:g}, and the header says from {stated[0]:g} to {stated[2]:g}"
            self.result.note(GraphProblem(f"{direction}/weights", what))

    def _id_arrays(self) -> tuple[Frames, ...]:
        original = self.graph.original
        assert not isinstance(original, np.ndarray), "a graph in memory is not verified"
        return () if original is None else original.arrays

    def _scan(self, arrays: Sequence[Frames], look: Callable[[int, Items], T]) -> Iterator[ScannedChunk[T]]:
        """Every chunk of arrays that go together; what is wrong with one is noted here."""
        name = " and ".join(frames.spec.path for frames in arrays)
        try:
            with self._open_scan(arrays) as scan:
                for seen in scan.chunks(look):
                    self.result.chunks += len(arrays)
                    self.result.bytes += seen.bytes
                    self.result.note(*seen.problems)
                    self.progress(name, self.result.bytes, self._total)
                    yield seen
        except RunError as error:
            self.result.note(GraphProblem(name, reason(error)))

    def _sound(self, arrays: Sequence[Frames]) -> bool:
        """Read arrays whose items are not checked here; whether every chunk is sound."""
        sound = [seen.found is not None for seen in self._scan(arrays, lambda chunk, items: True)]
        return all(sound)

    def _adjacency(self, adjacency: Adjacency, number: int | None = None) -> Sums | None:
        """Check degrees and edges; the hash sums of all edges and of all reversed, None if some could not be read.

        number: of the window to which all edges lead, if it is one's.
        """
        assert adjacency.degrees is not None
        assert adjacency.neighbors is not None
        index = self._index(adjacency) if self._sound([adjacency.degrees]) else None
        arrays = [adjacency.neighbors] + ([] if adjacency.weights is None else [adjacency.weights])
        own, columns = len(arrays), adjacency.columns
        arrays += [column.frames for column in columns]
        bounds = [column.bounds.whole().reshape(-1, 2) for column in columns if self._sound([column.bounds])]
        if index is None:
            self._sound(arrays)
            return None
        rows, left, size = index, self.graph.left, adjacency.window_vertices

        def look(chunk: int, items: Items) -> ChunkChecks:
            first = chunk * adjacency.chunk_edges
            facts = check_edges(rows, first, items[:own], left, items[own:])
            if len(bounds) == len(columns):
                wrong = [
                    not is_bounded(held, stated[chunk], nulls=bool(column.property.nulls))
                    for held, stated, column in zip(items[own:], bounds, columns, strict=True)
                ]
                facts = replace(facts, unbounded=wrong.index(True) if any(wrong) else -1)
            if number is None:
                return facts
            outside = (items[0] < number * size) | (items[0] >= (number + 1) * size)
            return replace(facts, outside=first_of(outside, first))

        if adjacency.splice is None:
            return self._edges(adjacency, adjacency.neighbors.name, self._scan(arrays, look))
        if not self._sound(arrays):
            return None
        place = f"{adjacency.direction}-edges of {self.graph.path} from chunk "
        return self._edges(adjacency, lambda chunk: f"{place}{chunk}", self._spliced(adjacency, look))

    def _spliced(self, adjacency: Adjacency, look: Callable[[int, Items], T]) -> Iterator[ScannedChunk[T]]:
        """Every chunk of edges that a splice puts together of sound ones."""
        size = adjacency.chunk_edges

        def seen(chunk: int) -> ScannedChunk[T]:
            neighbors, weights = adjacency.edges_in(chunk * size, min((chunk + 1) * size, adjacency.edges))
            return ScannedChunk(chunk, look(chunk, (neighbors,) if weights is None else (neighbors, weights)), 0, ())

        yield from pooled_map(seen, range(adjacency.chunks), None, "verify")

    def _windows(self, adjacency: Adjacency, whole: Sums | None) -> None:
        """Check the windows of an adjacency, which together hold its edges; whole: what `_adjacency` found of it."""
        sums = [self._adjacency(window, number) for number, window in enumerate(adjacency.windows)]
        found = [one for one in sums if one is not None]
        if whole is None or not sums or len(found) < len(sums):
            return
        if sum(one[0] for one in found) % (1 << 64) != whole[0]:
            what = f"the windows of the {adjacency.direction}-adjacency do not hold its edges"
            self.result.note(GraphProblem(str(self.graph.path), what))

    def _index(self, adjacency: Adjacency) -> Index | None:
        """Where rows begin; None, and a problem, if the degrees are not those of the edges."""
        try:
            return adjacency.index()
        except RunError as error:
            self.result.note(GraphProblem(f"{adjacency.direction}/degrees", reason(error)))
            return None
        finally:
            adjacency.drop_index()

    def _edges(
        self, adjacency: Adjacency, name: Callable[[int], str], chunks: Iterator[ScannedChunk[ChunkChecks]]
    ) -> Sums | None:
        forward = backward = kept = kept_backward = 0
        whole = True
        last: tuple[int, int, float] | None = None
        low, high = float("inf"), float("-inf")
        for seen in chunks:
            facts = seen.found
            if facts is None:
                last, whole = None, False
                continue
            follows = last is None or last[0] != facts.first[0] or last[1:] <= facts.first[1:]
            first = seen.chunk * adjacency.chunk_edges
            self.result.note(*_complaints(name(seen.chunk), facts, follows=follows, first=first))
            forward = (forward + facts.hash_sum) % (1 << 64)
            backward = (backward + facts.reversed_hash_sum) % (1 << 64)
            kept, kept_backward = kept + facts.kept_sum, kept_backward + facts.reversed_kept_sum
            if facts.unbounded >= 0:
                what = "its least or greatest value is not the one that the file states"
                self.result.note(GraphProblem(adjacency.columns[facts.unbounded].frames.name(seen.chunk), what))
            last = facts.last
            low, high = min(low, facts.low), max(high, facts.high)
        of_all = adjacency.direction in DIRECTIONS  # the range in the header is not that of a window
        if whole and of_all and adjacency.weights is not None and adjacency.edges:
            self._weights_in_range(adjacency.direction, low, high)
        return (forward, backward, kept % (1 << 64), kept_backward % (1 << 64)) if whole else None

    def _compare(self, sums: list[Sums | None]) -> None:
        """Whether both adjacencies hold the same edges; whether that of an undirected graph is its own reverse."""
        out = sums[0]
        other = out if not self.graph.directed else sums[1] if len(sums) > 1 else None
        if out is None or other is None or (out[0], out[2]) == (other[1], other[3]):
            return
        what = "the out-adjacency and the in-adjacency do not hold the same edges"
        if not self.graph.directed:
            what = "the graph is undirected, but not every edge is in the rows of both its ends"
        self.result.note(GraphProblem(str(self.graph.path), what))

    def _ids(self) -> None:
        """Whether original ids are distinct, and where ids were only reordered, a permutation."""
        sound = [self._sound([frames]) for frames in self._id_arrays()]
        if not sound or not all(sound):
            return
        try:
            self.result.note(*(GraphProblem("original_id", what) for what in self._id_complaints()))
        except RunError as error:
            self.result.note(GraphProblem("original_id", reason(error)))

    def _id_complaints(self) -> Iterator[str]:
        graph, original = self.graph, self.graph.original
        sides = [(0, graph.vertices)] if graph.left is None else [(0, graph.left), (graph.left, graph.vertices)]
        if isinstance(original, StringIdFrames):
            names = original.names()
            for first, last in sides:
                name = repeated_name(names, first, last)
                if name is not None:
                    yield f"the id {name!r} occurs twice"
            return
        ids = graph.original_ids()
        assert ids is not None
        for first, last in sides:
            number = repeated_number(ids[first:last])
            if number is not None:
                yield f"the id {number} occurs twice"
        if self._only_reordered and len(ids) and int(ids.max()) >= graph.vertices:
            yield f"the id {int(ids.max())} is no vertex, though vertices were only reordered"

    @property
    def _only_reordered(self) -> bool:
        """Whether vertices were ordered, all of them stayed and ids are as they were: they are a permutation then."""
        made = self.graph.provenance
        options = made.get("options")
        changed = isinstance(options, dict) and any(options.get(name) for name in NEW_IDS)
        return bool(self.graph.reordered) and not changed and EXTRACTED not in made


def _complaints(place: str, facts: ChunkChecks, *, follows: bool = True, first: int = 0) -> Iterator[GraphProblem]:
    """What is wrong with a chunk whose frames are sound, and whose first edge is the ``first``."""
    if facts.wrong_span >= 0:
        yield GraphProblem(place, f"block {facts.wrong_span} has vertices that its span does not say")
    if not follows or facts.unsorted >= 0:
        edge = facts.unsorted if follows else first
        yield GraphProblem(place, f"edge {edge} belongs before the edge before it: its row is not sorted")
    if facts.same_side >= 0:
        yield GraphProblem(place, f"edge {facts.same_side} does not lead from a source to a target")
    if facts.outside >= 0:
        yield GraphProblem(place, f"edge {facts.outside} does not lead to the window")
    if not (np.isfinite(facts.low) and np.isfinite(facts.high)):
        yield GraphProblem(place, "a weight is not finite")


def property_problems(graph: Graph) -> Iterator[GraphProblem]:
    """Read all properties of a graph's vertices; they belong to its ids, in ascending order."""
    if graph.path is None or not graph.properties:
        return
    place = str(property_path(graph.path))
    try:
        properties = open_properties(graph.path, graph.provenance, graph.vertices)
        stored = graph.original_ids()
        wanted = np.arange(graph.vertices, dtype=np.uint64) if stored is None else np.sort(stored)
        first = 0
        for ids in properties.checked_ids():
            if not np.array_equal(ids, wanted[first : first + len(ids)]):
                yield GraphProblem(place, f"rows {first} to {first + len(ids) - 1} are not those of the graph's ids")
            first += len(ids)
    except (InputError, RunError) as error:
        yield GraphProblem(place, str(error))
