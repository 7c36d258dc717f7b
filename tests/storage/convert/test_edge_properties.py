"""Columns beside edges: what convert keeps of every format, in every adjacency, is what the input has."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pytest
from penstock.engine import convert, extract
from penstock.storage.base.errors import InputError, PenstockError
from penstock.storage.format.graph import Adjacency, Graph
from penstock.storage.format.schema import COLUMNS_VERSION
from penstock.storage.read.verify import verify
from pyarrow import compute, csv, feather, parquet
from support.commands import answered, refused
from support.graph_files import forge_header

NAMES = ("amount", "day", "at", "kind", "change", "good", "seen")


def payments(edges: int, seed: int = 1, vertices: int = 60) -> pa.Table:
    """Edges with columns of every type, some null, among them parallel ones."""
    random = np.random.default_rng(seed)
    days = [date(1960, 1, 1) + timedelta(int(n)) for n in random.integers(0, 40000, edges)]
    moments = [datetime(2024, 5, 1) + timedelta(microseconds=int(n)) for n in random.integers(0, 10**12, edges)]
    return pa.table(
        {
            "src": random.integers(0, vertices, edges),
            "dst": random.integers(0, vertices, edges),
            "w": random.integers(1, 9, edges) / 4,
            "amount": pa.array(random.integers(0, 4000, edges) / 8, mask=random.random(edges) < 0.1),
            "day": pa.array(days),
            "at": pa.array(moments, pa.timestamp("us"), mask=random.random(edges) < 0.2),
            "kind": pa.array(random.choice(["wire", "cash", "", "Überweisung", "it's"], edges)).cast(pa.string()),
            "change": random.integers(-5, 5, edges),
            "good": pa.array(random.random(edges) < 0.5, mask=random.random(edges) < 0.1),
            "seen": pa.array(random.integers(2**40, 2**60, edges), mask=random.random(edges) < 0.3),
        }
    )


def shown(value: Any) -> str | None:
    """A value as the file's column shows it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return str(np.datetime64(value, "us"))
    return f"{value:g}" if isinstance(value, float) else str(value)


def stored(rows: Adjacency, graph: Graph, names: tuple[str, ...]) -> Counter[tuple[Any, ...]]:
    """Every edge of an adjacency, by ids of the input, with its weight and columns."""
    index = rows.index()
    ids = graph.original_ids_in(0, graph.vertices)
    sources = ids[np.repeat(np.arange(graph.vertices), index.degrees(0, graph.vertices))]
    targets, weights = rows.edges_in(0, rows.edges)
    found: list[list[Any]] = [sources.tolist(), ids[targets].tolist()]
    found.append([None] * rows.edges if weights is None else weights.tolist())
    assert tuple(column.property.name for column in rows.columns) == names
    for column in rows.columns:
        numbers, null = column.property.numbers(column.frames.whole())
        missing = np.zeros(rows.edges, np.bool_) if null is None else null
        found.append([None if no else column.property.shown(n) for n, no in zip(numbers, missing, strict=True)])
    return Counter(zip(*found, strict=True))


def wanted(table: pa.Table, names: tuple[str, ...], *, weights: bool, reverse: bool = False) -> Counter[Any]:
    """The same of the input."""
    ends = ["dst", "src"] if reverse else ["src", "dst"]
    columns = [table[end].to_pylist() for end in ends]
    columns.append(table["w"].to_pylist() if weights else [None] * len(table))
    columns += [list(map(shown, table[name].to_pylist())) for name in names]
    return Counter(zip(*columns, strict=True))


def write(table: pa.Table, path: Path) -> Path:
    if path.suffix == ".csv":
        csv.write_csv(table, path)
    elif path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=700)
    else:
        feather.write_feather(table, path)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
@pytest.mark.parametrize("weights", [True, False])
def test_columns_of_every_type_are_kept_in_both_directions(tmp_path: Path, suffix: str, weights: bool) -> None:
    table = payments(2500)
    if suffix == ".csv":  # an empty field is null there
        text = [word or None for word in table["kind"].to_pylist()]
        table = table.set_column(table.column_names.index("kind"), "kind", pa.array(text))
    path = write(table, tmp_path / f"in{suffix}")
    columns = "src,dst,w" if weights else "src,dst"
    graph = convert(
        path, tmp_path / "g.h5", columns=columns, edge_properties=NAMES, direction="both", host_memory="32MiB"
    )
    assert verify(tmp_path / "g.h5").problems == []
    assert graph.into is not None
    assert stored(graph.out, graph, NAMES) == wanted(table, NAMES, weights=weights)
    assert stored(graph.into, graph, NAMES) == wanted(table, NAMES, weights=weights, reverse=True)
    assert graph.edge_properties["at"] == "timestamp"


@pytest.mark.parametrize("options", [{"renumber": True}, {"order": "degree"}, {"windows": 2, "direction": "both"}])
def test_columns_stay_with_their_edges_whatever_vertices_are_called(tmp_path: Path, options: dict[str, Any]) -> None:
    table = payments(1500, vertices=400)
    path = write(table, tmp_path / "in.parquet")
    graph = convert(path, tmp_path / "g.h5", columns="src,dst", edge_properties="amount,kind", **options)
    assert verify(tmp_path / "g.h5").problems == []
    assert stored(graph.out, graph, ("amount", "kind")) == wanted(table, ("amount", "kind"), weights=False)


def test_undirected_edges_have_their_columns_at_both_ends(tmp_path: Path) -> None:
    table = payments(800)
    path = write(table, tmp_path / "in.parquet")
    graph = convert(path, tmp_path / "g.h5", columns="src,dst,w", edge_properties="seen", undirected=True)
    assert verify(tmp_path / "g.h5").problems == []
    both = wanted(table, ("seen",), weights=True) + wanted(table, ("seen",), weights=True, reverse=True)
    loops = Counter({edge: count // 2 for edge, count in both.items() if edge[0] == edge[1]})
    assert stored(graph.out, graph, ("seen",)) == both - loops


@pytest.mark.parametrize("rule", ["first", "min", "max"])
def test_of_parallel_edges_the_columns_of_one_stay(tmp_path: Path, rule: str) -> None:
    table = payments(3000, vertices=12)
    path = write(table, tmp_path / "in.parquet")
    graph = convert(path, tmp_path / "g.h5", columns="src,dst,w", edge_properties="at,kind", dedupe=rule)
    best: dict[tuple[int, int], Any] = {}
    for row in table.to_pylist():
        pair, weight = (row["src"], row["dst"]), {"first": 0.0, "min": row["w"], "max": -row["w"]}[rule]
        if pair not in best or weight < best[pair][0]:
            best[pair] = weight, (*pair, row["w"], shown(row["at"]), shown(row["kind"]))
    assert stored(graph.out, graph, ("at", "kind")) == Counter(edge for _, edge in best.values())


def test_one_pair_with_more_edges_than_memory(tmp_path: Path) -> None:
    edges = 1_200_000
    table = pa.table({"src": np.zeros(edges, np.int64), "dst": np.ones(edges, np.int64), "n": np.arange(edges)})
    path = write(table, tmp_path / "in.parquet")
    graph = convert(path, tmp_path / "g.h5", edge_properties="n", columns="src,dst", host_memory="32MiB")
    assert np.array_equal(graph.out.columns[0].frames.whole(), np.arange(edges))
    assert graph.out.columns[0].bounds.whole()[:2].tolist() == [0, 262143]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"edge_properties": "colour"}, "'colour' is not the name of one column"),
        ({"edge_properties": "amount,amount"}, "named twice"),
        ({"edge_properties": "amount:money"}, "of int, float, bool"),
        ({"edge_properties": "weight"}, "is what weights keeps"),
        ({"edge_properties": "kind:int"}, "says another type than int"),
        ({"edge_properties": "amount", "dedupe": "sum"}, 'dedupe="sum"'),
        ({"edge_properties": "amount", "layout": "list"}, "is for sorted rows"),
    ],
)
def test_what_cannot_be_kept_is_refused(tmp_path: Path, options: dict[str, Any], told: str) -> None:
    path = write(payments(50), tmp_path / "in.parquet")
    with pytest.raises(InputError, match=told):
        convert(path, tmp_path / "g.h5", columns="src,dst", **options)
    assert not (tmp_path / "g.h5").exists()


def test_a_value_of_another_type_is_named_with_its_line(tmp_path: Path) -> None:
    lines = ["from,to,amount,note", *(f"{n},{n + 1},{n},x" for n in range(20)), '1,2,lots,"a, b"', "1,2,3,y"]
    (tmp_path / "in.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=r"in\.csv, line 22.*lots.*amount:TYPE"):
        convert(tmp_path / "in.csv", tmp_path / "g.h5", columns="from,to", edge_properties="amount:int")
    (tmp_path / "in.txt").write_text("1 2 3\n")
    with pytest.raises(InputError, match="edge_properties is for csv"):
        convert(tmp_path / "in.txt", tmp_path / "g.h5", edge_properties="amount")


def test_times_of_csv_may_have_zones(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text(
        "src,dst,at\n1,2,2026-01-01T12:00:00+02:00\n2,3,2026-01-01T11:00:00Z\n3,4,\n4,5,2026-01-01 12:00:00\n"
    )
    graph = convert(path, tmp_path / "g.h5", columns="src,dst", edge_properties="at:timestamp")
    column = graph.out.columns[0]
    numbers, null = column.property.numbers(column.frames.whole())
    assert null is not None
    found = [None if no else column.property.shown(n)[11:16] for n, no in zip(numbers, null, strict=True)]
    assert found == ["10:00", "11:00", None, "12:00"]
    path.write_text("src,dst,at\n1,2,2026-01-01T12:00:00Z\n2,3,soonTZ\n")
    with pytest.raises(InputError, match="line 3: column 'at'"):
        convert(path, tmp_path / "g.h5", columns="src,dst", edge_properties="at:timestamp", force=True)


def test_the_least_whole_number_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(f"src,dst,when\n0,1,{-(2**63)}\n1,2,5\n")
    with pytest.raises(InputError, match=r"'when' has whole numbers from -9223372036854775808 to 5; keep them as text"):
        convert([tmp_path / "in.csv"], tmp_path / "g.h5", edge_properties=["when"])
    assert not (tmp_path / "g.h5").exists()


def test_an_input_without_rows(tmp_path: Path) -> None:
    path = write(payments(0), tmp_path / "in.parquet")
    graph = convert(path, tmp_path / "g.h5", columns="src,dst", edge_properties="amount,kind:string")
    assert graph.edge_properties == {"amount": "int", "kind": "string"}
    assert extract(graph, where="amount > 1 and kind = 'wire'").edges == 0
    assert verify(tmp_path / "g.h5").problems == []


def test_both_infinities_are_numbers(tmp_path: Path) -> None:
    table = pa.table({"src": [0, 1, 2], "dst": [1, 2, 0], "x": [np.inf, -np.inf, 1.5]})
    graph = convert(write(table, tmp_path / "in.parquet"), tmp_path / "g.h5", columns="src,dst", edge_properties="x")
    assert graph.out.columns[0].frames.whole().tolist() == [np.inf, -np.inf, 1.5]
    assert extract(graph, where="x < 0").edges == 1
    with pytest.raises(InputError, match="'x' has values that are infinite"):
        graph.with_weight("x")


def test_an_older_penstock_refuses_the_file_and_append_does_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(payments(50), tmp_path / "in.parquet")
    convert(path, tmp_path / "g.h5", columns="src,dst", edge_properties="amount")
    with h5py.File(tmp_path / "g.h5") as file:
        assert file.attrs["penstock_format"] == COLUMNS_VERSION
    (tmp_path / "more.txt").write_text("1 2\n")
    assert "keeps amount beside its edges" in refused(capsys, "append", tmp_path / "g.h5", tmp_path / "more.txt")


def test_a_header_that_no_writer_makes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.h5"
    convert(write(payments(50), tmp_path / "in.parquet"), path, columns="src,dst", edge_properties="kind,amount")
    with h5py.File(path) as file:
        header = json.loads(bytes(file["penstock_header"][()]))
    changes: list[dict[str, Any]] = [
        {"name": "no name"},
        {"type": "money"},
        {"values": ["b", "a"]},
        {"nulls": 2},
        {"range": [1.0]},
        {"base": 1 << 70},
    ]
    for change in changes:
        forged = json.loads(json.dumps(header))
        forged["edge_properties"][0] |= change
        forge_header(path, forged)
        with pytest.raises(PenstockError, match=r"edge_properties|unreadable"):
            Graph.open(path)
    forged = json.loads(json.dumps(header)) | {"edge_properties": header["edge_properties"] * 2}
    forge_header(path, forged)
    with pytest.raises(PenstockError, match="edge_properties"):
        Graph.open(path)


def extent(table: pa.Table, name: str) -> list[str]:
    """The least and the greatest value of a column."""
    found = compute.min_max(table[name]).as_py()
    return [str(found["min"]), str(found["max"])]


def test_info_shows_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(payments(500), tmp_path / "in.parquet")
    convert(path, tmp_path / "g.h5", columns="src,dst", edge_properties="day,kind,change,seen")
    facts = answered(capsys, "info", tmp_path / "g.h5")["edge_properties"]
    assert [one["name"] for one in facts] == ["day", "kind", "change", "seen"]
    assert [facts[2][key] for key in ("type", "least", "greatest", "strings")] == ["int", "-5", "4", None]
    assert facts[1]["strings"] == 5
    assert [facts[3][key] for key in ("least", "greatest", "nulls")] == [*extent(payments(500), "seen"), True]


def test_a_part_of_a_graph_keeps_columns(tmp_path: Path) -> None:
    table = payments(3000)
    path = write(table, tmp_path / "in.parquet")
    graph = convert(path, tmp_path / "g.h5", columns="src,dst,w", edge_properties=NAMES, direction="both")
    part = extract(graph, tmp_path / "part.h5", vertices=list(range(0, 60, 2)))
    assert verify(tmp_path / "part.h5").problems == []
    odd = compute.bit_wise_and(compute.bit_wise_or(table["src"], table["dst"]), 1)
    inside = table.filter(compute.equal(odd, 0))
    assert stored(part.out, part, NAMES) == wanted(inside, NAMES, weights=True)
