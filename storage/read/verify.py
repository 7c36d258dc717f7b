"""The story of verifying a graph: every checksum, and every promise that README.md makes about what lies under them.

The file is opened, which checks header, tables, stripes and places; then every chunk of every array is read, verified
and decoded (scan.py), degrees first, because rows come of them; edges are checked for order, range, sides and
weights, and both adjacencies for holding the same edges (edge_checks.py); at last the original ids. What is wrong is
listed, not raised, and a bad chunk does not hide the next one. Refuses to repair.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.storage.base.budget import cores
from penstock.storage.base.errors import DamagedError, RunError
from penstock.storage.base.threads import ThreadPool
from penstock.storage.encoding.unique_ids import repeated_name, repeated_number
from penstock.storage.format.frames import Frames
from penstock.storage.format.graph import Adjacency, Graph
from penstock.storage.format.index import Index
from penstock.storage.format.string_ids import NameFrames
from penstock.storage.read.edge_checks import EdgeFacts, facts_of
from penstock.storage.read.scan import Items, Scan, ScanProblem, Seen, reason

MOST_PROBLEMS = 100
"""Problems that are told one by one; the others are counted."""
Progress = Callable[[str, int, int], None]
"""progress(array, bytes read so far of all, bytes in all)."""


@dataclass(slots=True)
class Verdict:
    """What came of verifying: chunks, bytes and seconds it took, the first `MOST_PROBLEMS` problems, their number."""

    path: Path
    chunks: int = 0
    bytes: int = 0
    seconds: float = 0.0
    problems: list[ScanProblem] = field(default_factory=list)
    count: int = 0

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong."""
        return self.count == 0

    def note(self, problems: Iterable[ScanProblem]) -> None:
        """Take note of problems."""
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
) -> Verdict:
    """Read a whole graph and tell what is wrong with it.

    Memory: some 16 MiB a thread (by default twice the cores, at least 4), 4.1 bytes a vertex; original ids that
    do not rise (hubs first) 16 bytes a vertex, names all of theirs.

    Raises:
        InputError: there is no such file, it is no graph, or of a newer version.
    """
    began = time.perf_counter()
    verdict = Verdict(path)
    try:
        graph = Graph.open(path, stripes=stripes)
    except DamagedError as error:
        verdict.note([ScanProblem(str(path), reason(error))])
    else:
        workers = threads or max(4, 2 * cores())
        with ThreadPool(workers, "verify") as pool:
            _Inspection(graph, verdict, (pool, workers, direct_io), progress).run()
    verdict.seconds = time.perf_counter() - began
    return verdict


@dataclass(slots=True)
class _Sums:
    """All edges of an adjacency mixed and added up, as they lie and turned round."""

    ahead: int = 0
    against: int = 0

    def add(self, facts: EdgeFacts) -> None:
        self.ahead = (self.ahead + facts.ahead) % (1 << 64)
        self.against = (self.against + facts.against) % (1 << 64)


class _Inspection:
    """One graph under verification."""

    def __init__(self, graph: Graph, verdict: Verdict, means: tuple[ThreadPool, int, bool], progress: Progress) -> None:
        self.graph, self.verdict, self.progress = graph, verdict, progress
        self._pool, self._threads, self._direct = means
        self._total = sum(int(frames.lengths.sum()) for frames in self._arrays())

    def run(self) -> None:
        """Check everything."""
        sums = [self._adjacency(adjacency) for adjacency in self.graph.adjacencies]
        self._compare(sums)
        self._ids()

    def _arrays(self) -> list[Frames]:
        several = [(one.degrees, one.neighbors, one.weights) for one in self.graph.adjacencies]
        found = [frames for arrays in several for frames in arrays if frames is not None]
        original = self.graph.original
        if isinstance(original, NameFrames):
            found += [original.ends, original.text]
        elif isinstance(original, Frames):
            found.append(original)
        return found

    def _scan(self, arrays: Sequence[Frames], look: Callable[[int, Items], Any]) -> Iterator[Seen[Any]]:
        """Every chunk of arrays that go together; what is wrong with one is noted here."""
        name = " and ".join(frames.spec.path for frames in arrays)
        try:
            with Scan(arrays, self._pool, self._threads, direct_io=self._direct) as scan:
                for seen in scan.chunks(look):
                    self.verdict.chunks += len(arrays)
                    self.verdict.bytes += seen.bytes
                    self.verdict.note(seen.problems)
                    self.progress(name, self.verdict.bytes, self._total)
                    yield seen
        except RunError as error:
            self.verdict.note([ScanProblem(name, reason(error))])

    def _adjacency(self, adjacency: Adjacency) -> _Sums | None:
        """Check degrees and edges; the sums of all edges, None if some could not be read."""
        assert adjacency.degrees is not None
        assert adjacency.neighbors is not None
        sound = [seen.found is not None for seen in self._scan([adjacency.degrees], lambda chunk, items: True)]
        index = self._index(adjacency) if all(sound) else None
        arrays = [adjacency.neighbors] + ([] if adjacency.weights is None else [adjacency.weights])
        if index is None:
            for _ in self._scan(arrays, lambda chunk, items: True):
                pass
            return None
        rows, left = index, self.graph.left

        def look(chunk: int, items: Items) -> EdgeFacts:
            return facts_of(rows, chunk * adjacency.chunk_edges, items, left)

        return self._edges(adjacency, self._scan(arrays, look))

    def _index(self, adjacency: Adjacency) -> Index | None:
        """Where rows begin; None, and a problem, if the degrees are not those of the edges."""
        try:
            return adjacency.index()
        except RunError as error:
            self.verdict.note([ScanProblem(f"{adjacency.direction}/degrees", reason(error))])
            return None
        finally:
            adjacency.drop_index()

    def _edges(self, adjacency: Adjacency, chunks: Iterator[Seen[Any]]) -> _Sums | None:
        assert adjacency.neighbors is not None
        sums, whole = _Sums(), True
        last: tuple[int, int, float] | None = None
        low, high = float("inf"), float("-inf")
        for seen in chunks:
            facts: EdgeFacts | None = seen.found
            if facts is None:
                last, whole = None, False
                continue
            place = adjacency.neighbors.name(seen.chunk)
            follows = last is None or last[0] != facts.first[0] or last[1:] <= facts.first[1:]
            self.verdict.note(_complaints(place, facts, follows=follows, first=seen.chunk * adjacency.chunk_edges))
            sums.add(facts)
            last = facts.last
            low, high = min(low, facts.low), max(high, facts.high)
        if whole and adjacency.weights is not None and adjacency.edges:
            self._check_range(adjacency, low, high)
        return sums if whole else None

    def _check_range(self, adjacency: Adjacency, low: float, high: float) -> None:
        stated = self.graph.weight_range
        if stated is not None and (low, high) != (stated[0], stated[2]):
            what = f"weights go from {low:g} to {high:g}, and the header says from {stated[0]:g} to {stated[2]:g}"
            self.verdict.note([ScanProblem(f"{adjacency.direction}/weights", what)])

    def _compare(self, sums: list[_Sums | None]) -> None:
        """Whether both adjacencies hold the same edges; whether that of an undirected graph is its own reverse."""
        out = sums[0]
        other = out if not self.graph.directed else sums[1] if len(sums) > 1 else None
        if out is None or other is None or out.ahead == other.against:
            return
        what = "the out-adjacency and the in-adjacency do not hold the same edges"
        if not self.graph.directed:
            what = "the graph is undirected, but not every edge is in the rows of both its ends"
        self.verdict.note([ScanProblem(str(self.graph.path), what)])

    def _ids(self) -> None:
        """Whether original ids are distinct, and where ids were only reordered, a permutation."""
        original = self.graph.original
        if original is None:
            return
        arrays = [original.ends, original.text] if isinstance(original, NameFrames) else [original]
        sound = True
        for frames in arrays:
            assert isinstance(frames, Frames)
            for seen in self._scan([frames], lambda chunk, items: True):
                sound = sound and seen.found is not None
        if not sound:
            return
        try:
            self.verdict.note([ScanProblem("original_id", what) for what in self._id_complaints(original)])
        except RunError as error:
            self.verdict.note([ScanProblem("original_id", reason(error))])

    def _id_complaints(self, original: Any) -> Iterator[str]:
        graph = self.graph
        sides = [(0, graph.vertices)] if graph.left is None else [(0, graph.left), (graph.left, graph.vertices)]
        if isinstance(original, NameFrames):
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
        """Whether hubs were put in front and nothing else was done to ids: they are a permutation then."""
        options = self.graph.provenance.get("options")
        if not isinstance(options, dict):
            return False
        return bool(options.get("hub_sort")) and not (options.get("renumber") or options.get("bipartite"))


def _complaints(place: str, facts: EdgeFacts, *, follows: bool, first: int) -> Iterator[ScanProblem]:
    """What is wrong with a chunk whose frames are sound."""
    if not follows or facts.fall >= 0:
        edge = facts.fall if follows else first
        yield ScanProblem(place, f"edge {edge} belongs before the edge before it: its row is not sorted")
    if facts.stays >= 0:
        yield ScanProblem(place, f"edge {facts.stays} does not lead from a source to a target")
    if not facts.weights_are_finite:
        yield ScanProblem(place, "a weight is not finite")
