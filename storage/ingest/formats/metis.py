"""METIS, undirected: a header, then line i (from 1) with the neighbors of vertex i, their weights if FMT says so.

The header is ``N M [FMT [NCON]]``: FMT's digits say whether a line begins with the vertex's size (hundreds),
with NCON vertex weights (tens; both are passed), and whether every neighbor is followed by the
edge's weight (ones); so METIS' manual (Karypis and Kumar). ``%`` begins a comment; an empty line is a
vertex without edges. Every edge stands in the rows of both its ends, and that is checked: M must be the
number of edges, and what the rows say forward they must say backward (sums of hashes are compared, so
nothing is kept). Where the two weights of an edge differ, that in the row of the smaller end counts.
"""

import threading
from collections.abc import Generator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.base.jit import jit
from penstock.storage.base.places import Place
from penstock.storage.ingest.bytes.blocks import Bytes, lines_of
from penstock.storage.ingest.core.edges import EdgeBatch
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.text.diagnose import is_data, shown, whole_number
from penstock.storage.ingest.text.edge_list import TextFile
from penstock.storage.ingest.text.row_lists import RowListBlock, RowShape, RowsSource, what_is_wrong

MOST_DIGITS = 18
"""Of a number in the header: no graph has 10^18 of anything."""
FORWARD, BACKWARD, LOOPS, HASH = range(4)
_MIX = np.uint64(0x9E3779B97F4A7C15)


class MetisSource(RowsSource):
    """One METIS graph. See `core/source.Source`; ``known_vertices`` is known once reading has begun."""

    undirected = True
    one_based = True

    def __init__(self, path: Place, options: IngestOptions) -> None:
        if options.columns is not None:
            raise InputError(f"{path}: METIS files have no columns to choose; --no-weights drops edge weights")
        super().__init__([path], options)
        self._edges = 0
        self._seen = np.zeros(4, np.uint64)
        self._lock = threading.Lock()

    def batches(self) -> Generator[EdgeBatch]:
        """Yield every edge once, in the order of the rows of their smaller ends.

        Raises:
            InputError: a line cannot be read, an id is outside 1..N, or M is not the number of edges.
        """
        for parsed in self._parsed():
            if len(parsed.batch):
                yield parsed.batch
        self._check_edges()

    def _head(self, block: Bytes, file: TextFile) -> tuple[int, int, RowShape] | None:
        for number, line, at in lines_of(block):
            if is_data(line):
                self.known_vertices, self._edges, shape = read_header(line, f"{self.name}, line {file.lines + number}")
                if self._options.weights and not shape.weighted:
                    raise InputError(f"{self.name}: its header says that edges have no weights to take")
                file.explain = partial(what_is_wrong, shape, range(1, self.known_vertices + 1))
                return at, number, shape
        return None

    def _accept(self, block: RowListBlock, batch: EdgeBatch) -> EdgeBatch | int:
        """Check ids, count, and keep each edge once, ids zero-based."""
        weights = np.empty(0) if batch.weights is None else batch.weights
        seen = np.zeros(4, np.uint64)
        kept = int(keep_forward(batch.sources, batch.targets, weights, self.known_vertices or 0, seen))
        if kept < 0:
            return -1 - kept
        with self._lock:
            self._seen += seen
        keep = batch.weights is not None and self._options.weights is not False
        return EdgeBatch(batch.sources[:kept], batch.targets[:kept], weights[:kept] if keep else None)

    def _check_edges(self) -> None:
        forward, backward, loops = (int(count) for count in self._seen[:HASH])
        if self._edges == forward + loops and forward == backward and self._seen[HASH] == 0:
            return
        if forward + loops == self._edges and forward == backward:
            what = "its rows do not agree: some edge stands in the row of one of its ends only"
        else:
            what = (
                f"its header says {self._edges} edges, and its rows name {forward} neighbors with a larger number, "
                f"{backward} with a smaller and {loops} themselves; each edge must stand in the rows of both ends: "
                "the file is truncated, or its header is wrong"
            )
        raise InputError(f"{self.name}: {what}; fetch it again, or correct it")


def read_header(line: str, where: str) -> tuple[int, int, RowShape]:
    """Vertices, edges, and the shape of the rows.

    Raises:
        InputError: the header is malformed.
    """
    words = line.split()
    flags = words[2].zfill(3) if len(words) > 2 else "000"
    numbers = all(word.isascii() and word.isdigit() for word in words)
    numbers = numbers and max(len(word.lstrip("0")) for word in words) <= MOST_DIGITS
    if not numbers or not 2 <= len(words) <= 4 or len(flags) > 3 or set(flags) - {"0", "1"}:
        raise InputError(
            f"{where}: a METIS header is VERTICES EDGES [FMT [NCON]], FMT of three digits 0 or 1; correct it, or "
            f"--format adjacency reads lines of a vertex and its neighbors\n    {shown(line)}"
        )
    constraints = whole_number(words[3]) if len(words) > 3 else 1
    skip = int(flags[0]) + (constraints if flags[1] == "1" else 0)
    return whole_number(words[0]), whole_number(words[1]), RowShape(skip=skip, weighted=flags[2] == "1")


@jit
def keep_forward(
    sources: NDArray[Any], targets: NDArray[Any], weights: NDArray[np.float64], vertices: int, seen: NDArray[np.uint64]
) -> int:
    """Keep, at the front, the edges to a larger or the same vertex; targets become zero-based.

    ``seen`` uint64[4] takes how many go forward, backward, and to themselves, and the difference of the
    hashes of the forward and the backward ones.

    Returns:
        how many were kept, or -1 - i if target i is no vertex.
    """
    kept = 0
    for i in range(len(sources)):
        source = np.uint64(sources[i])
        target = np.uint64(targets[i])
        if target < np.uint64(1) or target > np.uint64(vertices) or source >= np.uint64(vertices):
            return -1 - i
        target -= np.uint64(1)
        if source > target:
            seen[BACKWARD] += np.uint64(1)
            seen[HASH] -= _pair_hash(target, source)
            continue
        if source == target:
            seen[LOOPS] += np.uint64(1)
        else:
            seen[FORWARD] += np.uint64(1)
            seen[HASH] += _pair_hash(source, target)
        sources[kept] = source
        targets[kept] = target
        if len(weights) > 0:
            weights[kept] = weights[i]
        kept += 1
    return kept


@jit
def _pair_hash(small: Any, large: Any) -> Any:
    """A 64-bit hash of a pair of vertices (splitmix64's finalizer, twice)."""
    word = small * _MIX
    for _ in range(2):
        word ^= large
        word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        word ^= word >> np.uint64(31)
    return word
