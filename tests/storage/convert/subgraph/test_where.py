"""The language of `--where`: what holds of an edge is what Python's own comparisons say, null by null."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.engine import convert, extract
from penstock.storage.base.errors import InputError
from penstock.storage.convert.subgraph.edge_filter import EdgeFilter
from penstock.storage.convert.subgraph.expression import MOST_DEPTH, parse
from penstock.storage.format.graph import Graph
from pyarrow import parquet

CHUNK = 64
EDGES = 640
WORDS = ("wire", "cash", "it's", "Überweisung", "")


def table() -> pa.Table:
    """A star, whose edges are stored in the order of the input, with columns that rise or are anything."""
    random = np.random.default_rng(3)

    def some(values: Any) -> pa.Array:
        return pa.array(values, mask=random.random(EDGES) < 0.2)

    days = [date(2025, 12, 1) + timedelta(n // 8) for n in range(EDGES)]
    moments = [datetime(2026, 1, 1) + timedelta(hours=int(n)) for n in random.integers(-50, 50, EDGES)]
    return pa.table(
        {
            "src": np.zeros(EDGES, np.int64),
            "dst": np.arange(EDGES) + 1,
            "weight": random.integers(0, 12, EDGES) / 4,
            "n": np.arange(EDGES) - 300,
            "few": some(random.integers(0, 9, EDGES)),
            "x": some(random.integers(-8, 8, EDGES) / 3),
            "day": pa.array(days),
            "at": some(moments),
            "kind": some(random.choice(WORDS, EDGES).tolist()),
            "good": some(random.random(EDGES) < 0.5),
        }
    )


ROWS = table().to_pylist()


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    folder = tmp_path_factory.mktemp("where")
    parquet.write_table(table(), folder / "in.parquet")
    with mock.patch("penstock.storage.format.adjacency_writer.CHUNK_EDGES", CHUNK):
        kept = "n,few,x,day,at,kind,good"
        yield convert(folder / "in.parquet", folder / "g.h5", columns="src,dst,weight", edge_properties=kept)


def quoted(value: Any) -> str:
    """A value as a condition has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return value.isoformat() if isinstance(value, date) else repr(value)


SIGNS = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
NUMBERS = st.one_of(st.integers(-320, 350), st.integers(-20, 20).map(lambda n: n / 4), st.floats(-400, 400))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("n", "few", "x", "weight"), NUMBERS),
    "day": st.dates(date(2025, 11, 1), date(2026, 4, 1)),
    "at": st.datetimes(datetime(2025, 12, 28), datetime(2026, 1, 5)) | st.dates(date(2025, 12, 28), date(2026, 1, 5)),
    "kind": st.sampled_from([*WORDS, "a", "zz"]),
    "good": st.booleans(),
}
Told = tuple[str, Any]
"""A condition as text, and what says of a row whether it is true, false, or neither (None)."""


def moment(value: Any) -> Any:
    """A day as the time at which it begins."""
    whole = isinstance(value, date) and not isinstance(value, datetime)
    return datetime(value.year, value.month, value.day) if whole else value


@st.composite
def comparisons(draw: st.DrawFn) -> Told:
    name = draw(st.sampled_from(list(VALUES)))
    form = draw(st.sampled_from(["compare", "mirrored", "in", "not in", "null", "not null"]))
    if form == "null":
        return f"{name} is null", lambda row: row[name] is None
    if form == "not null":
        return f'"{name}" IS NOT null', lambda row: row[name] is not None
    if form.endswith("in"):
        values = draw(st.lists(VALUES[name], min_size=1, max_size=3))
        text = f"{name} {form} ({', '.join(map(quoted, values))})"
        wanted = form == "in"
        among = [moment(value) for value in values]
        return text, lambda row: None if row[name] is None else (moment(row[name]) in among) is wanted
    sign = draw(st.sampled_from(["=", "<>"] if name == "good" else list(SIGNS)))
    value = draw(VALUES[name])
    text = f"{name} {sign} {quoted(value)}"
    if form == "mirrored":
        text = f"{quoted(value)} {MIRRORED.get(sign, sign)} {name}"
    return text, lambda row: None if row[name] is None else SIGNS[sign](moment(row[name]), moment(value))


def negated(told: Told) -> Told:
    text, truth = told
    return f"not ({text})", lambda row: None if truth(row) is None else not truth(row)


def joined(parts: tuple[str, list[Told]]) -> Told:
    word, several = parts
    decisive = word == "or"

    def truth(row: Any) -> bool | None:
        found = [one(row) for _, one in several]
        return decisive if decisive in found else None if None in found else not decisive

    return f"({f' {word} '.join(text for text, _ in several)})", truth


CONDITIONS = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        inner.map(negated),
        st.tuples(st.sampled_from(["and", "or"]), st.lists(inner, min_size=2, max_size=3)).map(joined),
    ),
    max_leaves=6,
)


@settings(deadline=None, max_examples=300)
@given(told=CONDITIONS)
def test_what_holds_is_what_python_says(graph: Graph, told: Told) -> None:
    text, truth = told
    wanted = np.array([truth(row) is True for row in ROWS])
    found = EdgeFilter.of(text, graph)
    assert np.array_equal(found.holds(graph.out, 0, EDGES), wanted)
    possible = found.possible_chunks(graph.out)
    assert not wanted.reshape(-1, CHUNK)[~possible].any()


@pytest.mark.parametrize(
    ("text", "chunks"),
    [
        ("n < -236", [0]),
        ("n >= 276 or n = -300", [0, 9]),
        ("day = 2025-12-01", [0]),
        ("not day > 2025-12-08", [0]),
        ("n in (0, 1.5)", [4]),
        ("n < 0 and n > 0.5", [4]),
        ("n < -250 and n > 250", []),
        ("kind = 'nothing'", []),
        ("n is null", []),
    ],
)
def test_chunks_in_which_nothing_can_hold_are_not_read(graph: Graph, text: str, chunks: list[int]) -> None:
    assert EdgeFilter.of(text, graph).possible_chunks(graph.out).nonzero()[0].tolist() == chunks


@pytest.mark.parametrize(
    ("text", "line", "column", "told"),
    [
        ("", 1, 1, "the end stands where a column or a value"),
        ("n >", 1, 4, "the end stands where a value"),
        ("n > 1 x", 1, 7, "x stands where and, or, or the end"),
        ("n = 1 and\n  kind = 'a", 2, 10, "opened and not closed"),
        ("n ? 1", 1, 3, "no name, number"),
        ("n = few", 1, 5, "columns are compared with values only"),
        ("n = null", 1, 5, "write is null"),
        ("(n = 1", 1, 7, r"and, or, or \)"),
        ("n in 3", 1, 6, r"where \( is expected"),
        ("day = 2026-02-30", 1, 7, "day"),
        ("n = 1e999", 1, 5, "finite"),
        ("at < 0001-01-01T00:00:00+14:00", 1, 6, "in UTC its year"),
        ("at > '9999-12-31T23:00:00-10:00'", 1, 1, "at is a timestamp"),
        ("n = 1 or price > 2", 1, 10, "edges have no 'price'"),
        ("kind = 3", 1, 1, "kind is a 'string', and is compared with 3"),
        ("n = '3'", 1, 1, "n is a number, and is compared with '3'"),
        ("day = 'soon'", 1, 1, "day is a date, and 'soon' is none"),
        ("good < true", 1, 1, "not more or less"),
        ("n", 1, 1, "n is a number"),
        ("(" * (MOST_DEPTH + 1) + "n = 1", 1, MOST_DEPTH + 1, "inside of each other"),
    ],
)
def test_an_error_says_line_and_column(graph: Graph, text: str, line: int, column: int, told: str) -> None:
    with pytest.raises(InputError, match=rf"where, line {line}, column {column}: .*{told}"):
        EdgeFilter.of(text, graph)


def test_long_conditions_are_read_without_recursion_or_refused(graph: Graph) -> None:
    many = " or ".join(f"n = {n}" for n in range(3000))
    assert EdgeFilter.of(many, graph).holds(graph.out, 0, EDGES).sum() == 340
    with pytest.raises(InputError, match="characters"):
        parse("n = 1 or " * 10000)


def test_memory_and_reads_do_not_grow_with_a_condition(graph: Graph) -> None:
    found = EdgeFilter.of(" or ".join(f"n = {n}" for n in range(1000)), graph)
    with mock.patch.object(type(graph.out.columns[0].bounds), "whole", autospec=True) as read:
        read.return_value = np.zeros(2 * graph.out.chunks, np.float32)
        found.possible_chunks(graph.out)
    assert read.call_count == 1
    tracemalloc.start()
    try:
        found.holds(graph.out, 0, EDGES)
        assert tracemalloc.get_traced_memory()[1] < 200 * EDGES  # 2 bytes of each test would be 2,000
    finally:
        tracemalloc.stop()


def test_a_part_by_a_condition_and_by_weights(graph: Graph, tmp_path: Path) -> None:
    condition = "kind in ('wire', 'cash') and good"
    wanted = [
        row["dst"] for row in ROWS if row["kind"] in ("wire", "cash") and row["good"] and 0.5 <= row["weight"] <= 2
    ]
    made = extract(graph, tmp_path / "part.h5", where=condition, weights="0.5..2", force=True)
    for part in (made, extract(graph, where=condition, weights=(0.5, 2))):
        assert part.neighbors(0).tolist() == wanted
    assert made.provenance["extracted"]["where"] == condition
    assert list(made.edge_properties) == ["n", "few", "x", "day", "at", "kind", "good"]
