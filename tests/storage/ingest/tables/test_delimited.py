"""CSV is read as CSV: delimiter, quotes, header and columns; and what is no CSV is named with line and way out."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.storage.base.errors import InputError
from penstock.storage.ingest.bytes import blocks as line_blocks
from penstock.storage.ingest.core.source import IngestOptions, parse_delimiter
from penstock.storage.ingest.open_source import open_source
from penstock.storage.ingest.tables import delimited
from support.covering import covering
from support.reading import Edges, edges_in, small_blocks


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 64 bytes, so that a few records make several, and some lie across two."""
    small_blocks(monkeypatch)


def file_of(folder: Path, content: str | bytes, name: str = "edges.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def source_of(path: Path, format: str | None = None, **options: Any) -> Any:
    return open_source([path], format, IngestOptions(threads=2, **options))


def read(path: Path, format: str | None = None, **options: Any) -> Edges:
    """All edges, as tuples; ids that are strings as strings."""
    return edges_in(source_of(path, format, **options))


STRINGS: dict[str, Any] = {"string_ids": None}


@pytest.mark.parametrize(
    ("name", "text", "options", "expected"),
    [
        ("a.csv", "New York,Los Angeles\nLos Angeles,New York\n", STRINGS, [("New York", "Los Angeles")]),
        ("a.tsv", "New York\tLos Angeles\nLos Angeles\tNew York\n", STRINGS, [("New York", "Los Angeles")]),
        ("a.csv", "from,to\nNew York,Los Angeles\n", STRINGS, [("New York", "Los Angeles")]),
        ("a.csv", 'from,to\n"a ""b"", c","d\ne"\n', STRINGS, [('a "b", c', "d\ne")]),
        ("a.csv", "src;dst;km\nKöln;Bonn;27\n", STRINGS, [("Köln", "Bonn")]),
        ("a.csv", "src|dst\na b|c d\n", STRINGS, [("a b", "c d")]),
        ("a.csv", "src,dst\n  a b , c\t\n", STRINGS, [("a b", "c")]),
        ("a.csv", 'src,dst\n5" pipe,b\n', STRINGS, [('5" pipe', "b")]),
        ("a.csv", "src,dst\n#one,#two\n", STRINGS, [("#one", "#two")]),
        ("a.csv", "src,dst\nNA,null\n", STRINGS, [("NA", "null")]),
        ("a.txt", '"from","to"\n"x y","z"\n', STRINGS, [("x y", "z")]),
        ("a.csv", "\ufefffrom,to\r\nx y,z\r\n", STRINGS, [("x y", "z")]),
        ("a.csv", "# made by hand\n\nfrom,to\nx y,z\n", STRINGS, [("x y", "z")]),
        ("a.csv", "x,y\n7,8\n", {"string_ids": True, "header": False}, [("x", "y"), ("7", "8")]),
        ("a.csv", "0,1\r\n\r\n2,3", {}, [(0, 1), (2, 3)]),
        ("a.csv", " 0 , 1\t\n", {}, [(0, 1)]),
        ("a.csv", '"0","01"\n2,"3"\n', {}, [(0, 1), (2, 3)]),
        ("a.csv", "0;1;2,5\n", {"delimiter": ";"}, [(0, 1)]),
        ("a.txt", "from to\nann bob\n", STRINGS, [("ann", "bob")]),
        ("a.txt", "ann bob\n", STRINGS, [("ann", "bob")]),
        ("a.csv.gz", "0,1,2.5\n", {"weights": True}, [(0, 1, 2.5)]),
        ("A.TSV", "0\t1\t2,5\n", {"columns": (1, 0)}, [(1, 0)]),
        ("a.csv", "city,from,to,w\nNew York,4,5,6\n", {"columns": ("to", "from", "w")}, [(5, 4, 6.0)]),
        ("a.csv", 'n,s,t\n"Doe, John",4,5\nAnn,6,7\n', {"columns": ("s", "t")}, [(4, 5), (6, 7)]),
        ("a.csv", 'n,s,t\nAnn,6,7\n"Doe\n, 1,2",4,5\n', {"columns": ("s", "t")}, [(6, 7), (4, 5)]),
        ("a.csv", "user,film,stars\n1,2,5\n", {"weights": True}, [(1, 2, 5.0)]),
        ("a.csv", "FromNodeId,ToNodeId,Label\n1,2,x\n", {}, [(1, 2)]),
        ("a.csv", "1,2,3\n4,5,6\n", {}, [(1, 2), (4, 5)]),
        ("a.csv", "a,b\n1,2\n", {}, [(1, 2)]),
        ("a.csv", "1 2 0.5\r\n 3  4 1e3\r\n", {"string_ids": None}, [(1, 2), (3, 4)]),
        ("a.csv", "source,target\n", {}, []),
        ("a.csv", "# nothing\n\n", {}, []),
        ("a.csv", "", {}, []),
        ("a.csv", "18446744073709551615,0018446744073709551614\n", {}, [(2**64 - 1, 2**64 - 2)]),
        ("a.csv", '"18446744073709551615","0018446744073709551614"\n', {}, [(2**64 - 1, 2**64 - 2)]),
    ],
)
def test_csv(tmp_path: Path, name: str, text: str, options: dict[str, Any], expected: Edges) -> None:
    content = gzip.compress(text.encode()) if name.endswith(".gz") else text.encode()
    found = read(file_of(tmp_path, content, name), **options)
    assert found[: len(expected)] == expected
    assert len(found) == len(expected) or "Los Angeles" in text.splitlines()[0]


@pytest.mark.parametrize(
    ("text", "options", "line", "words"),
    [
        ("0,1\n2\n", {}, 2, ["1 column", "first line 2"]),
        ("0,1\n2,3,4\n", {}, 2, ["3 columns", "quotes"]),
        ('0,1\n"2",3,4\n', {}, 2, ["3 columns", "quotes"]),
        ("0,1\n\n# c, d\n", {}, 3, ["comment"]),
        ("0,1\n   \n", {}, 2, ["1 column"]),
        ("0,1\n2,\n", {}, 2, ["target '' is an empty field"]),
        ('0,1\n2,""\n', {}, 2, ["target '' is an empty field"]),
        ("0,1\n2,x\n", {}, 2, ["target 'x' is not a number", "--string-ids"]),
        ('0,1\n2,"0x1f"\n', {}, 2, ["target '0x1f' is not a number"]),
        ('0,1\n"2","18446744073709551616"\n', {}, 2, ["2^64 - 1"]),
        ("0,1\n2,1 3\n", {}, 2, ["target '1 3' is not a number"]),
        ('0,1\n2,"1\n3"\n', {}, 2, ["is not a number"]),
        ("0,1,2\n0,1,x\n", {"weights": True}, 2, ["weight 'x' is not a number"]),
        ('0,1,2\n0,1,"2,5"\n', {"weights": True}, 2, ["weight '2,5'", "decimal point"]),
        ('0,1,2\n0,1,"nan"\n', {"weights": True}, 2, ["not finite"]),
        ("0;1;2\n0;1;2,5\n", {"weights": True}, 2, ["weight '2,5'", "decimal point"]),
        ("0,1\n2,3\r4,5\n", {}, 2, ["carriage return alone"]),
        ("from,to\na,b\rc,d\n", STRINGS, 2, ["carriage return alone"]),
        ('from,to\na,"b" c\n', STRINGS, 2, ["behind a closing quote"]),
        ('from,to\na,"b \\"c\\" d"\n', STRINGS, 2, ["behind a closing quote"]),
        ('from,to\na,b\nc,"d\n' + "e,f\n" * 40, STRINGS, 3, ["not closed", "--format text"]),
        ('from,to\na, "b"\n', STRINGS, 2, ["quotes behind a blank"]),
        ("from,to\na, \n", STRINGS, 2, ["target '' is an empty field"]),
        ("from,to\na,b\0\n", STRINGS, 2, ["zero byte"]),
        (b"from,to\na,b\nc,\xff\n", STRINGS, 3, ["not UTF-8"]),
        ('from,to\na,"b\nb"\nc,\n', STRINGS, 4, ["target ''"]),
    ],
)
def test_a_bad_record_is_named(
    tmp_path: Path, text: str | bytes, options: dict[str, Any], line: int, words: list[str]
) -> None:
    path = file_of(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read(path, **options)
    message = str(caught.value)
    assert message.startswith(f"{path}, line {line}: ")
    for word in words:
        assert word in message


@covering("quoted, position", [False, True], [0, 1, 499, 999], strength=1)
def test_the_first_bad_record_is_found_among_parallel_blocks(tmp_path: Path, position: int, quoted: bool) -> None:
    lines = [f'"{i}",{i + 1}' if quoted and i % 7 == 0 else f"{i},{i + 1}" for i in range(1000)]
    lines[position] = "x,1"
    path = file_of(tmp_path, "\n".join(lines) + "\n")
    with pytest.raises(InputError, match=f"line {position + 1}: source 'x'"):
        read(path, header=False)


@pytest.mark.parametrize(
    ("name", "text", "options", "words"),
    [
        ("a.csv", "ts,payer,payee\n1,2,3\n", {}, ["ts, payer, payee", "--columns payer,payee"]),
        ("a.csv", "id,src,dst,w\n1,2,3,4\n", {}, ["--columns src,dst,w"]),
        ("a.csv", "to,from\n1,2\n", {}, ["--columns from,to"]),
        ("a.csv", "when,who,whom\n1,2,3\n", {}, ["--columns (source, target"]),
        ("a.csv", "6,2,4,1289241911.7\n", {}, ["4 columns", "--columns"]),
        ("a.csv", "source,target,type,weight\n1,2,3,4\n", {"weights": True}, ["--columns source,target,weight"]),
        ("a.csv", "ann,bob\ncid,dan\n", STRINGS, ["--header or --no-header"]),
        ("a.csv", "1 2\nNew York\n", {}, ["no ','", "--delimiter", "--format text"]),
        ("a.csv", "New York\nBoston 2\n", STRINGS, ["no ','", "--delimiter", "--format text"]),
        ("a.csv", "1;2,5\n3;4,5\n", {}, ["--delimiter says", "';'"]),
        ("a.csv", "1,2\n", {"columns": (0, 2)}, ["no column 2"]),
        ("a.csv", "a,b\n1,2\n", {"columns": ("a", "c")}, ["no column is named 'c'", "a, b"]),
        ("a.csv", "a,b,b\n1,2,3\n", {"columns": ("a", "b")}, ["2 columns are named 'b'"]),
        ("a.txt", "ts payer payee\n1 2 3\n", {}, ["--columns payer,payee"]),
        (
            "a.txt",
            "New York,Los Angeles\nBoston,Chicago\n",
            STRINGS,
            ["divided by ','", "--delimiter ,", "--format text"],
        ),
        ("a.txt", "New York\tLos Angeles\n", STRINGS, ["--delimiter tab", "New York"]),
        ("a.csv", '[{"source": 1, "target": 2}]\n', {}, ["is JSON", "jq"]),
        ("a.txt", '{"nodes": [], "links": []}\n', STRINGS, ["is JSON"]),
        ("a.jsonl", '{"source": "a", "target": "b"}\n{"source": "b", "target": "c"}\n', STRINGS, ["is JSON"]),
        ("a.txt", '<?xml version="1.0"?>\n<gexf>\n', {}, ["GraphML", "CSV"]),
        ("a.xml", "<graphml>\n", {}, ["the XML is broken"]),
        ("a.txt", "graph [\n  directed 1\n", STRINGS, ["the file ends inside of a list"]),
        ("a.dot", "digraph G {\n a -> b;\n}\n", STRINGS, ["Graphviz"]),
        ("a.net", "*Vertices 3\n1 2\n", STRINGS, ["Pajek"]),
        ("a.db", "SQLite format 3\0\x10\0\x01\r\0\n", {}, ["no readable SQLite database"]),
        ("a.arrow", "ARROW1\0\0\r\0\n", {}, ["no readable Parquet or Arrow file"]),
        ("a.feather", "FEA1\0\r\n", {}, ["Feather", "Parquet"]),
        ("a.bin", "\x01\x02\0\r\0\n", {}, ["binary data"]),
    ],
)
def test_what_must_be_said_or_is_no_list(
    tmp_path: Path, name: str, text: str, options: dict[str, Any], words: list[str]
) -> None:
    path = file_of(tmp_path, text, name)
    with pytest.raises(InputError) as caught:
        read(path, **options)
    for word in [str(path), *words]:
        assert word in str(caught.value)


@pytest.mark.parametrize("sample", ["{a} {b}\n", "graph theory\n", "<a> <b>\n", "[x] [y]\n"])
def test_ids_may_look_like_the_beginning_of_another_format(tmp_path: Path, sample: str) -> None:
    assert read(file_of(tmp_path, sample, "a.txt"), string_ids=True, header=False) == [tuple(sample.split())]


def test_text_takes_quotes_as_part_of_ids(tmp_path: Path) -> None:
    path = file_of(tmp_path, '"Heroes"_(song)\tbowie\n', "a.txt")
    assert read(path, "text", string_ids=True) == [('"Heroes"_(song)', "bowie")]
    with pytest.raises(InputError, match=r"closing quote.*--format text"):
        read(path, delimiter="\t", **STRINGS)


@pytest.mark.parametrize("text", ["a, b\nb ,c d\n", "a b\nb,c d\n", "a\tb c\nb c\n", "a b\tc\n"])
def test_text_may_be_divided_by_anything_if_said(tmp_path: Path, text: str) -> None:
    assert read(file_of(tmp_path, text, "a.txt"), "text", string_ids=True, columns=(0, 1))[0] == ("a", "b")


def test_what_was_taken_is_told(tmp_path: Path) -> None:
    source = source_of(file_of(tmp_path, "# c\nfrom;to;km\n1;2;7\n"), weights=True)
    list(source.batches())
    told = "source = 'from' (0), target = 'to' (1), weight = 'km' (2)"
    assert [taken.told() for taken in source.columns_taken] == [
        f"{told}; the first line is a header; 1 line of comments before"
    ]
    assert source.columns_taken[0].facts() == {
        "file": str(tmp_path / "edges.csv"),
        "source": "from",
        "target": "to",
        "weight": "km",
        "positions": [0, 1, 2],
        "of": 3,
        "header": True,
        "delimiter": ";",
    }


def test_the_columns_of_every_file_that_differs_are_told(tmp_path: Path) -> None:
    paths = [file_of(tmp_path, text, f"{i}.csv") for i, text in enumerate(["s,t\n0,1\n", "s,t\n2,3\n", "0,1\n"])]
    source = open_source(paths, None, IngestOptions())
    assert sum(map(len, source.batches())) == 3
    assert [Path(taken.file).name for taken in source.columns_taken] == ["0.csv", "2.csv"]  # type: ignore[attr-defined]


def test_standard_input_is_csv_if_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with file_of(tmp_path, '"a b","c"\n').open() as file:
        monkeypatch.setattr("sys.stdin", file)
        assert read(Path("-"), "csv", string_ids=True, header=False) == [("a b", "c")]


def test_plain_numbers_stay_on_the_compiled_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Any:
        raise AssertionError("pyarrow was asked")

    monkeypatch.setattr(delimited, "csv_columns", refuse)
    text = "from\tto\tkm\n" + "".join(f"{i}\t{i + 1}\t{i / 4}\n" for i in range(200))
    assert read(file_of(tmp_path, text, "a.tsv"), weights=True)[-1] == (199, 200, 49.75)


@pytest.mark.parametrize("length", [200, 5000])
def test_a_record_may_be_longer_than_a_block(tmp_path: Path, length: int) -> None:
    long = "x\n" * length
    text = f'from,to\n"{long}",b\nc,d\n'
    assert read(file_of(tmp_path, text), **STRINGS) == [(long, "b"), ("c", "d")]


def test_a_quote_that_never_ends_is_not_held_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "LONGEST_LINE", 256)
    monkeypatch.setattr(line_blocks, "LONGEST_LINE", 256)
    path = file_of(tmp_path, '0,1\n2,"3\n' + "4,5\n" * 500)
    with pytest.raises(InputError, match="line 2: a quote is opened and not closed"):
        read(path)


def test_options_that_contradict(tmp_path: Path) -> None:
    path = file_of(tmp_path, "0,1\n")
    with pytest.raises(InputError, match="--delimiter is for csv"):
        read(path, "text", delimiter=";")
    for mark in ("", ",,", "1", '"', "\n"):
        with pytest.raises(InputError, match="--delimiter"):
            IngestOptions(delimiter=mark)
    assert [parse_delimiter(word) for word in ("tab", "\\t", "Semicolon", "|")] == ["\t", "\t", ";", "|"]


CELLS = st.text(st.sampled_from('ab",;\n\r é#|\t'), min_size=1, max_size=6).filter(
    lambda cell: cell.strip(" \t") and not (cell[0] in " \t" and cell.strip(" \t")[0] == '"')
)
"""Not empty, and no quote behind a blank, which is refused."""


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(st.tuples(CELLS, CELLS, st.integers(0, 9)), min_size=1, max_size=30),
    mark=st.sampled_from([",", ";", "\t"]),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_any_table_reads_as_python_reads_it(
    rows: Edges, mark: str, end: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    written = io.StringIO(newline="")
    writer = csv.writer(written, delimiter=mark, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows([("from", "to", "w"), *rows])
    path = file_of(tmp_path_factory.mktemp("table"), written.getvalue())
    expected = [(one.strip(" \t"), two.strip(" \t"), float(weight)) for one, two, weight in rows]
    assert read(path, delimiter=mark, weights=True, string_ids=True) == expected


@settings(max_examples=40, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.integers(0, 2**64 - 1), st.sampled_from(["x", "New York", ""]), st.integers(0, 99), st.booleans()),
        min_size=1,
        max_size=60,
    )
)
def test_quotes_change_no_number(
    rows: list[tuple[int, str, int, bool]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = [f'"{u}",{word},"{v}"' if quoted else f"{u},{word},{v}" for u, word, v, quoted in rows]
    path = file_of(tmp_path_factory.mktemp("quotes"), "\n".join(lines))
    expected = [(u, v) for u, _, v, _ in rows]
    assert read(path, columns=(0, 2)) == expected
    assert np.array_equal(np.array(read(path, columns=(2, 0)), np.uint64)[:, ::-1], np.array(expected, np.uint64))
