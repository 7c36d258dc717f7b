"""GraphAr both ways, and icebug-disk: graphs made by the formats' rules are read as they are, and bad ones refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from penstock.engine import Graph, convert, run
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.open_source import open_source
from pyarrow import csv, parquet
from support.commands import answered, refused
from support.reading import edges_of, small_blocks

VERTICES, CHUNK, EDGE_CHUNK = 23, 5, 4
LISTS = {("src", True): "ordered_by_source", ("dst", True): "ordered_by_dest", ("src", False): "unordered_by_source"}


def written(path: Path, columns: Mapping[str, Any], kind: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    {"csv": csv.write_csv, "parquet": parquet.write_table}[kind](pa.table(dict(columns)), path)


def counted(path: Path, number: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(number.to_bytes(8, "little"))


def property_group(stored: str, /, **types: str) -> dict[str, Any]:
    properties = [{"name": name, "data_type": said, "is_primary": name == "id"} for name, said in types.items()]
    return {"properties": properties, "file_type": stored}


class Archive:
    """A graph of persons who know each other, as GraphAr lays it out, and its edges (source, target, cost, kind)."""

    def __init__(self, folder: Path, kind: str, aligned: str = "src", ordered: bool = True, **facts: Any) -> None:
        random = np.random.default_rng(3)
        ends = random.integers(0, VERTICES, (60, 2))
        ends = ends[(ends[:, 0] // CHUNK != 2) & (ends[:, 1] // CHUNK != 1)]  # chunks without an edge
        side = 0 if aligned == "src" else 1
        self.ends = ends[np.argsort(ends[:, side], kind="stable")] if ordered else ends
        chunks = self.ends[:, side] // CHUNK
        self.ends = self.ends[np.argsort(chunks, kind="stable")]
        chunks = np.sort(chunks)
        self.costs = random.random(len(ends)).round(3)
        self.kinds = random.choice(["wire", "cash"], len(ends))
        self.keys = random.permutation(1000)[:VERTICES] + 5000
        self.names = [f"name, {n}" for n in range(VERTICES)]
        self.folder, self.vertices = folder, folder / "person.vertex.yml"
        named = "" if aligned == "src" else "2"
        edges = folder / "edge" / "person_knows_person" / f"{LISTS[aligned, ordered]}{named}"
        counted(edges / "vertex_count", VERTICES)
        for part in range(-(-VERTICES // CHUNK)):
            inside = np.flatnonzero(chunks == part)
            counted(edges / f"edge_count{part}", len(inside))
            for chunk, first in enumerate(range(0, len(inside), EDGE_CHUNK)):
                rows = inside[first : first + EDGE_CHUNK]
                place = f"part{part}/chunk{chunk}"
                columns = {"_graphArSrcIndex": self.ends[rows, 0], "_graphArDstIndex": self.ends[rows, 1]}
                written(edges / "adj_list" / place, columns, kind)
                written(edges / "cost" / place, {"cost": self.costs[rows]}, "parquet")
                written(edges / "kind_none" / place, {"kind": self.kinds[rows], "none": self.costs[rows]}, kind)
        people = folder / "vertex" / "person"
        counted(people / "vertex_count", VERTICES)
        for chunk, first in enumerate(range(0, VERTICES, CHUNK)):
            index = np.arange(first, min(first + CHUNK, VERTICES))
            written(people / "id" / f"chunk{chunk}", {"_graphArVertexIndex": index, "id": self.keys[index]}, kind)
            texts = {"_graphArVertexIndex": index, "name": self.names[first : first + CHUNK]}
            written(people / "name" / f"chunk{chunk}", texts, kind)
        listed = {"ordered": ordered, "aligned_by": aligned, "file_type": kind} | {"prefix": f"{edges.name}/"}
        said: dict[str, Any] = {"src_type": "person", "edge_type": "knows", "dst_type": "person", "directed": True}
        said |= {"chunk_size": EDGE_CHUNK, "src_chunk_size": CHUNK, "dst_chunk_size": CHUNK, "adj_lists": [listed]}
        said["property_groups"] = [property_group("parquet", cost="double")]
        said["property_groups"].append(property_group(kind, kind="string", none="double"))
        self.edges = self.described("person_knows_person.edge.yml", said | facts)
        groups = [property_group(kind, id="int64") | {"prefix": "id/"}, property_group(kind, name="string")]
        kinds = {"type": "person", "chunk_size": CHUNK, "prefix": "vertex/person/", "property_groups": groups}
        self.described(self.vertices.name, kinds)
        self.graph = self.described("g.graph.yml", {"name": "g", "vertices": ["x"], "edges": [self.edges.name]})

    def described(self, name: str, facts: dict[str, Any]) -> Path:
        (self.folder / name).write_text(yaml.safe_dump({"version": "gar/v1"} | facts))
        return self.folder / name


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(("aligned", "ordered"), [("src", True), ("dst", True), ("src", False)])
def test_edges_weights_and_counts(
    tmp_path: Path, kind: str, aligned: str, ordered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Archive(tmp_path, kind, aligned, ordered)
    small_blocks(monkeypatch, 256)
    found, source = edges_of(made.graph)
    assert found == list(map(tuple, made.ends.tolist()))
    assert (source.known_vertices, source.undirected, source.total_bytes) == (VERTICES, False, source.bytes_done)
    weighted = edges_of(made.edges, columns=("source", "target", "cost"))[0]
    assert weighted == [(*ends, cost) for ends, cost in zip(found, made.costs.tolist(), strict=True)]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_graph_has_properties_of_edges_and_vertices_and_gives_answers_back(tmp_path: Path, kind: str) -> None:
    made = Archive(tmp_path, kind)
    path = tmp_path / "g.h5"
    convert(made.graph, path, vertices=made.vertices, edge_properties="kind,cost")
    few = int(((made.kinds == "wire") & (made.costs > 0.5)).sum())
    graph = Graph.open(path)
    assert (graph.vertices, graph.edges, graph.directed) == (VERTICES, len(made.ends), True)
    degrees = run("degrees", graph, where="kind = 'wire' and cost > 0.5")
    assert int(degrees["out_degree"].sum()) == few > 0
    answer = run("pagerank", graph)
    joined = answer.with_properties("person_id", "name").columns()
    assert joined["person_id"][0].tolist() == made.keys.tolist()
    assert joined["name"][0].tolist() == made.names
    answer.write(made.vertices, force=True)
    ranks = answer["rank"]
    run("wcc", graph).write(made.vertices, force=True)
    run("pagerank", graph, damping=0.5).write(made.vertices, force=True)
    second = run("pagerank", graph, damping=0.5)["rank"]
    assert not np.array_equal(ranks, second)
    groups = yaml.safe_load(made.vertices.read_text())["property_groups"]
    assert [[one["name"] for one in group["properties"]] for group in groups] == [
        ["id"],
        ["name"],
        ["component"],
        ["rank"],
    ]
    chunks = sorted((tmp_path / "vertex" / "person" / groups[-1]["prefix"]).iterdir())
    read = {"csv": csv.read_csv, "parquet": parquet.read_table}[kind]
    tables = [read(chunk) for chunk in chunks]
    assert [len(table) for table in tables] == [CHUNK] * (VERTICES // CHUNK) + [VERTICES % CHUNK]
    whole = pa.concat_tables(tables).to_pydict()
    assert whole == {"_graphArVertexIndex": list(range(VERTICES)), "rank": second.tolist()}
    assert len(list((tmp_path / "vertex" / "person").iterdir())) == 5  # the first ranks are gone


def test_an_undirected_graph_is_what_the_yaml_says_and_what_it_leaves_out(tmp_path: Path) -> None:
    for at, facts in enumerate(({"directed": False}, {"directed": None})):
        (tmp_path / str(at)).mkdir()
        assert edges_of(Archive(tmp_path / str(at), "csv", **facts).edges)[1].undirected


def test_two_types_of_vertices_are_bipartite(tmp_path: Path) -> None:
    made = Archive(tmp_path, "parquet", dst_type="city", prefix="edge/person_knows_person/")
    with pytest.raises(InputError, match="from person to city; add --bipartite"):
        open_source([made.edges], None, IngestOptions())
    convert(made.edges, tmp_path / "g.h5", bipartite=True)
    graph = Graph.open(tmp_path / "g.h5")
    assert graph.left == len(np.unique(made.ends[:, 0]))
    with pytest.raises(InputError, match="has the vertices 0 to 22, and the answer other ones"):
        run("wcc", graph).write(made.vertices, force=True)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"version": "gar/v2"}, "does not say version: gar/v1"),
        ({"adj_lists": []}, "not as GraphAr describes a type"),
        ({"chunk_size": 0}, "0 rows in a chunk"),
        ({"src_chunk_size": "x"}, "not as GraphAr describes a type"),
        ({"edges": ["a", "b"]}, r"has 2 types of edges \(a, b\); name the file of one"),
        ({"property_groups": [property_group("orc", a="int64")]}, "chunks are orc, and parquet and csv are read"),
    ],
)
def test_bad_descriptions(tmp_path: Path, facts: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        edges_of(Archive(tmp_path, "csv", **facts).edges)


def test_bad_files(tmp_path: Path) -> None:
    made = Archive(tmp_path, "parquet")
    lists = tmp_path / "edge" / "person_knows_person" / "ordered_by_source"
    first = lists / "cost" / "part0" / "chunk0"
    parquet.write_table(parquet.read_table(first).slice(1), first)
    with pytest.raises(InputError, match="files of its columns have different numbers of rows"):
        edges_of(made.edges, columns=("source", "target", "cost"))
    chunk = lists / "adj_list" / "part0" / "chunk0"
    parquet.write_table(parquet.read_table(chunk).slice(1), chunk)
    with pytest.raises(InputError, match="has 3 rows, and the count of its edges says 4"):
        edges_of(made.edges)
    chunk.unlink()
    with pytest.raises(InputError, match=r"part0/chunk0"):
        edges_of(made.edges)
    (lists / "edge_count0").write_bytes(b"1")
    with pytest.raises(InputError, match="no count of 8 bytes"):
        edges_of(made.edges)
    made.edges.write_text("a: [")
    with pytest.raises(InputError, match="no readable YAML"):
        edges_of(made.edges)
    with pytest.raises(InputError, match="does not exist"):
        edges_of(tmp_path / "other.edge.yml")


def test_the_command_refuses_other_vertices_before_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = Archive(tmp_path, "csv")
    answered(capsys, "convert", made.graph, tmp_path / "g.h5")
    said = refused(capsys, "run", "wcc", tmp_path / "g.h5", "--output", made.vertices)
    assert "person.vertex.yml exists already; --force replaces it" in said
    facts = answered(capsys, "run", "wcc", tmp_path / "g.h5", "--output", made.vertices, "--force")
    assert facts["program"] == "wcc"
    assert (tmp_path / "vertex" / "person" / "component" / "chunk4").exists()
    (tmp_path / "few.csv").write_text("0,1\n")
    answered(capsys, "convert", tmp_path / "few.csv", tmp_path / "few.h5")
    said = refused(capsys, "run", "wcc", tmp_path / "few.h5", "--output", made.vertices, "--force")
    assert "has the vertices 0 to 22, and the answer other ones" in said


def test_a_failed_answer_leaves_the_yaml_and_no_folder(tmp_path: Path) -> None:
    made = Archive(tmp_path, "parquet")
    convert(made.edges, tmp_path / "g.h5")
    before = made.vertices.read_bytes(), sorted((tmp_path / "vertex" / "person").iterdir())
    graph = Graph.open(tmp_path / "g.h5")
    answer = run("wcc", graph)
    with pytest.raises(InputError, match="--force replaces it"):
        answer.write(made.vertices)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.storage.tables.graphar_group.flush", refuse)
        with pytest.raises(RunError, match="No space left"):
            answer.write(made.vertices, force=True)
    assert before == (made.vertices.read_bytes(), sorted((tmp_path / "vertex" / "person").iterdir()))


@pytest.mark.parametrize("prefix", ["../../../kept/", "./", "name/", "{}/kept/"])
def test_only_the_folder_of_a_replaced_group_is_removed(tmp_path: Path, prefix: str) -> None:
    """Wherever a prefix leads: out of the folder, to the folder itself, or to that of another group."""
    made = Archive(tmp_path / "graph", "parquet")
    convert(made.edges, tmp_path / "g.h5")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "mine.txt").touch()
    facts = yaml.safe_load(made.vertices.read_text())
    facts["property_groups"].append(property_group("parquet", component="int64") | {"prefix": prefix.format(tmp_path)})
    made.vertices.write_text(yaml.dump(facts))
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    run("wcc", Graph.open(tmp_path / "g.h5")).write(made.vertices, force=True)
    assert before <= {path for path in tmp_path.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", ["decimal", "table", "cpu_count"])
def test_types_that_graphar_lacks_are_refused(tmp_path: Path, kind: str) -> None:
    made = Archive(tmp_path, "csv")
    made.vertices.write_text(made.vertices.read_text().replace("string", kind))
    with pytest.raises(InputError, match=f"the column name is of the type {kind}, which GraphAr does not have"):
        convert(made.graph, tmp_path / "g.h5", vertices=made.vertices)


def test_an_answer_is_the_first_group_of_properties(tmp_path: Path) -> None:
    made = Archive(tmp_path, "csv")
    convert(made.edges, tmp_path / "g.h5")
    facts = yaml.safe_load(made.vertices.read_text())
    del facts["property_groups"]
    made.vertices.write_text(yaml.dump(facts))
    run("wcc", Graph.open(tmp_path / "g.h5")).write(made.vertices, force=True)
    (group,) = yaml.safe_load(made.vertices.read_text())["property_groups"]
    assert group["prefix"] == "component/"


def refuse(path: Path) -> None:
    raise OSError(28, "No space left on device", str(path))


def icebug(folder: Path, offsets: list[int], targets: list[int], **columns: Any) -> Path:
    meta = {"icebug_disk_version": "v1"}
    pointers = pa.table({"indptr": pa.array(offsets, pa.uint64())}).replace_schema_metadata(meta)
    parquet.write_table(pointers, folder / "indptr_follows.parquet", row_group_size=2)
    edges = pa.table({"target": pa.array(targets, pa.uint32()), **columns}).replace_schema_metadata(meta)
    parquet.write_table(edges, folder / "indices_follows.parquet")
    users = pa.table({"id": [100, 250, 75, 9], "name": ["Adam", "Karissa", "Zhang", "Noura"]})
    parquet.write_table(users.replace_schema_metadata(meta), folder / "nodes_user.parquet")
    return folder / "indptr_follows.parquet"


def test_icebug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch)
    path = icebug(tmp_path, [0, 2, 2, 5, 5], [1, 2, 3, 3, 0], since=[2020, 2021, 2022, 2022, 2019])
    ends = [(0, 1), (0, 2), (2, 3), (2, 3), (2, 0)]
    for name in ("indptr", "indices"):
        found, source = edges_of(tmp_path / f"{name}_follows.parquet", "icebug")
        assert (found, source.known_vertices) == (ends, 4)
    assert edges_of(path, "icebug", columns=("source", "target", "since"))[0][1] == (0, 2, 2021)
    graph = tmp_path / "g.h5"
    convert(path, graph, format="icebug", vertices=tmp_path / "nodes_user.parquet", edge_properties="since")
    opened = Graph.open(graph)
    assert run("degrees", opened, where="since >= 2021")["out_degree"].tolist() == [1, 0, 2, 0]
    assert opened.provenance["properties"]["types"] == {"name": "string", "user_id": "int64"}


def test_icebug_of_many_rows(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    degrees = random.integers(0, 9, 5000)
    targets = random.integers(0, 5000, degrees.sum())
    path = icebug(tmp_path, [0, *np.cumsum(degrees).tolist()], targets.tolist())
    found = edges_of(path, "icebug", host_memory=1 << 20)[0]
    assert found == list(zip(np.repeat(np.arange(5000), degrees).tolist(), targets.tolist(), strict=True))


@pytest.mark.parametrize("offsets", [[0, 2, 1, 3], [1, 2, 3], [0, 2], [0, 4]])
def test_bad_icebug(tmp_path: Path, offsets: list[int]) -> None:
    path = icebug(tmp_path, offsets, [0, 1, 0])
    with pytest.raises(InputError, match=r"begin with 0, or one falls|different numbers of rows"):
        edges_of(path, "icebug")
    with pytest.raises(InputError, match="icebug-disk is two files"):
        edges_of(tmp_path / "nodes_user.parquet", "icebug")
