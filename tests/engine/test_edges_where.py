"""Answers under a condition on edges, and with a column as weight, are those on a graph filtered before conversion."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from penstock.engine import Graph, convert, run, sample_neighbors, similarity, walk
from penstock.engine.api import make
from penstock.engine.programs.table import named
from penstock.engine.queries.edges_where import edges_where
from penstock.engine.resources.config import Config
from penstock.engine.session import Session
from penstock.storage.convert.subgraph.extract import select_to_file
from pyarrow import compute, csv, parquet
from support.commands import answered, refused
from support.covering import covering
from support.thread_ranks import on_ranks

VERTICES = 70_000
CHUNK = 512
EDGES = 4_000
WHERE = "amount >= 100 and kind = 'wire' or day < 2026-01-01 and not fee in (1, 2)"
PROGRAMS: dict[str, dict[str, Any]] = {
    "pagerank": {},
    "sssp": {"source": 3},
    "bfs": {"source": 3},
    "wcc": {},
    "cdlp": {},
    "triangles": {},
    "kcore": {"k": 3},
}


def payments() -> pa.Table:
    """Edges among a few vertices, some of them parallel."""
    random = np.random.default_rng(5)
    source, target = random.integers(0, 300, (2, EDGES)) * 233
    return pa.table(
        {
            "src": source,
            "dst": target,
            "amount": pa.array(random.integers(0, 400, EDGES), mask=random.random(EDGES) < 0.1),
            "fee": random.integers(1, 6, EDGES),
            "rate": random.integers(1, 40, EDGES) / 8,
            "day": pa.array(random.integers(20300, 20700, EDGES).astype(np.int32)).cast(pa.date32()),
            "kind": pa.array(random.choice(["wire", "cash", "card"], EDGES)),
        }
    )


def held() -> pa.Array:
    """Which edges stay, as Arrow's own functions say."""
    table = payments()
    one = compute.and_kleene(compute.greater_equal(table["amount"], 100), compute.equal(table["kind"], "wire"))
    early = compute.less(table["day"], pa.scalar(20454, pa.int32()).cast(pa.date32()))
    two = compute.and_kleene(early, compute.invert(compute.is_in(table["fee"], pa.array([1, 2]))))
    return compute.or_kleene(one, two)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("where")
    parquet.write_table(payments(), place / "all.parquet")
    parquet.write_table(payments().filter(held()), place / "some.parquet")
    return place


@pytest.fixture(autouse=True)
def small_chunks() -> Iterator[None]:
    """Many chunks, that little memory does not hold all."""
    places = ("format.adjacency_writer", "convert.subgraph.extract")
    one, two = (mock.patch(f"penstock.storage.{place}.CHUNK_EDGES", CHUNK) for place in places)
    with one, two:
        yield


@cache
def graphs(folder: Path, weight: str, form: str) -> tuple[Graph, Graph]:
    """All edges with their columns, and those that stay, converted with a column as weight."""
    shapes: dict[str, dict[str, Any]] = {
        "both": {"direction": "both"},
        "undirected": {"undirected": True},
        "windows": {"direction": "both", "windows": 2},
        "plain": {"direction": "both", "encoding": "plain"},
    }
    options: dict[str, Any] = {"vertices": VERTICES, **shapes[form]}
    columns, name = f"src,dst,{weight}", f"{weight}-{form}"
    kept = "amount,fee,rate,day,kind"
    whole = convert(folder / "all.parquet", folder / f"a-{name}.h5", columns=columns, edge_properties=kept, **options)
    some = convert(folder / "some.parquet", folder / f"s-{name}.h5", columns=columns, **options)
    return whole, some


WAYS: dict[str, dict[str, Any]] = {
    "memory": {},
    "disk": {"host_memory": 12 << 20, "partition_bytes": 4096},
    "resident": {"device": "emulated", "route": "filter", "device_edge_memory": 1 << 20},
    "filter": {"device": "emulated", "route": "filter", "device_edge_memory": 20_000, "partition_bytes": 4096},
    "compaction": {"device": "emulated", "route": "compaction", "device_edge_memory": 20_000, "partition_bytes": 4096},
    "zero-copy": {"device": "emulated", "route": "zero-copy", "device_edge_memory": 20_000, "partition_bytes": 4096},
    "blocks": {"device": "emulated", "route": "blocks", "device_edge_memory": 20_000, "partition_bytes": 4096},
}


def same(one: Any, other: Any) -> None:
    assert set(one.fields) == set(other.fields)
    for name, values in one.fields.items():
        assert np.array_equal(values, other.fields[name], equal_nan=values.dtype.kind == "f"), name


FORMS = ("both", "undirected", "windows", "plain")


@covering(
    "program, way, form, weight",
    *(PROGRAMS, WAYS, FORMS, ("fee", "rate")),
    where=lambda program, way, form, weight: (way, form) != ("blocks", "plain"),  # which are of packed edges
)
def test_answers_are_those_of_a_graph_filtered_before(
    folder: Path, program: str, way: str, form: str, weight: str
) -> None:
    whole, some = graphs(folder, weight, form)
    options = PROGRAMS[program] | WAYS[way]
    same(run(program, whole, where=WHERE, **options), run(program, some, **options))
    assert list(folder.glob(".penstock*")) == []


@covering("program, form", ("sssp", "widest", "msf"), ("both", "undirected"))
def test_a_column_as_weight(folder: Path, program: str, form: str) -> None:
    whole, _ = graphs(folder, "fee", form)
    other, some = graphs(folder, "rate", form)
    options = {} if program == "msf" else {"source": 3}
    same(run(program, whole, weight="rate", **options), run(program, other, **options))
    same(run(program, whole, weight_column="rate", where=WHERE, **options), run(program, some, **options))


@pytest.mark.parametrize("program", ["pagerank", "sssp"])
def test_ranks_open_one_file_together(folder: Path, program: str) -> None:
    whole, some = graphs(folder, "fee", "both")
    made = make(named(program), PROGRAMS[program])

    def one(communicator: Any) -> Any:
        found = edges_where(whole, WHERE, Config.of(device="cpu"), communicator)
        with Session(found, ranks=communicator, device="cpu") as session:
            return session.run(make(named(program), PROGRAMS[program]))

    wanted = run(made, some)
    for result in on_ranks(2, one):
        for name, values in wanted.fields.items():
            assert np.allclose(values, result.fields[name], rtol=1e-12, atol=0), name
    assert list(folder.glob(".penstock*")) == []


def test_the_command_line(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graphs(folder, "fee", "both")
    whole, some = folder / "a-fee-both.h5", folder / "s-rate-both.h5"
    graphs(folder, "rate", "both")
    asked = ("run", "sssp", "--source", 3, "--output")
    answered(capsys, *asked, tmp_path / "one.csv", whole, "--where", WHERE, "--weight", "rate")
    answered(capsys, *asked, tmp_path / "two.csv", some)
    assert csv.read_csv(tmp_path / "one.csv").equals(csv.read_csv(tmp_path / "two.csv"))
    answered(capsys, "run", "--weight", "sssp", whole, "--source", 3)  # as ever: a flag
    job = f'graph = "{whole}"\nwhere = "{WHERE}"\nweight-column = "rate"\n[[programs]]\nname = "sssp"\nsource = 3\n'
    (tmp_path / "job.toml").write_text(job + 'output = "three.csv"\n')
    answered(capsys, "run", tmp_path / "job.toml")
    assert csv.read_csv(tmp_path / "three.csv").equals(csv.read_csv(tmp_path / "two.csv"))
    told = answered(capsys, "run", "pagerank", whole, "--where", WHERE, "--dry-run")
    assert told["command"]
    assert "column 1: edges have no 'price'" in refused(capsys, "run", "wcc", whole, "--where", "price > 3")
    assert "'kind' is a string" in refused(capsys, "run", "sssp", whole, "--source", 3, "--weight", "kind")
    assert "'amount' has nulls" in refused(capsys, "run", "sssp", whole, "--source", 3, "--weight", "amount")


def test_graphs_in_memory_and_lists_have_weights_only(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("0 1 5\n1 2 1\n2 3 5\n0 3 2\n")
    listed = convert(tmp_path / "in.txt", tmp_path / "list.h5", layout="list", weights=True)
    memory = Graph.from_arrays([0, 2, 3, 4, 4], [1, 3, 2, 3], [5, 2, 1, 5])
    for graph in (listed, memory):
        found = run("bfs", graph, source=0, where="weight > 1")
        assert found.fields["level"].tolist()[:2] == [0, 1]
        assert found.fields["level"].tolist()[3] == 1
        assert not 0 <= int(found.fields["level"][2]) < 4


def test_a_checkpoint_is_of_the_edges_that_stayed(folder: Path, tmp_path: Path) -> None:
    whole, _ = graphs(folder, "fee", "both")
    options: dict[str, Any] = {"checkpoint": tmp_path / "c", "checkpoint_every": 1, "tol": 0, "resume": True}
    run("pagerank", whole, where=WHERE, max_iter=3, **options)
    resumed = run("pagerank", whole, where=WHERE, max_iter=5, **options)
    fresh = run("pagerank", whole, where=WHERE, max_iter=5, tol=0)
    same(resumed, fresh)
    assert len(resumed.records) < len(fresh.records)
    other = run("pagerank", whole, where="fee > 1", max_iter=5, **options)
    same(other, run("pagerank", whole, where="fee > 1", max_iter=5, tol=0))


def test_walks_similarity_and_samples(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, some = graphs(folder, "fee", "both")
    one = walk(whole, length=5, walks_per_vertex=1, where=WHERE)
    assert np.array_equal(one.to_numpy(), walk(some, length=5, walks_per_vertex=1).to_numpy())
    seeds = [0, 233, 466]
    found = sample_neighbors(whole, seeds, [5, 5], where=WHERE)
    assert np.array_equal(found.edge_index, sample_neighbors(some, seeds, [5, 5]).edge_index)
    pairs = [(0, 233), (233, 466), (0, 699)]
    assert np.array_equal(similarity(whole, pairs, where=WHERE).common, similarity(some, pairs).common)
    files = [tmp_path / "one.csv", tmp_path / "two.csv"]
    for file, graph, given in zip(files, (whole, some), (["--where", WHERE], []), strict=True):
        answered(capsys, "walk", graph.path, "--length", 3, "--walks-per-vertex", 1, "--output", file, *given)
    assert files[0].read_bytes() == files[1].read_bytes()
    told = [
        answered(capsys, "similarity", graph.path, "--k", 2, *given)["top"]
        for graph, given in ((whole, ["--where", WHERE]), (some, []))
    ]
    assert told[0] == told[1]


def test_the_folder_of_a_graph_need_not_be_writable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "temporary").mkdir()
    (tmp_path / "in.csv").write_text("src,dst,fee\n1,2,3\n2,3,4\n3,1,5\n")
    graph = convert(tmp_path / "in.csv", tmp_path / "data/g.h5", columns="src,dst", edge_properties="fee")
    (tmp_path / "data").chmod(0o500)
    monkeypatch.setattr("penstock.engine.queries.edges_where.access", lambda place, mode: place != tmp_path / "data")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    with mock.patch("penstock.engine.queries.edges_where.select_to_file", wraps=select_to_file) as written:
        assert run("wcc", graph, where="fee > 3").graph.edges == 2
    assert written.call_args.args[1].parent == tmp_path / "temporary"
    assert list((tmp_path / "temporary").iterdir()) == []
    (tmp_path / "data").chmod(0o700)
