"""Public graphs, from the raw file to the published answer of every program.

The answers are in ../shared/data/expected.json, most of them agreed by two other tools; SOURCES.md
there explains the conventions. Each graph is converted once as a simple graph (no loops, of parallel
edges the lightest) and, if it has no weights of its own, once more with hashed ones. Skips where the
data is not there; the small fixtures of the repository are then all there is (test_parity.py).
"""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checkers import EdgeList
from numpy.typing import NDArray
from penstock.engine import Graph, run
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.wcc import WCC
from penstock.storage.convert.convert import convert
from penstock.storage.convert.options import ConvertOptions
from penstock.storage.ingest.options import IngestOptions, Source
from penstock.storage.ingest.source import open_source
from samples import ArraySource
from sources import SHARED

ABOUT = SHARED / "expected.json"
EXPECTED: dict[str, Any] = json.loads(ABOUT.read_text()) if ABOUT.is_file() else {}
GRAPHS = [name for name, answers in EXPECTED.items() if "bfs" in answers]

pytestmark = pytest.mark.skipif(not EXPECTED, reason=f"{SHARED} is not here")


WAYS: list[dict[str, Any]] = [
    {},
    {"direction": "push", "host_memory": "96MiB"},
    {"direction": "pull"},
    {"devices": 2},
    {"mode": "sync", "direct_io": True},
]
"""Taken in turn, so that all are met and none is run everywhere; test_parity.py runs all of them everywhere."""


@dataclass(frozen=True)
class Parsed:
    """A file that no input format of ours covers yet, parsed here: ends, all vertices, their names."""

    sources: NDArray[np.int64]
    targets: NDArray[np.int64]
    vertices: NDArray[np.int64] | None = None
    names: tuple[str, ...] | None = None


def text_lines(path: Path) -> Iterator[str]:
    """Lines of a compressed text file."""
    opened = {".gz": gzip.open, ".bz2": bz2.open}[path.suffix]
    with opened(path, "rt") as file:
        yield from file


def adjacency_text(path: Path) -> Parsed:
    """`id<TAB>a,b,c` lines; ids without friends are vertices too."""
    sources: list[int] = []
    targets: list[int] = []
    vertices: list[int] = []
    for line in text_lines(path):
        first, _, rest = line.strip().partition("\t")
        vertices.append(int(first))
        neighbors = [int(word) for word in rest.split(",") if word]
        sources += [int(first)] * len(neighbors)
        targets += neighbors
    return Parsed(np.array(sources), np.array(targets), np.array(vertices))


def metis(path: Path) -> Parsed:
    """Header, then the one-based neighbors of vertex 1, 2, …; every edge from both sides."""
    rows = [np.array(line.split(), dtype=np.int64) for line in text_lines(path)][1:]
    sources = np.repeat(np.arange(1, len(rows) + 1), [len(row) for row in rows])
    targets = np.concatenate(rows)
    once = sources <= targets
    return Parsed(sources[once], targets[once])


def named(path: Path) -> Parsed:
    """String ids, numbered in the order of their bytes."""
    pairs = [line.split("\t")[:2] for line in text_lines(path) if not line.startswith("#")]
    names, numbers = np.unique(np.array(pairs).T, return_inverse=True)
    ends = numbers.reshape(2, -1).astype(np.int64)
    return Parsed(ends[0], ends[1], names=tuple(names.tolist()))


def co_starring(path: Path) -> Parsed:
    """Films' casts → pairs of actors who met, once per film (tools/actor_project.py beside the data --multi)."""
    parts = []
    for line in text_lines(path):
        cast = np.unique(np.array(line.split(), dtype=np.int64))
        if len(cast) > 1:
            one, other = np.triu_indices(len(cast), 1)
            parts.append(np.stack([cast[one], cast[other]]))
    ends = np.concatenate(parts, axis=1)
    return Parsed(ends[0], ends[1])


PARSERS: dict[str, Callable[[Path], Parsed]] = {
    "soc-LiveJournal1Adj.txt.gz": adjacency_text,
    "wave.graph.bz2": metis,
    "wordnet30.tsv.gz": named,
    "actor.dat.gz + tools/actor_project.py": co_starring,
}
FORMATS = {"luxembourg_osm.mtx.gz": "text"}
COLUMNS = {
    "bremen_dist.gr.gz": (1, 2, 3),
    "bremen_time.gr.gz": (1, 2, 3),
    "malta-osm-road.txt.gz": (0, 1, 2),
    "ego-twitter-weighted.txt.gz": (0, 1, 2),
}
"""Where the ends and the weight are. Ratings of bitcoinotc are negative: BFS, PageRank, WCC and hashed weights."""


@cache
def parsed(name: str) -> Parsed:
    """The edges of a file as arrays, read by Penstock where it can."""
    path = SHARED / name.split(" ")[0]
    if name in PARSERS:
        return PARSERS[name](path)
    columns = COLUMNS.get(name, (0, 1))[:2]
    source = open_source([path], FORMATS.get(name), IngestOptions(columns=columns))
    batches = list(source.batches())
    ends = [np.concatenate([getattr(b, side) for b in batches]) for side in ("sources", "targets")]
    return Parsed(ends[0].astype(np.int64), ends[1].astype(np.int64))


def raw(name: str) -> Source:
    """The file as a source of edges, with the weights it has."""
    directed = EXPECTED[name]["directed"]
    if name in PARSERS:
        found = parsed(name)
        return ArraySource(name, EdgeList(0, found.sources, found.targets, None, directed))
    options = IngestOptions(columns=COLUMNS.get(name, (0, 1)))
    return open_source([SHARED / name], FORMATS.get(name), options)


def hashed(name: str) -> Source:
    """The edges with w(u, v) = 1 + (31 u + 17 v) mod 64, u the smaller end where undirected."""
    found, directed = parsed(name), EXPECTED[name]["directed"]
    u, v = found.sources, found.targets
    if not directed:
        u, v = np.minimum(u, v), np.maximum(u, v)
    weights = (1 + (31 * u + 17 * v) % 64).astype(np.uint8)
    return ArraySource(name, EdgeList(0, u, v, weights, directed))


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Graph]:
    """Graphs by name and kind ("simple", "hashed", "all lines"), each converted once."""
    folder = tmp_path_factory.mktemp("shared")

    @cache
    def make(name: str, kind: str) -> Graph:
        answers = EXPECTED[name]
        path = folder / f"{name.split(' ')[0]}.{kind.replace(' ', '-')}.h5"
        vertices = parsed(name).vertices if name in PARSERS else None
        if vertices is not None:
            np.savetxt(path.with_suffix(".txt"), vertices, fmt="%d")
        simple = kind != "all lines"
        options = ConvertOptions(
            direction="both" if answers["directed"] else "out",
            undirected=not answers["directed"],
            renumber=True,
            dedupe=None if not simple else "min" if kind == "hashed" or name in COLUMNS else "first",
            drop_self_loops=simple,
            vertices_file=None if vertices is None else path.with_suffix(".txt"),
        )
        source = hashed(name) if kind == "hashed" else raw(name)
        convert(source, path, options)
        return Graph.open(path)

    return make


def way(name: str, turn: int) -> dict[str, Any]:
    """How to run the program numbered `turn` on a graph."""
    return WAYS[(GRAPHS.index(name) + turn) % len(WAYS)]


def ids(graph: Graph) -> NDArray[Any]:
    """Original ids by internal id."""
    original = graph.original_ids()
    return np.arange(graph.vertices) if original is None else original


def digest(name: str, graph: Graph, values: NDArray[Any], reached: NDArray[np.bool_]) -> str:
    """SHA-256 of `id value` lines of the reached vertices, ids ascending."""
    names = parsed(name).names if name in PARSERS else None
    order = np.argsort(ids(graph), kind="stable")
    order = order[reached[order]]
    known = ids(graph)[order].tolist()
    lines: Iterable[str] = (
        f"{names[key] if names else key} {value}\n" for key, value in zip(known, values[order].tolist(), strict=True)
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def number(name: str, source: int | str) -> int:
    """The id that a source has in our graph."""
    names = parsed(name).names if name in PARSERS else None
    return names.index(str(source)) if names else int(source)


def asked(program: str) -> list[tuple[str, str]]:
    """(graph, key of its answers) for every answer to `program`."""
    keys = {
        "bfs": ("bfs", "bfs_from_largest_component"),
        "sssp": ("sssp", "sssp_from_largest_component", "sssp_hashed_weights"),
        "pagerank": ("pagerank", "pagerank_all_lines"),
        "wcc": ("wcc",),
    }[program]
    return [(name, key) for name in GRAPHS for key in keys if key in EXPECTED[name]]


@pytest.mark.parametrize("name", GRAPHS)
def test_sizes(name: str, stored: Callable[[str, str], Graph]) -> None:
    answers, graph = EXPECTED[name], stored(name, kind_of(name))
    assert graph.vertices == answers["vertices"]
    assert graph.edges == answers["simple_edges"] * (1 if answers["directed"] else 2)
    assert graph.directed == answers["directed"]


@pytest.mark.parametrize(("name", "key"), asked("bfs"))
def test_bfs(name: str, key: str, stored: Callable[[str, str], Graph]) -> None:
    answer, graph = EXPECTED[name][key], stored(name, kind_of(name))
    level = run(BFS(source=number(name, answer["source"])), graph, **way(name, len(key))).fields["level"]
    reached = level != np.iinfo(level.dtype).max
    sizes = np.bincount(level[reached]).tolist()
    told = answer.get("level_sizes", answer.get("level_sizes_first_100"))
    assert sizes[: len(told)] == told
    assert (sum(sizes), len(sizes) - 1) == (answer["reached"], answer["depth"])
    assert digest(name, graph, level, reached) == answer["sha256_of_id_level_lines"]


@pytest.mark.parametrize(("name", "key"), asked("sssp"))
def test_sssp(name: str, key: str, stored: Callable[[str, str], Graph]) -> None:
    answer = EXPECTED[name][key]
    graph = stored(name, "hashed" if key == "sssp_hashed_weights" else "simple")
    distance = run(SSSP(source=number(name, answer["source"])), graph, **way(name, len(key))).fields["distance"]
    reached = distance != np.iinfo(distance.dtype).max
    found = distance[reached]
    assert (len(found), int(found.max())) == (answer["reached"], answer["max_distance"])
    assert int(found.sum(dtype=np.uint64)) == answer["sum_of_distances"]
    assert digest(name, graph, distance, reached) == answer["sha256_of_id_distance_lines"]


@pytest.mark.parametrize(("name", "key"), asked("pagerank"))
def test_pagerank(name: str, key: str, stored: Callable[[str, str], Graph]) -> None:
    answer = EXPECTED[name][key]
    graph = stored(name, "all lines" if key == "pagerank_all_lines" else kind_of(name))
    rank = run(PageRank(damping=answer["damping"], tol=1e-10, max_iter=1000), graph, **way(name, 3)).fields["rank"]
    place = {int(key): at for at, key in enumerate(ids(graph).tolist())}
    for vertex, right in answer["top20"]:
        assert rank[place[number(name, vertex)]] == pytest.approx(right, abs=1e-9)
    assert rank.sum() == pytest.approx(1, abs=1e-9)
    assert (rank**2).sum() == pytest.approx(answer["sum_of_squares"], abs=1e-9)
    assert rank.min() == pytest.approx(answer["min"], abs=1e-9)


@pytest.mark.parametrize(("name", "key"), asked("wcc"))
def test_wcc(name: str, key: str, stored: Callable[[str, str], Graph]) -> None:
    answer, graph = EXPECTED[name][key], stored(name, kind_of(name))
    component = run(WCC(), graph, **way(name, 4)).fields["component"]
    labels, first, sizes = np.unique(component, return_index=True, return_counts=True)
    assert (len(labels), int(sizes.max())) == (answer["count"], answer["largest"])
    assert np.sort(sizes)[::-1][:5].tolist() == answer["sizes_top5"]
    assert np.array_equal(labels, ids(graph)[first]), "a component is named after its smallest id"


def kind_of(name: str) -> str:
    """The graph that serves where weights do not matter: the largest one is converted only once."""
    return "hashed" if name.startswith("actor") else "simple"
