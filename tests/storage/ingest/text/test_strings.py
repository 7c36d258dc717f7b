"""String ids: fields of text and of Parquet read back as they stand, and what is no id is refused with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.base.errors import InputError
from penstock.storage.ingest.core.edges import hash_name
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.open_source import open_source
from pyarrow import parquet
from support.reading import Edges, edges_of, small_blocks


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch, 256)


def file_of(folder: Path, text: str | bytes, name: str = "edges.txt") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


LETTERS = st.characters(codec="utf-8", exclude_characters=" \t\r\n,\0\ufeff", exclude_categories=["Cs"])
NAMES = st.one_of(st.sampled_from(["a", "b", "7", "07", '"q"']), st.text(LETTERS, min_size=1, max_size=30))
FIRST = NAMES.filter(lambda name: name[0] not in "#%")


@given(edges=st.lists(st.tuples(FIRST, NAMES, st.integers(0, 9)), max_size=30), sides=st.booleans())
def test_fields_read_back(
    edges: list[tuple[str, str, int]], sides: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = "".join(f"{u}\t{v} ,{w}\n" for u, v, w in edges)
    path = file_of(tmp_path_factory.mktemp("named"), text)
    found, source = edges_of(path, "text", string_ids=True, sides=sides, header=False, weights=True)
    marks = ("\x01", "\x02") if sides else ("", "")
    assert found == [(marks[0] + u, marks[1] + v, float(w)) for u, v, w in edges]
    assert source.named
    assert source.bytes_done == source.total_bytes


def test_a_batch_brings_each_name_once(tmp_path: Path) -> None:
    path = file_of(tmp_path, "a b\nb a\na a\nc b\n")
    (batch,) = open_source([path], None, IngestOptions(string_ids=True)).batches()
    assert batch.names is not None
    assert batch.names.names.strings().tolist() == ["a", "b", "c"]
    assert len(np.unique(batch.names.keys, axis=0)) == 3


@pytest.mark.parametrize(
    ("text", "strings"),
    [
        ("1 2\n", False),
        ("# c\n\nx 2\n", True),
        ("1 b\n", True),
        ("from,to\n1,2\n", False),
        ("from,to,w\nx,y,2\n", True),
        ("", False),
        ("1.5 2\n", False),
    ],
)
def test_the_first_line_says_whether_ids_are_strings(tmp_path: Path, text: str, strings: bool) -> None:
    source = open_source([file_of(tmp_path, text)], None, IngestOptions(string_ids=None))
    assert getattr(source, "named", False) == strings
    assert not getattr(open_source([tmp_path / "edges.txt"], None, IngestOptions()), "named", False)


@pytest.mark.parametrize(
    ("text", "options", "line", "words"),
    [
        ("a b\nc\n", {}, 2, "it has 1 column, and column 1 counted from 0 is wanted"),
        ("a b\n\na,,c\n", {}, 3, "target '' is an empty field"),
        (f"a b\n{'x' * 65536} b\n", {}, 2, "longer than 65535 bytes"),
        (b"a b\nc \0d\n", {}, 2, "holds a zero byte"),
        (b"a b\n\xe9t\xe9 b\n", {}, 2, "is not UTF-8"),
        (b"a b\n# \xff\na \xc3\nx y\n", {}, 3, "is not UTF-8"),
        ("a b x\n", {"weights": True, "header": False}, 1, "weight 'x' is not a number"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, text: str | bytes, options: dict[str, Any], line: int, words: str) -> None:
    path = file_of(tmp_path, text)
    with pytest.raises(InputError, match=rf"edges\.txt, line {line}: .*{words}"):
        edges_of(path, string_ids=True, **options)


def test_strings_without_being_asked_say_how(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--string-ids"):
        edges_of(file_of(tmp_path, "a b\nc d\n"))


def test_names_of_one_word_and_one_length_never_share_a_hash() -> None:
    random = np.random.default_rng(3)
    text = random.integers(1, 256, (20000, 11), dtype=np.uint8)
    seen = {hash_name(row, 0, length, 0) for row in text for length in (3, 8, 11)}
    assert len(seen) == len({bytes(row[:length]) for row in text for length in (3, 8, 11)})
    assert hash_name(text[0], 0, 5, 0) != hash_name(text[0], 0, 5, 1)


def parquet_of(folder: Path, **columns: Any) -> Path:
    path = folder / "edges.parquet"
    parquet.write_table(pa.table(columns), path, row_group_size=700)
    return path


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])
def test_parquet_strings_read_back(tmp_path: Path, kind: Any) -> None:
    names = [f"n{i % 50}é" for i in range(3000)]
    path = parquet_of(tmp_path, a=pa.array(names).cast(kind), b=pa.array(names[::-1]), w=list(range(3000)))
    expected: Edges = [(u, v, w) for u, v, w in zip(names, names[::-1], range(3000), strict=True)]
    assert edges_of(path, string_ids=None, weights=True)[0] == expected
    assert edges_of(path, string_ids=True, columns=("b", "a"))[0] == [(v, u) for u, v, _ in expected]


def test_parquet_numbers_are_strings_if_asked(tmp_path: Path) -> None:
    path = parquet_of(tmp_path, a=[1, 2], b=[10, 20])
    assert edges_of(path, string_ids=None)[0] == [(1, 10), (2, 20)]
    assert edges_of(path, string_ids=True)[0] == [("1", "10"), ("2", "20")]


@pytest.mark.parametrize(
    ("column", "words"),
    [(["a", None], "b is null"), (["a", ""], "row 1 .*b is empty"), (["a\0", "c"], "row 0 .*zero byte")],
)
def test_bad_strings_of_parquet_are_named(tmp_path: Path, column: list[str | None], words: str) -> None:
    with pytest.raises(InputError, match=rf"edges\.parquet.*{words}"):
        edges_of(parquet_of(tmp_path, a=["x", "y"], b=column), string_ids=True)
