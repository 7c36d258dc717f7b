"""Edge lists in text: any spelling reads as plain Python reads it, and every bad line is named."""

import bz2
import gzip
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.storage.base.errors import InputError
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.open_source import open_source
from penstock.storage.ingest.text.diagnose import count_fields
from penstock.storage.ingest.text.edge_list import TextSource, read_ids
from support.reading import Edges, edges_in, small_blocks


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 64 bytes, so that a few lines make several."""
    small_blocks(monkeypatch)


def read(path: Path, **options: Any) -> Edges:
    """All edges of a text file, as tuples."""
    return edges_in(TextSource([path], IngestOptions(threads=2, **options)))


def file_of(folder: Path, content: str | bytes) -> Path:
    path = folder / "edges.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


IDS = st.one_of(st.integers(0, 50), st.integers(0, 2**64 - 1))
NUMBERS = st.one_of(
    st.integers(-(10**12), 10**12).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(
        ["0", "-0.0", "+1.5", ".5", "5.", "1e5", "1E-7", "123456789012345678901234567890.", "2.2250738585072011e-308"]
    ),
)
SEPARATORS = st.sampled_from([" ", "\t", ",", "  ", " , ", "\t\t ", ", "])
NOISE = st.sampled_from(["", "   ", "\t", "# comment 1 2", "% 3 4", "  # indented"])
ENDS = st.sampled_from(["\n", "\r\n"])


@st.composite
def spelled(draw: st.DrawFn) -> tuple[str, Edges]:
    """An edge list with weights in random spelling, and what it says."""
    lines, edges = [], []
    extra = draw(st.sampled_from(["", " 7", ",x", "\tname of it", ",,"]))
    for _ in range(draw(st.integers(0, 30))):
        if draw(st.booleans()):
            lines.append(draw(NOISE))
            continue
        one, two, weight = draw(IDS), draw(IDS), draw(NUMBERS)
        last = draw(st.sampled_from(["", " ", "\t", ",", " # a note", " %x y"]))
        lead = draw(st.sampled_from(["", " ", "\t "]))
        zeros = draw(st.sampled_from(["", "00"]))
        lines.append(f"{lead}{zeros}{one}{draw(SEPARATORS)}{two}{draw(SEPARATORS)}{weight}{extra}{last}")
        edges.append((one, two, float(weight)))
    end = draw(ENDS)
    text = end.join(lines) + draw(st.sampled_from(["", end]))
    return draw(st.sampled_from(["", "\ufeff"])) + text, edges


@settings(max_examples=75)
@given(case=spelled())
def test_any_spelling_reads_as_python_reads_it(
    case: tuple[str, Edges], tmp_path_factory: pytest.TempPathFactory
) -> None:
    text, edges = case
    path = file_of(tmp_path_factory.mktemp("spelled"), text)
    assert read(path, weights=True) == edges
    assert read(path) == [edge[:2] for edge in edges]


TAILS = st.one_of(st.just(""), st.text(' ,\t#%+a5"-!', max_size=8).map(lambda text: f" {text}"))


@settings(max_examples=150)
@given(tails=st.lists(TAILS, min_size=2, max_size=2), strings=st.booleans(), weights=st.booleans())
def test_lines_have_as_many_fields_as_the_first_one(
    tails: list[str], strings: bool, weights: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    taken = "1 2 3" if weights else "1 2"
    lines = [f"{taken}{tail}" for tail in tails]
    options = IngestOptions(threads=1, weights=weights or None, string_ids=strings)
    source = open_source([file_of(tmp_path_factory.mktemp("tails"), "\n".join(lines))], "text", options)
    (least, most), (fewest, largest) = [count_fields(line, len(taken.split())) for line in lines]
    if least <= largest and fewest <= most:
        assert sum(len(batch) for batch in source.batches()) == 2
    else:
        with pytest.raises(
            InputError, match=rf"line 2: it has {largest} columns?, and the first line {least}; --columns 0"
        ):
            list(source.batches())


def test_whole_weights_that_a_double_holds_are_read(tmp_path: Path) -> None:
    whole = [2**53, 2**53 + 2, -(2**60), 3 * 2**61]
    text = "".join(f"1 2 {weight}\n" for weight in [*whole, "9007199254740993.0", "9007199254740993e0"])
    assert [int(edge[2]) for edge in read(file_of(tmp_path, text), weights=True)] == [*whole, 2**53, 2**53]


def test_negative_zero_keeps_its_sign(tmp_path: Path) -> None:
    weights = read(file_of(tmp_path, "1 2 -0.0\n"), weights=True)
    assert np.signbit(weights[0][2])


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("id_1,id_2\n0,5\n1,6\n", {}, [(0, 5), (1, 6)]),
        ("# c\n\nsource\ttarget\n0\t5\n", {}, [(0, 5)]),
        ('"from","to","w"\n0,5,2\n', {"columns": ("from", "w")}, [(0, 2)]),
        ("a,b,c\n0,5,2\n", {"columns": ("c", "a", "b")}, [(2, 0, 5.0)]),
        ("1st 2nd\n0 5\n", {"header": True}, [(0, 5)]),
        ("a 0 24 172\na 1 53 146\n", {"columns": (1, 2, 3)}, [(0, 24, 172.0), (1, 53, 146.0)]),
        ("6,2,4,1289241911.7\n", {"columns": (1, 0)}, [(2, 6)]),
        ("source,target\n", {}, []),
        ("# only comments\n%\n", {}, []),
        ("", {}, []),
        ("\n\n\r\n", {}, []),
        ("18446744073709551615 0018446744073709551614", {}, [(2**64 - 1, 2**64 - 2)]),
        ("1 2\n3 4 \n5\t6\t\r\n7 8,\n", {}, [(1, 2), (3, 4), (5, 6), (7, 8)]),
        ("1 2 # a note\n3 4\n5 6 %\n", {}, [(1, 2), (3, 4), (5, 6)]),
        ("1,2,x\n3,4,\n5,6,y,\n", {}, [(1, 2), (3, 4), (5, 6)]),
        ("1,2,\n3,4\n5,6,x\n", {}, [(1, 2), (3, 4), (5, 6)]),
        ("u v\n1 2\n3 4\n", {}, [(1, 2), (3, 4)]),
        ("9 9 9 9\n1 2\n3 4 5\n", {"columns": (0, 1), "header": True}, [(1, 2), (3, 4)]),
        ("1 2\n3 4 5 6\n", {"columns": (0, 1)}, [(1, 2), (3, 4)]),
        ("1 2 .5\n3 4\n", {"columns": (0, 1)}, [(1, 2), (3, 4)]),
        ("/ a\n1 2\n/1 2 3 4\n//\n3 4\n# b\n", {"comment": "/"}, [(1, 2), (3, 4)]),
        ("# c\n" * 40 + "u v\n" + "1 2\n", {}, [(1, 2)]),
    ],
)
def test_layouts(tmp_path: Path, text: str, options: dict[str, Any], expected: Edges) -> None:
    assert read(file_of(tmp_path, text), **options) == expected


BAD = [
    ("1 2\nx 3\n", {}, 2, ["source 'x' is not a number", "--columns"]),
    ("1 2\n3 -4\n", {}, 2, ["target '-4' is negative"]),
    ("1 2\n# c\n\n3\n", {}, 4, ["1 column", "--columns"]),
    ("1 2\n3 4 5 6\n", {}, 2, ["4 columns, and the first line 2", "--columns 0,1", "--format adjacency", "--comment"]),
    ("82168,948464,d,graph\n1,2\n", {}, 2, ["2 columns, and the first line 4", "with --header"]),
    ("1 2 3\n3 4\n", {}, 2, ["2 columns, and the first line 3"]),
    ("1 2 .5 x\n3 4 .5\n", {"weights": True}, 2, ["3 columns, and the first line 4; --columns 0,1,2"]),
    ("1 2 .5\n3 4\n", {"weights": True}, 2, ["weight is column 2", "--columns names others (two: no weights)"]),
    ("1,2,,\n3,4\n", {}, 2, ["2 columns, and the first line 3"]),
    ("# c\n" * 40 + "1 2\n3 4 5\n", {}, 42, ["3 columns, and the first line 2"]),
    ("u v\n1 2\n1 2 3\n", {}, 3, ["3 columns, and the first line 2"]),
    ("u v w\n1 2\n", {}, 2, ["2 columns, and the first line 3"]),
    ("id from to\n1 2\n", {"header": False}, 1, ["source 'id'"]),
    ("1 2\n1\xa02 3\n", {}, 2, ["source '1", "is not a number"]),
    ("1 2\n3,,4\n", {}, 2, ["target ''", "empty field"]),
    (",1,2\n", {}, 1, ["source ''"]),
    ("1 18446744073709551616\n", {}, 1, ["2^64 - 1", "18446744073709551616"]),
    ("1 99999999999999999999999\n", {}, 1, ["2^64 - 1"]),
    ("1 2 nan\n", {"weights": True}, 1, ["weight 'nan' is not finite"]),
    ("1 2 -inf\n", {"weights": True}, 1, ["not finite"]),
    ("1 2 1e400\n", {"weights": True}, 1, ["too large"]),
    ("1 2 9007199254740993\n", {"weights": True}, 1, ["weight '9007199254740993' is a whole number", "as a decimal"]),
    ("1 2 -12345678901234567890\n", {"weights": True}, 1, ["is a whole number that no 64-bit float holds"]),
    ("1 2 0x10\n", {"weights": True}, 1, ["weight '0x10' is not a number"]),
    ("1 2 1e\n", {"weights": True}, 1, ["not a number"]),
    ("1 2\n", {"weights": True}, 1, ["2 columns", "weight is column 2"]),
    ("1.0 2\n", {}, 1, ["not a whole number"]),
    ("+1 2\n", {}, 1, ["not a whole number"]),
    ("n1 n2\nn3 n4\n", {}, 1, ["source 'n1' is not a number"]),
    ("1 2\na b\n", {}, 2, ["source 'a'"]),
    ("1;2\n", {}, 1, ["1;2"]),
    ("\x001 2\n", {}, 1, ["source"]),
]


@pytest.mark.parametrize(("text", "options", "line", "words"), BAD)
def test_a_bad_line_is_named(tmp_path: Path, text: str, options: dict[str, Any], line: int, words: list[str]) -> None:
    path = file_of(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read(path, **options)
    message = str(caught.value)
    assert message.startswith(f"{path}, line {line}: ")
    for word in words:
        assert word in message


@pytest.mark.parametrize("position", [0, 1, 499, 998, 999])
def test_the_first_bad_line_is_found_among_parallel_blocks(tmp_path: Path, position: int) -> None:
    lines = [f"{i} {i + 1}" for i in range(1000)]
    lines[position] = "oops 5"
    lines[-1] += " x" if position < 999 else ""
    with pytest.raises(InputError, match=rf"line {position + 1}: source 'oops'.*\n    oops 5"):
        read(file_of(tmp_path, "\n".join(lines)))


def test_edges_before_a_bad_line_are_yielded_in_order(tmp_path: Path) -> None:
    path = file_of(tmp_path, "".join(f"{i} 7\n" for i in range(500)) + "bad\n")
    seen: list[int] = []

    def read_all() -> None:
        for batch in TextSource([path], IngestOptions(threads=3)).batches():
            seen.extend(batch.sources.tolist())

    with pytest.raises(InputError, match="line 501"):
        read_all()
    assert seen == list(range(len(seen)))
    assert len(seen) > 400


def test_ids_are_as_narrow_as_a_block_allows(tmp_path: Path) -> None:
    path = file_of(tmp_path, "1 2\n" * 16 + "4294967296 1\n" + "1 4294967295\n" * 8)
    kinds = [batch.sources.dtype for batch in TextSource([path], IngestOptions()).batches()]
    assert kinds[0] == np.uint32
    assert np.uint64 in kinds


def test_a_line_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="longer than"):
        read(file_of(tmp_path, b"7" * (3 << 20)))


def test_long_lines_cross_blocks(tmp_path: Path) -> None:
    name = "x" * 1000
    assert read(file_of(tmp_path, f"1 2 {name}\n3 4 {name}\n")) == [(1, 2), (3, 4)]


COMPRESS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("kind", COMPRESS)
def test_compressed_members_follow_each_other(tmp_path: Path, kind: str) -> None:
    parts = ["".join(f"{i} {i + part}\n" for i in range(2000)) for part in range(3)]
    data = b"".join(COMPRESS[kind](part.encode()) for part in parts)
    expected = [(i, i + part) for part in range(3) for i in range(2000)]
    assert read(file_of(tmp_path, data)) == expected


@pytest.mark.parametrize("kind", COMPRESS)
def test_truncated_compressed_input_is_an_error(tmp_path: Path, kind: str) -> None:
    whole = COMPRESS[kind]("".join(f"{i} {i * 7919}\n" for i in range(5000)).encode())
    for size in (len(whole) - 1, len(whole) // 2):
        with pytest.raises(InputError, match=r"edges\.txt.*truncated"):
            read(file_of(tmp_path, whole[:size]))


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz"])
def test_damaged_compressed_input_is_an_error(tmp_path: Path, kind: str) -> None:
    whole = bytearray(COMPRESS[kind]("".join(f"{i} {i * 7919}\n" for i in range(5000)).encode()))
    whole[len(whole) // 2] ^= 0xFF
    with pytest.raises(InputError):
        read(file_of(tmp_path, bytes(whole)))


def test_carriage_returns_alone_are_refused(tmp_path: Path) -> None:
    """Read as blanks they would make one long line of the whole file."""
    with pytest.raises(InputError, match=r"edges\.txt: its lines end in carriage returns alone.*tr '\\r'"):
        read(file_of(tmp_path, "1 2\r3 4\r"))
    assert read(file_of(tmp_path, "1 2\r\r\n3 4\r \r\n")) == [(1, 2), (3, 4)]


def test_several_files_count_their_own_lines(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two.gz"
    one.write_text("a,b\n1,2\n3,4")
    two.write_bytes(gzip.compress(b"5 6\nseven 8\n"))
    source = TextSource([one, two], IngestOptions(threads=2))
    assert source.total_bytes == one.stat().st_size + two.stat().st_size
    with pytest.raises(InputError, match=r"two\.gz, line 2: source 'seven'"):
        list(source.batches())
    two.write_bytes(gzip.compress(b"5 6\n"))
    source = TextSource([one, two], IngestOptions(threads=2))
    assert [batch.sources.tolist() for batch in source.batches()] == [[1, 3], [5]]
    assert source.bytes_done == one.stat().st_size + two.stat().st_size


def test_bytes_are_done_when_their_edges_were_given(tmp_path: Path) -> None:
    path = tmp_path / "edges"
    path.write_text("12 345\n" * 100_000)
    source = TextSource([path], IngestOptions(host_memory=1 << 20, threads=2))
    edges = 0
    for batch in source.batches():
        edges += len(batch)
        assert 0 <= source.bytes_done - 7 * edges < 7
    assert source.bytes_done == source.total_bytes == 7 * edges


def test_stopping_early_leaves_no_thread(tmp_path: Path) -> None:
    import threading

    path = file_of(tmp_path, gzip.compress(b"1 2\n" * 200_000))
    batches = TextSource([path], IngestOptions(threads=2)).batches()
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith(("parse", "unpack"))]


def test_absent_column_names_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no column is named 'weight'"):
        read(file_of(tmp_path, "a,b\n1,2\n"), columns=("a", "weight"))
    with pytest.raises(InputError, match="has no header"):
        read(file_of(tmp_path, "1 2\n"), columns=("a", "b"))


@pytest.mark.parametrize("columns", [(1,), (1, 1), (0, 1, 2, 3), (-1, 2)])
def test_impossible_columns_are_refused(columns: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="--columns"):
        IngestOptions(columns=columns)


def test_vertex_lists(tmp_path: Path) -> None:
    path = file_of(tmp_path, "# ids\n7\n9 name\n" + "3\n" * 100)
    ids = np.concatenate(list(read_ids(path, IngestOptions(threads=2))))
    assert ids.tolist() == [7, 9] + [3] * 100
    with pytest.raises(InputError, match="line 2: source 'x'"):
        list(read_ids(file_of(tmp_path, "1\nx\n"), IngestOptions()))


@pytest.mark.parametrize("name", ["absent.txt", "."])
def test_absent_files_and_folders_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"does not exist|there is no file"):
        open_source([tmp_path / name], None, IngestOptions())
    with pytest.raises(InputError, match=r"does not exist|there is no file"):
        open_source([tmp_path / name], "text", IngestOptions())
