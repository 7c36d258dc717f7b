"""Public graphs, from the raw file to the published answer of every program.

The answers are in ../shared/data/expected.json, most of them agreed by two other tools; SOURCES.md
there explains the conventions. Each graph is converted once as a simple graph (no loops, of parallel
edges the lightest) and, if it has no weights of its own, once more with hashed ones. Skips where the
data is not there; the small fixtures of the repository are then all there is (test_parity.py).
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from penstock.engine import Graph, run
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.wcc import WCC
from penstock.storage.convert.convert import convert
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.ingest.core.source import IngestOptions, Source
from penstock.storage.ingest.open_source import open_source
from penstock.tools import cli
from support.graphs import ArraySource
from support.oracles import EdgeList
from support.source_code import SHARED

ABOUT = SHARED / "expected.json"
EXPECTED: dict[str, Any] = json.loads(ABOUT.read_text()) if ABOUT.is_file() else {}
GRAPHS = [name for name, answers in EXPECTED.items() if "bfs" in answers]

pytestmark = pytest.mark.skipif(not EXPECTED, reason=f"{SHARED} is not here")


WAYS: list[dict[str, Any]] = [
    {},
    {"direction": "push", "host_memory": "96MiB"},
    {"direction": "pull"},
    {"mode": "sync", "direct_io": True},
]
"""Taken in turn, so that all are met and none is run everywhere; test_parity.py runs all of them everywhere."""


@dataclass(frozen=True)
class Parsed:
    """The ends of all edges by the file's ids."""

    sources: NDArray[np.int64]
    targets: NDArray[np.int64]


@cache
def pairs_of(count: int) -> NDArray[np.intp]:
    """Both places of every pair of so many, in two rows."""
    return np.stack(np.triu_indices(count, 1))


def co_starring(path: Path) -> Parsed:
    """Films' casts → pairs of actors who met, once per film (tools/actor_project.py beside the data --multi)."""
    parts = []
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        cast = np.unique(np.array(line.split(), dtype=np.int64))
        if len(cast) > 1:
            parts.append(cast[pairs_of(len(cast))])
    ends = np.concatenate(parts, axis=1)
    return Parsed(ends[0], ends[1])


PARSERS: dict[str, Callable[[Path], Parsed]] = {"actor.dat.gz + tools/actor_project.py": co_starring}
"""What is computed from a file before it is a graph."""
FORMATS = {
    "luxembourg_osm.mtx.gz": "text",
    "bremen_dist.gr.gz": "text",
    "bremen_time.gr.gz": "text",
    "soc-LiveJournal1Adj.txt.gz": "adjacency",
}
FIRST = {"wave.graph.bz2": 1}
"""The file's id of our vertex 0, where the format renumbers."""
COLUMNS = {
    "bremen_dist.gr.gz": (1, 2, 3),
    "bremen_time.gr.gz": (1, 2, 3),
    "malta-osm-road.txt.gz": (0, 1, 2),
    "ego-twitter-weighted.txt.gz": (0, 1, 2),
    "soc-sign-bitcoinotc.csv.gz": (0, 1),
}
"""Where the ends and the weight are. Ratings of bitcoinotc are negative: BFS, PageRank, WCC and hashed weights."""


@cache
def parsed(name: str) -> Parsed:
    """The edges of a file as arrays."""
    if name in PARSERS:
        return PARSERS[name](SHARED / name.split(" ")[0])
    batches = list(opened(name, COLUMNS.get(name, (0, 1))[:2]).batches())
    ends = [np.concatenate([getattr(b, side) for b in batches]) for side in ("sources", "targets")]
    first = FIRST.get(name, 0)
    return Parsed(ends[0].astype(np.int64) + first, ends[1].astype(np.int64) + first)


def opened(name: str, columns: tuple[int, ...]) -> Source:
    """A file as Penstock opens it, where ids may be strings."""
    listed = FORMATS.get(name) == "text" or name in COLUMNS
    options = IngestOptions(columns=columns if listed else None, string_ids=None)
    return open_source([SHARED / name], FORMATS.get(name), options)


def raw(name: str) -> Source:
    """The file as a source of edges, with the weights it has."""
    if name in PARSERS:
        found = parsed(name)
        return ArraySource(name, EdgeList(0, found.sources, found.targets, None, EXPECTED[name]["directed"]))
    return opened(name, COLUMNS.get(name, (0, 1)))


def hashed(name: str) -> Source:
    """The edges with w(u, v) = 1 + (31 u + 17 v) mod 64, u the smaller end where undirected."""
    found, directed, first = parsed(name), EXPECTED[name]["directed"], FIRST.get(name, 0)
    u, v = found.sources, found.targets
    if not directed:
        u, v = np.minimum(u, v), np.maximum(u, v)
    weights = (1 + (31 * u + 17 * v) % 64).astype(np.uint8)
    return ArraySource(name, EdgeList(0, u - first, v - first, weights, directed))


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Graph]:
    """Graphs by name and kind ("simple", "hashed", "all lines"), each converted once."""
    folder = tmp_path_factory.mktemp("shared")

    @cache
    def make(name: str, kind: str) -> Graph:
        answers = EXPECTED[name]
        path = folder / f"{name.split(' ')[0]}.{kind.replace(' ', '-')}.h5"
        simple = kind != "all lines"
        options = ConvertOptions(
            direction="both" if answers["directed"] else "out",
            undirected=not answers["directed"],
            dedupe=None if not simple else "min" if kind == "hashed" or name in COLUMNS else "first",
            drop_self_loops=simple,
        )
        source = hashed(name) if kind == "hashed" else raw(name)
        convert(source, path, options)
        return Graph.open(path)

    return make


def way(name: str, turn: int) -> dict[str, Any]:
    """How to run the program numbered `turn` on a graph."""
    return WAYS[(GRAPHS.index(name) + turn) % len(WAYS)]


def ids(name: str, graph: Graph) -> NDArray[Any]:
    """The file's ids by internal id."""
    original = graph.original_ids()
    known = np.arange(graph.vertices) if original is None else original
    return known + FIRST[name] if name in FIRST else known


def digest(name: str, graph: Graph, values: NDArray[Any], reached: NDArray[np.bool_]) -> str:
    """SHA-256 of `id value` lines of the reached vertices, ids ascending."""
    order = np.argsort(ids(name, graph), kind="stable")
    order = order[reached[order]]
    known = ids(name, graph)[order].tolist()
    lines = (f"{key} {value}\n" for key, value in zip(known, values[order].tolist(), strict=True))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def number(name: str, source: int | str) -> int | str:
    """The id that a vertex has in our graph."""
    return str(source) if name == "wordnet30.tsv.gz" else int(source) - FIRST.get(name, 0)


LARGE = 1_000_000
"""Edges of a graph of which the levels and components are asked by default, and nothing else."""


def rows(keys: Iterable[str], *, always: bool = False) -> list[Any]:
    """(graph, key of its answer) for every answer there is; of large graphs they are `full`, if not `always`."""
    return [
        pytest.param(name, key, marks=() if always or EXPECTED[name]["simple_edges"] < LARGE else pytest.mark.full)
        for name in GRAPHS
        for key in keys
        if key in EXPECTED[name]
    ]


def asked(program: str) -> list[Any]:
    """(graph, key of its answer) for every answer to `program`."""
    keys = {
        "bfs": ("bfs", "bfs_from_largest_component"),
        "sssp": ("sssp", "sssp_from_largest_component", "sssp_hashed_weights"),
        "pagerank": ("pagerank", "pagerank_all_lines"),
        "wcc": ("wcc",),
    }[program]
    return rows(keys, always=program in ("bfs", "wcc"))


@pytest.mark.parametrize("name", GRAPHS, scope="module")  # all tests of a graph in turn, on one worker
def test_sizes(name: str, stored: Callable[[str, str], Graph]) -> None:
    answers, graph = EXPECTED[name], stored(name, kind_of(name))
    assert graph.vertices == answers["vertices"]
    assert graph.edges == answers["simple_edges"] * (1 if answers["directed"] else 2)
    assert graph.directed == answers["directed"]


@pytest.mark.parametrize(("name", "key"), asked("bfs"), scope="module")
def test_bfs(name: str, key: str, stored: Callable[[str, str], Graph]) -> None:
    answer, graph = EXPECTED[name][key], stored(name, kind_of(name))
    level = run(BFS(source=number(name, answer["source"])), graph, **way(name, len(key))).fields["level"]
    reached = level != np.iinfo(level.dtype).max
    sizes = np.bincount(level[reached]).tolist()
    told = answer.get("level_sizes", answer.get("level_sizes_first_100"))
    assert sizes[: len(told)] == told
    assert (sum(sizes), len(sizes) - 1) == (answer["reached"], answer["depth"])
    assert digest(name, graph, level, reached) == answer["sha256_of_id_level_lines"]


@pytest.mark.parametrize(("name", "key"), asked("sssp"), scope="module")
def test_sssp(name: str, key: str, stored: Callable[[str, str], Graph]) -> None:
    answer = EXPECTED[name][key]
    graph = stored(name, "hashed" if key == "sssp_hashed_weights" else "simple")
    distance = run(SSSP(source=number(name, answer["source"])), graph, **way(name, len(key))).fields["distance"]
    reached = distance != np.iinfo(distance.dtype).max
    found = distance[reached]
    assert (len(found), int(found.max())) == (answer["reached"], answer["max_distance"])
    assert int(found.sum(dtype=np.uint64)) == answer["sum_of_distances"]
    assert digest(name, graph, distance, reached) == answer["sha256_of_id_distance_lines"]


@pytest.mark.parametrize(("name", "key"), asked("pagerank"), scope="module")
def test_pagerank(name: str, key: str, stored: Callable[[str, str], Graph]) -> None:
    answer = EXPECTED[name][key]
    graph = stored(name, "all lines" if key == "pagerank_all_lines" else kind_of(name))
    rank = run(
        PageRank(damping=answer["damping"], tol=1e-10, max_iter=1000, weight=False), graph, **way(name, 3)
    ).fields["rank"]
    place = {str(key): at for at, key in enumerate(ids(name, graph).tolist())}
    for vertex, right in answer["top20"]:
        assert rank[place[str(vertex)]] == pytest.approx(right, abs=1e-9)
    assert rank.sum() == pytest.approx(1, abs=1e-9)
    assert (rank**2).sum() == pytest.approx(answer["sum_of_squares"], abs=1e-9)
    assert rank.min() == pytest.approx(answer["min"], abs=1e-9)


@pytest.mark.parametrize(("name", "key"), asked("wcc"), scope="module")
def test_wcc(name: str, key: str, stored: Callable[[str, str], Graph]) -> None:
    answer, graph = EXPECTED[name][key], stored(name, kind_of(name))
    component = run(WCC(), graph, **way(name, 4)).fields["component"]
    labels, first, sizes = np.unique(component, return_index=True, return_counts=True)
    assert (len(labels), int(sizes.max())) == (answer["count"], answer["largest"])
    assert np.sort(sizes)[::-1][:5].tolist() == answer["sizes_top5"]
    named = labels + FIRST[name] if name in FIRST else labels
    assert named.tolist() == ids(name, graph)[first].tolist(), "a component is named after its smallest id"


TWO_OPTIONS: dict[str, tuple[list[str], int, int]] = {
    "actor.dat.gz": (["--format", "rows", "--bipartite"], 127_823 + 383_640, 1_470_418),
    "as20000102.txt.gz": ([], 6_474, 13_895),
    "bremen_dist.gr.gz": ([], 40_461, 86_475),
    "bremen_time.gr.gz": ([], 40_461, 86_475),
    "cnr-2000.graph-txt.gz": ([], 325_557, 3_216_152),
    "cnr-2000.txt.gz": (["--direction", "both"], 325_557, 3_216_152),
    "ego-twitter-weighted.txt.gz": (["--weights"], 81_306, 1_768_135),
    "email-Enron.txt.gz": (["--direction", "both"], 36_692, 367_662),
    "facebook_combined.txt.gz": (["--undirected"], 4_039, 88_234),
    "jester5k-ratings.csv.gz": (["--bipartite", "--weights"], 5_100, 363_209),
    "luxembourg_osm.mtx.gz": (["--undirected"], 114_599, 119_666),
    "malta-osm-road.txt.gz": (["--weights"], 96_777, 107_861),
    "ml-latest-small-ratings.csv.gz": (["--bipartite", "--weights"], 610 + 9_724, 100_836),
    "musae_git_edges.csv.gz": (["--undirected"], 37_700, 289_003),
    "soc-LiveJournal1Adj.txt.gz": (["--format", "adjacency"], 49_995, 661_596),
    "soc-sign-bitcoinotc.csv.gz": (["--weights"], 5_881, 35_592),
    "wave.graph.bz2": ([], 156_317, 1_059_331),
    "wiki-Vote.txt.gz": ([], 7_115, 103_689),
    "wordnet30.tsv.gz": (["--renumber"], 116_650, 377_592),
}
"""What `penstock convert` needs to be told, and the vertices and edges that SOURCES.md states."""


@pytest.mark.parametrize("name", sorted(path.name for path in SHARED.glob("*.*z*")))
def test_every_file_converts_with_two_options(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options, vertices, edges = TWO_OPTIONS[name]
    assert sum(option.startswith("--") for option in options) <= 2
    output = tmp_path / "g.h5"
    assert cli.run_command(["convert", str(SHARED / name), str(output), *options, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["vertices"], told["input_edges"]) == (vertices, edges)
    assert Graph.open(output).vertices == vertices


def kind_of(name: str) -> str:
    """The graph that serves where weights do not matter: the largest one is converted only once."""
    return "hashed" if name.startswith("actor") else "simple"


STRUCTURE = {
    "scc": "scc",
    "kcore": "coreness",
    "triangles": "triangles",
    "lcc_ldbc_mean": "lcc",
    "cdlp_ldbc_10_iterations": "cdlp",
    "betweenness_4_sources": "betweenness",
}
"""Keys of further answers, and the programs that give them."""
PARALLEL = [("facebook_combined.txt.gz", key) for key in ("lcc_ldbc_mean", "cdlp_ldbc_10_iterations")]
"""Run on all threads; the others on one, whose kernels the tests of the programs have compiled already."""


def structural() -> list[Any]:
    """(graph, key) for the further answers; cores of directed graphs are those of another, undirected graph."""
    found = [(row, *row.values) for row in rows(STRUCTURE)]
    return [
        row
        for row, name, key in found
        if EXPECTED[name]["simple_edges"] < 2 * LARGE and not (key == "kcore" and EXPECTED[name]["directed"])
    ]


@pytest.mark.parametrize(("name", "key"), structural(), scope="module")
def test_structure(name: str, key: str, stored: Callable[[str, str], Graph]) -> None:
    answer, graph = EXPECTED[name][key], stored(name, kind_of(name))
    parameters: dict[str, Any] = {}
    if key == "betweenness_4_sources":
        parameters = {"source": [number(name, source) for source in answer["sources"]], "raw": True}
    if (name, key) not in PARALLEL:
        parameters["threads"] = 1
    values = next(iter(run(STRUCTURE[key], graph, **parameters).fields.values()))
    everyone = np.ones(graph.vertices, dtype=bool)
    if key == "scc":
        sizes = np.unique(values, return_counts=True)[1]
        assert (len(sizes), int(sizes.max())) == (answer["count"], answer["largest"])
    elif key == "kcore":
        assert digest(name, graph, values, everyone) == answer["sha256_of_id_core_lines"]
    elif key == "triangles":
        assert int(values.sum()) == 3 * answer
    elif key == "lcc_ldbc_mean":
        assert float(values.mean()) == pytest.approx(answer, abs=1e-12)
    elif key == "cdlp_ldbc_10_iterations":
        sizes = np.unique(values, return_counts=True)[1]
        assert (len(sizes), int(sizes.max())) == (answer["distinct_labels"], answer["largest"])
        labels = values + values.dtype.type(FIRST[name]) if name in FIRST else values
        assert digest(name, graph, labels, everyone) == answer["sha256_of_id_label_lines"]
    else:
        place = {key: at for at, key in enumerate(ids(name, graph).tolist())}
        for vertex, right in answer["top20"]:
            assert values[place[vertex]] == pytest.approx(right, rel=1e-8)


COMMUNITIES = {
    "facebook_combined.txt.gz": (0.8348, 0.8355),
    "as20000102.txt.gz": (0.6253, 0.6378),
    "email-Enron.txt.gz": (0.6163, 0.6218),
    "musae_git_edges.csv.gz": (0.4512, 0.4612),
    "luxembourg_osm.mtx.gz": (0.9885, 0.9891),
    "malta-osm-road.txt.gz": (0.9849, 0.9857),
}
"""Least modularity of `louvain` and `leiden`, edges counted 1: what igraph's multilevel and networkit's PLM reach, and
its ParallelLeiden or two iterations of igraph's Leiden, less 0.0002; less 0.006 on Enron, 0.002 on git
(`engine/measurements.md`). The files list each edge once, or all both ways."""


@pytest.mark.parametrize("name", COMMUNITIES, scope="module")
def test_modularity(name: str, stored: Callable[[str, str], Graph]) -> None:
    graph = stored(name, kind_of(name))
    degree = np.diff(graph.out.index().starts(0, graph.vertices + 1))
    targets, _ = graph.out.edges_in(0, graph.out.edges)
    for program, least in zip(("louvain", "leiden"), COMMUNITIES[name], strict=True):
        found = run(program, graph, weight=False).fields["community"]
        community = np.unique(found, return_inverse=True)[1]
        inside = (np.repeat(community, degree) == community[targets]).mean()
        assert inside - ((np.bincount(community, degree) / graph.out.edges) ** 2).sum() > least
