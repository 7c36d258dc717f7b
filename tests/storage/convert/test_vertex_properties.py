"""A table of vertices: exactly these exist, and its other columns are found again at each of them, whatever the ids."""

from __future__ import annotations

import csv
import gzip
import os
import random
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.engine import Graph, convert, run
from penstock.storage.base.errors import InputError, UnsyncedError
from penstock.storage.convert import convert as steps
from penstock.storage.convert import vertex_properties
from penstock.storage.format import file_set
from penstock.storage.ingest.tables import vertex_table
from penstock.storage.read.verify import verify
from penstock.storage.tables import vertex_rows

NODES = """id:ID,name,age:int,zip,note:IGNORE,:LABEL
rome,Roma,2777,00118,x,City
oslo,,,0150,x,City
lone,"a,b",1,1,x,X
"""
EDGES = ":START_ID,:END_ID,weight:float,:TYPE\nrome,oslo,1.5,ROAD\noslo,rome,2,ROAD\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nodes.csv").write_text(NODES)
    (tmp_path / "edges.csv").write_text(EDGES)
    return tmp_path


def made(**options: Any) -> Graph:
    return convert("edges.csv", "g.h5", vertices="nodes.csv", renumber=True, weights=True, **options)


def test_headers_of_neo4j(folder: Path) -> None:
    graph = made()
    assert graph.properties == {"name": "string", "age": "int64", "zip": "string", "label": "string"}
    assert (graph.vertices, graph.weight_dtype) == (3, np.float32)
    result = run("degrees", graph).with_properties("age", "name", "label", "zip")
    assert result.to_arrow().select(["vertex", "name", "age", "zip", "label"]).to_pylist() == [
        {"vertex": "lone", "name": "a,b", "age": 1, "zip": "1", "label": "X"},
        {"vertex": "oslo", "name": None, "age": None, "zip": "0150", "label": "City"},
        {"vertex": "rome", "name": "Roma", "age": 2777, "zip": "00118", "label": "City"},
    ]
    assert result.top_rows(1, by="in_degree")[0] == {
        "vertex": "oslo", "in_degree": 1, "age": None, "name": None, "label": "City", "zip": "0150",
    }  # fmt: skip


@pytest.mark.slow
@settings(max_examples=12)
@given(st.data())
def test_every_vertex_keeps_its_own(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Ids of either kind, in any order, sorted in one part or several, vertices in any order."""
    folder = tmp_path_factory.mktemp("nodes")
    named, parts = data.draw(st.booleans()), data.draw(st.sampled_from([1, 3]))
    ids = data.draw(st.lists(st.integers(0, 99), min_size=4, max_size=30, unique=True))
    draw = random.Random(data.draw(st.integers(0, 99)))
    keys = [f"v{one}é" if named else one for one in ids]
    values = [draw.choice(["", "1", "1.5", "007", "x y", '"q"']) for _ in keys]
    with (folder / "n.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("text", "id", "number"), *zip(values, keys, map(len, values), strict=True)])
    ends = [(draw.choice(keys), draw.choice(keys)) for _ in range(20)]
    (folder / "e.txt").write_text("".join(f"{a} {b}\n" for a, b in ends))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vertex_table, "MEMORY_SHARE", 8 if parts == 1 else 1 << 27)
        patch.setattr(vertex_rows, "GROUP_ROWS", 5)
        graph = convert(
            folder / "e.txt", folder / "g.h5", vertices=folder / "n.csv", renumber=named, string_ids=named,
            order=draw.choice(["none", "degree"]),
        )  # fmt: skip
    table = run("degrees", graph).with_properties("text", "number").to_arrow()
    found = dict(zip(table["vertex"].to_pylist(), table["text"].to_pylist(), strict=True))
    read = set(values) - {""}
    wanted: Any = int if read <= {"1"} else float if read <= {"1", "1.5"} else str
    assert found == {key: wanted(text) if text else None for key, text in zip(keys, values, strict=True)}
    assert table["number"].to_pylist() == [len(dict(zip(keys, values, strict=True))[key]) for key in found]


def test_other_forms_of_a_table(folder: Path) -> None:
    table = pyarrow.table({"key": [7, 3, 5], "x": pyarrow.array([1.5, None, 2.5], pyarrow.float32()), "d": [True] * 3})
    pyarrow.parquet.write_table(table, "n.parquet")
    (folder / "e.txt").write_text("3 7\n")
    graph = convert("e.txt", "a.h5", vertices="n.parquet")
    assert run("degrees", graph).with_properties("x", "d").to_arrow().select(["vertex", "x", "d"]).to_pylist() == [
        {"vertex": 3, "x": None, "d": "true"},
        {"vertex": 5, "x": 2.5, "d": "true"},
        {"vertex": 7, "x": 1.5, "d": "true"},
    ]
    with gzip.open("n.tsv.gz", "wt") as file:
        file.write("﻿# made by hand\nid\tcolor\n3\tred\n7\tblue\n")
    assert convert("e.txt", "b.h5", vertices="n.tsv.gz").properties == {"color": "string"}
    (folder / "list.csv").write_text("7,x\n3,y\n")
    assert convert("e.txt", "c.h5", vertices="list.csv").properties == {}


@pytest.mark.parametrize("kind", ["graphml", "gml"])
def test_nodes_of_networkx_have_their_attributes(kind: str, folder: Path) -> None:
    graph = nx.DiGraph([(0, 1), (1, 2)])
    nx.set_node_attributes(graph, {0: {"who": 'a "b" & <c>', "age": 7}, 2: {"age": 9}})
    getattr(nx, f"write_{kind}")(graph, f"net.{kind}")
    made = convert(f"net.{kind}", "net.h5", vertices=f"net.{kind}")
    table = run("degrees", made).with_properties("who", "age").to_arrow()
    assert table["who"].to_pylist() == ['a "b" & <c>', None, None]
    assert table["age"].to_pylist() == [7, None, 9]


def test_a_list_keeps_them_and_gives_them_on(folder: Path) -> None:
    graph = made(layout="list")
    assert graph.properties["age"] == "int64"
    again = convert("g.h5", "sorted.h5")
    assert run("wcc", again).with_properties("zip").to_arrow()["zip"].to_pylist() == ["1", "0150", "00118"]


def test_replacing(folder: Path) -> None:
    made()
    with pytest.raises(InputError, match=r"g\.h5 exists already"):
        made()
    made(force=True)
    Path("old.parquet").write_bytes(Path("g.vertices.parquet").read_bytes())
    made(force=True)
    Path("old.parquet").replace("g.vertices.parquet")
    with pytest.raises(InputError, match="has the properties of another graph"):
        run("wcc", Graph.open("g.h5")).with_properties("name")
    made(force=True)
    convert("edges.csv", "g.h5", renumber=True, weights=True, force=True)
    assert not Path("g.vertices.parquet").exists()
    with pytest.raises(InputError, match="has no properties of vertices; convert with --vertices"):
        run("wcc", Graph.open("g.h5")).with_properties("name")


@pytest.mark.parametrize("force", [False, True])
def test_a_kill_between_the_names_of_graph_and_table_parts_them_not(
    force: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if force:
        Path("nodes.csv").write_text(NODES.replace("Roma", "Urbs"))
        made()
        Path("nodes.csv").write_text(NODES)

    there: list[bool] = []

    def die(partial: Path, target: Path, *, force: bool) -> None:
        there.append(target.exists())
        raise SystemError("the process is gone")

    with monkeypatch.context() as patch:
        patch.setattr(vertex_properties, "give_name", die)
        with pytest.raises(SystemError):
            made(force=force)
    assert there[0] == force, "the old table stays until the new one has its name"
    assert verify(Path("g.h5")).problems == []
    assert run("degrees", Graph.open("g.h5")).with_properties("name").to_arrow()["name"].to_pylist()[2] == "Roma"
    made(force=True)
    assert sorted(path.name for path in folder.iterdir()) == ["edges.csv", "g.h5", "g.vertices.parquet", "nodes.csv"]


@pytest.mark.parametrize("named", [False, True])
def test_a_signal_between_the_names_of_graph_and_table_leaves_both(
    folder: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    """Or behind the link that is the table's name, before its hidden one goes."""
    real, calls = vertex_properties.give_name, [0]

    def interrupted(partial: Path, target: Path, *, force: bool) -> None:
        calls[0] += 1
        if calls[0] == 1:
            if named:
                os.link(partial, target)
            raise KeyboardInterrupt
        real(partial, target, force=force)

    monkeypatch.setattr(vertex_properties, "give_name", interrupted)
    with pytest.raises(KeyboardInterrupt):
        made()
    assert sorted(path.name for path in folder.iterdir()) == ["edges.csv", "g.h5", "g.vertices.parquet", "nodes.csv"]
    assert verify(Path("g.h5")).problems == []


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), UnsyncedError("cannot be synced")])
def test_a_signal_behind_the_name_of_a_graph_without_a_table_leaves_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch, stop: BaseException
) -> None:
    """The old graph may be there again after a power failure where the folder could not be synced: its table stays."""
    made()
    stops = [stop]

    def stopped(target: Path) -> None:
        if stops:
            raise stops.pop()

    monkeypatch.setattr(file_set, "sync_folder", stopped)
    with pytest.raises(type(stop)):
        convert("edges.csv", "g.h5", renumber=True, weights=True, force=True)
    assert Graph.open("g.h5").properties == {}
    assert Path("g.vertices.parquet").exists() == isinstance(stop, UnsyncedError)


def test_a_conversion_that_runs_out_of_memory_leaves_no_table(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made()
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def refused(*arguments: object, **named: object) -> None:
        monkeypatch.setattr(vertex_properties, "read_manifest", refused)  # no graph can be opened from now on
        raise MemoryError("no room")

    monkeypatch.setattr(steps, "write_graph", refused)
    with pytest.raises(MemoryError):
        made(force=True)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_what_is_done_to_a_copy_leaves_the_table_of_the_original(folder: Path) -> None:
    made()
    Path("c").mkdir()
    for name in ("g.h5", "link.h5", "moved.h5"):
        Path("c", name).write_bytes(Path("g.h5").read_bytes())
    table = Path("g.vertices.parquet").read_bytes()
    Path("c/g.vertices.parquet").symlink_to(folder / "g.vertices.parquet")
    convert("edges.csv", "c/g.h5", vertices="nodes.csv", renumber=True, weights=True, force=True)
    assert run("wcc", Graph.open("c/g.h5")).with_properties("name").to_arrow()["name"][0].as_py() == "a,b"
    assert not Path("c/g.vertices.parquet").is_symlink()
    Path("c/link.vertices.parquet").symlink_to(folder / "g.vertices.parquet")
    Path("c/moved.h5").rename("c/other.h5")
    Path("c/moved.vertices.parquet").write_bytes(table)  # left by a graph that was moved without it
    for name in ("c/link.h5", "c/moved.h5"):
        convert("edges.csv", name, renumber=True, weights=True, force=True)
    assert not Path("c/link.vertices.parquet").is_symlink()
    assert Path("c/moved.vertices.parquet").read_bytes() == Path("g.vertices.parquet").read_bytes() == table
    Path("way.h5").symlink_to("g.h5")
    assert run("wcc", Graph.open("way.h5")).with_properties("zip").to_arrow()["zip"][0].as_py() == "1"


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        (NODES + "oslo,twice,,,,\n", "vertex oslo has two lines"),
        (NODES + ",none,,,,\n", "a vertex has no id"),
        (NODES + "bern,Bern,old,,,\n", "invalid value 'old'"),
        (NODES + "bern,Bern\n", "Expected 6 columns, got 2"),
        ("id,name\n", "there is no vertex in it"),
        ("id,a,a\n1,2,3\n", "every column needs a name of its own"),
        ("id:ID,b:ID\n1,2\n", "columns id:ID and b:ID are ids"),
        ("id,vertex\n1,2\n", "a property is called 'vertex'"),
        (EDGES, "is a table of edges (column :START_ID)"),
        ("id,name\nrome,Roma\n", "'oslo' is not listed in nodes.csv"),
    ],
)
def test_what_is_refused(nodes: str, reason: str, folder: Path) -> None:
    (folder / "nodes.csv").write_text(nodes)
    with pytest.raises(InputError) as caught:
        made()
    assert reason in str(caught.value)
    assert "nodes.csv" in str(caught.value)
    assert sorted(path.name for path in folder.iterdir()) == ["edges.csv", "nodes.csv"]


def test_two_spaces_of_ids_are_two_sides(folder: Path) -> None:
    (folder / "likes.csv").write_text("u:START_ID(User),f:END_ID(Film)\n1,1\n2,1\n")
    with pytest.raises(InputError, match=r"two spaces of ids, Film and User, .*"):
        convert("likes.csv", "likes.h5")
    assert convert("likes.csv", "likes.h5", bipartite=True).vertices == 3


def test_verifying(folder: Path) -> None:
    made(order="degree")
    place = Path("g.vertices.parquet")
    assert verify(Path("g.h5")).whole
    data = bytearray(place.read_bytes())
    data[20] ^= 0xFF  # in the first page
    place.write_bytes(data)
    assert "g.vertices.parquet is damaged" in verify(Path("g.h5")).problems[0].what
    place.unlink()
    assert [problem.place for problem in verify(Path("g.h5")).problems] == ["g.vertices.parquet"]
