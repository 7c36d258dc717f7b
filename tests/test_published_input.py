"""Other parsers' own test files: what they must refuse is refused, what they read we read alike.

MatrixMarket files are held against scipy's reader; edge lists against lines split by Python; METIS and others against
the counts that their README states.
"""

from __future__ import annotations

import io
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.io
from penstock.storage.base.errors import InputError
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.open_source import open_source
from support.source_code import DATA

MATRICES = DATA / "fast_matrix_market"
NO_GRAPH = ("array", "complex", "vector", "hermitian_row", "skew_symmetric_row.mtx")
"""Layouts and types that are no edge list with weights; hermitian_row files are complex."""

READABLE = [
    path
    for path in sorted(MATRICES.rglob("*.mtx"))
    if path.parent.name not in ("invalid", "overflow", "symmetry_array")
    and not any(word in path.name for word in NO_GRAPH)
]
REFUSED = sorted(set(MATRICES.rglob("*.mtx")) - set(READABLE))
ACCEPTED_OVERFLOW = {"overflow_index_gt_int8.mtx", "overflow_value_gt_int32.mtx"}
"""Too large for the type of their name, not for ours; a whole weight beyond int64 that no float64 holds is refused."""


def edges_of(path: Path, **options: object) -> tuple[set[tuple[float, ...]], bool]:
    """The edges of a file as (source, target, weight if it has one), and whether it says undirected."""
    source = open_source([path], None, IngestOptions(**options))
    found = set()
    for batch in source.batches():
        columns = [batch.sources, batch.targets] + ([] if batch.weights is None else [batch.weights])
        found |= set(zip(*(column.tolist() for column in columns), strict=True))
    return found, source.undirected


def as_scipy_spells(path: Path) -> io.BytesIO:
    """The file without what scipy dislikes: indented lines, CRLF, a banner of one percent sign."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    lines[0] = "%%" + lines[0].lstrip("%")
    return io.BytesIO("\n".join(lines).encode())


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # scipy's, about its own default
@pytest.mark.parametrize("path", READABLE, ids=lambda path: path.stem)
def test_matrix_equals_scipy(path: Path) -> None:
    found, undirected = edges_of(path)
    if undirected:
        found |= {(edge[1], edge[0], *edge[2:]) for edge in found}
    matrix = scipy.io.mmread(as_scipy_spells(path))
    columns = [matrix.row, matrix.col] + ([matrix.data] if "pattern" not in path.read_text() else [])
    assert found == set(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("path", REFUSED, ids=lambda path: path.stem)
def test_what_is_no_graph_is_refused(path: Path) -> None:
    if path.name in ACCEPTED_OVERFLOW:
        assert len(edges_of(path)[0]) > 0
        return
    with pytest.raises(InputError, match=path.stem):
        edges_of(path)


@pytest.mark.parametrize(
    "name", ["cugraph/karate_str.mtx", "cugraph/negative-vertex-id.csv", "networkit/alphabet.edgelist"]
)
def test_ids_that_are_no_numbers_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"line \d+: source '\S+' is (not a number|negative)"):
        edges_of(DATA / name)


LISTS = [
    "cugraph/dolphins.csv",
    "cugraph/dolphins_multi_edge.csv",
    "cugraph/dolphins_s_loop.csv",
    "cugraph/karate.csv",
    "cugraph/karate-asymmetric.csv",
    "networkit/comments.edgelist",
    "networkit/example.edgelist",
    "networkit/spaceseparated.edgelist",
    "networkit/spaceseparated_weighted.edgelist",
]


@pytest.mark.parametrize("name", LISTS)
def test_edge_list_equals_split_lines(name: str) -> None:
    path = DATA / name
    lines = [line.split() for line in path.read_text().splitlines() if line[:1] not in "#%"]
    assert edges_of(path)[0] == {(int(line[0]), int(line[1])) for line in lines}
    if len(lines[0]) > 2:
        triples = {(int(line[0]), int(line[1]), float(line[2])) for line in lines}
        assert edges_of(path, columns=(0, 1, 2))[0] == triples


def test_truncated_compressed_files_are_refused(shared: Path) -> None:
    for path in sorted((shared / "malformed" / "compressed").glob("*.truncated.*")):
        with pytest.raises(InputError, match=r"truncated|ends|damaged"):
            edges_of(path)


def test_every_compression_reads_alike(shared: Path) -> None:
    folder = shared / "malformed" / "compressed"
    right = edges_of(folder / "as20000102.txt.gz")[0]
    whole = [path for path in sorted(folder.iterdir()) if ".truncated." not in path.name]
    assert len(whole) == 7
    for path in whole:
        found = edges_of(path)[0]
        assert found == right, path.name
    assert np.max(list(right)) == 6473


COUNTED: dict[str, tuple[int, int]] = {
    "example.graph": (4, 2),
    "jazz2double.graph": (5, 6),
    "karate.graph": (34, 78),
    "tie.graph": (7, 13),
    "tiny_01.graph": (7, 11),
    "tiny_05.matrixmarket": (5, 11),
}
"""Vertices and edges of NetworKit's own graphs, by their headers and its README."""


@pytest.mark.parametrize("name", COUNTED)
def test_counted_graphs_have_their_counts(name: str, shared: Path) -> None:
    source = open_source([shared / "malformed" / "networkit" / name], None, IngestOptions())
    edges = sum(len(batch) for batch in source.batches())
    assert (source.known_vertices, edges) == COUNTED[name]


def test_konect_is_text(shared: Path) -> None:
    found, _ = edges_of(shared / "malformed" / "networkit" / "foodweb-baydry.konect", weights=True)
    assert len(found) == 2137
    assert (1, 2, 1.261404) in found


GML = {"looptest1.gml", "looptest2.gml"}


@pytest.mark.parametrize("name", sorted(GML))
def test_gml_equals_networkx(name: str, shared: Path) -> None:
    path = shared / "malformed" / "networkit" / name
    found, undirected = edges_of(path)
    assert undirected
    assert {frozenset(edge) for edge in found} == {frozenset(edge) for edge in nx.read_gml(path, label="id").edges()}


OTHER_FORMATS = {"foodweb-baydry.nkbg002", "foodweb-baydry.nkbg003"}


@pytest.mark.parametrize("name", sorted(OTHER_FORMATS))
def test_formats_that_are_not_read_say_so(name: str, shared: Path) -> None:
    with pytest.raises(InputError, match=f"{name}: files named .* cannot be read"):
        edges_of(shared / "malformed" / "networkit" / name)


STRINGS = {"cugraph/karate_str.mtx": 78, "networkit/alphabet.edgelist": 4}


@pytest.mark.parametrize("name", STRINGS)
def test_ids_that_are_strings_are_read_if_asked(name: str) -> None:
    source = open_source([DATA / name], None, IngestOptions(string_ids=None))
    lines = [line.split() for line in (DATA / name).read_text().splitlines() if line[:1] != "#"]
    found = []
    for batch in source.batches():
        assert batch.names is not None
        names = batch.names.names.strings().tolist()
        found += [[names[u], names[v]] for u, v in zip(batch.sources.tolist(), batch.targets.tolist(), strict=True)]
    assert len(found) == STRINGS[name]
    assert found == [line[:2] for line in lines]


def test_every_published_file_is_met(shared: Path) -> None:
    """None of the folder is forgotten: what is not tested by name is a text, a licence, or a table of answers."""
    folder = shared / "malformed"
    met = {path.name for path in [*READABLE, *REFUSED]} | {Path(name).name for name in [*LISTS, *COUNTED, *STRINGS]}
    met |= OTHER_FORMATS | GML | {"negative-vertex-id.csv", "foodweb-baydry.konect"}
    met |= {path.name for path in (folder / "compressed").iterdir()}
    plain = {"LICENSE", "LICENSE.txt", "License.txt", "README.md", "network_overlapping.dat", "karate_mod.mtx"}
    files = [path for path in folder.rglob("*") if path.is_file() and "ref" not in path.parts]
    assert {path.name for path in files} - met - plain == set()
    overlapping = folder / "networkit" / "network_overlapping.dat"
    assert len(edges_of(overlapping)[0]) == len(overlapping.read_text().splitlines())


def test_a_vertex_alone_in_its_line_is_an_adjacency_list(shared: Path) -> None:
    path = shared / "malformed" / "cugraph" / "karate_mod.mtx"
    with pytest.raises(InputError, match=r"line 79: it has 1 column.*--format adjacency"):
        edges_of(path)
    (batch,) = open_source([path], "adjacency", IngestOptions()).batches()
    assert batch.lone is not None
    assert (len(batch), batch.lone.tolist()) == (78, [35, 36, 37])
