"""Raw input of any bytes: edges, or one InputError that names a file; in bounded memory, and without a warning.

Every format is given files that are nearly right: valid ones with bytes changed, cut out, put in, repeated or replaced
by the numbers that parsers fall over. Valid files of formats of text stand in the test of the format, `FUZZED`.
By hand, with more of them:

    pytest tests/storage/ingest/test_fuzz.py --hypothesis-profile explore --hypothesis-seed N
"""

from __future__ import annotations

import ast
import bz2
import gzip
import io
import lzma
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from penstock.storage.base.errors import InputError
from penstock.storage.convert.convert import convert
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.format.graph import Graph
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.open_source import open_source
from penstock.storage.read.verify import verify

MANY = settings.default.max_examples // 4
MOST_BYTES = 24 << 20
"""Memory that reading a tiny file may take: blocks and buffers, whatever the file claims to hold."""
EDGES = [(0, 1, 2), (1, 2, 5), (2, 0, 1), (4, 1, 9), (4, 3, 7)]
TEXT = "# a comment\n" + "".join(f"{one} {two} {weight}\n" for one, two, weight in EDGES)


def _array(kind: str = "<u4", order: Any = "C") -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([edge[:2] for edge in EDGES], kind, order=order), allow_pickle=False)
    return file.getvalue()


def _records() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array(EDGES, [("from", "<u4"), ("to", "<u4"), ("w", "<f8")]), allow_pickle=False)
    return file.getvalue()


def _sparse(compressed: bool = False) -> bytes:
    file = io.BytesIO()
    save = np.savez_compressed if compressed else np.savez
    parts = {"indices": np.array([1, 2, 0, 1]), "indptr": np.array([0, 1, 2, 4]), "data": np.ones(4)}
    save(file, format=np.array(b"csr"), shape=np.array([3, 3]), **parts)
    return file.getvalue()


def _table() -> bytes:
    file = io.BytesIO()
    one, two, weight = zip(*EDGES, strict=True)
    pyarrow.parquet.write_table(pa.table({"source": one, "target": two, "weight": weight}), file)
    return file.getvalue()


def _frame(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def _pairs(kind: str) -> bytes:
    return np.array([edge[:2] for edge in EDGES], kind).tobytes()


def _of_formats() -> dict[str, tuple[str | None, list[bytes]]]:
    """Valid files of a format, by its name: `FUZZED` of the test of the format."""
    found: dict[str, tuple[str | None, list[bytes]]] = {}
    for path in sorted((Path(__file__).parent / "formats").glob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FUZZED":
                found |= {name: (name, seeds) for name, seeds in ast.literal_eval(node.value).items()}
    return found


FORMATS = _of_formats()
CASES = FORMATS | {
    "text": ("text", [TEXT.encode(), b"from,to,km\n1,2,3\n2,3,0.5\n", TEXT.replace("\n", "\r\n").encode()]),
    "names": ("text", [b"ann bob 1\nbob eve 2\nann eve 1e3\n", "zoë\té\n".encode()]),
    "npy": ("npy", [_array(), _array("<i8"), _array("<f8"), _array("<u8", "F"), _records()]),
    "npz": ("npz", [_sparse(), _sparse(True)]),
    "binary32": ("binary32", [_pairs("<u4")]),
    "binary64": ("binary64", [_pairs("<u8")]),
    "csr": ("csr", [np.array([0, 2, 3, 4], "<u8").tobytes()]),
    "parquet": ("parquet", [_table()]),
    "compressed": (
        None,
        [
            gzip.compress(TEXT.encode()),
            _frame(TEXT.encode()),
            bz2.compress(TEXT.encode()),
            lzma.compress(TEXT.encode()),
        ],
    ),
    "recognized": (None, [*FORMATS["matrix-market"][1], _array(), _table(), TEXT.encode()]),
}
NUMBERS = [
    b"-1", b"4294967296", b"18446744073709551615", b"18446744073709551616", b"9" * 40, b"1e308", b"1e999", b"nan",
    b"inf", b"0x10", b"1.5", b"-0", b"", b"\x00", b"\xff", b"\xc3", b"\n", b"\r", b"%", b":", b",", b"\t", b"(",
    b"\xff" * 8, b"\x00\x00\x00\x00\x00\x00\x00\x80", b"0" * 300,
]  # fmt: skip


@st.composite
def nearly(draw: st.DrawFn, seeds: list[bytes]) -> bytes:
    """A valid file, changed in a few places."""
    data = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 12)))
        put = draw(st.one_of(st.sampled_from(NUMBERS), st.binary(max_size=9), st.just(bytes(data[at:end]) * 3)))
        data[at:end] = put
    return bytes(data)


OPTIONS = [
    {},
    {"weights": True},
    {"columns": (1, 0)},
    {"columns": (0, 1, 2)},
    {"header": True},
    {"columns": ("to", "from")},
]


def bounded(work: Callable[[], Any]) -> Any:
    """The outcome of `work`, which must stay within `MOST_BYTES`."""
    tracemalloc.start()
    try:
        return work()
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < MOST_BYTES, f"{peak:,} bytes"


def drawn(data: st.DataObject, name: str, folder: Path) -> tuple[list[Path], str | None, IngestOptions]:
    """A nearly right input of one format, and how to read it."""
    format, seeds = CASES[name]
    paths = [folder / f"{name}.in"]
    paths[0].write_bytes(data.draw(nearly(seeds)))
    if name == "csr":
        for part, seed in {"neighbors": "<u4", "weights": "<f4"}.items():
            paths.append(folder / part)
            paths[-1].write_bytes(data.draw(nearly([np.array([1, 2, 0, 1], seed).tobytes()])))
        paths = paths[: data.draw(st.integers(2, 3))]
    options = data.draw(st.sampled_from(OPTIONS)) if name != "csr" else {}
    return paths, format, IngestOptions(threads=1, host_memory=4 << 20, string_ids=name == "names", **options)


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=MANY, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_any_bytes_are_edges_or_an_error(name: str, data: st.DataObject, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp(name)
    paths, format, options = drawn(data, name, folder)

    def read() -> int:
        source = open_source(paths, format, options)
        edges = 0
        for batch in source.batches():
            assert len(batch.sources) == len(batch.targets)
            assert batch.weights is None or len(batch.weights) == len(batch.sources)
            assert batch.sources.dtype.kind == batch.targets.dtype.kind == "u"
            edges += len(batch)
        return edges

    message = paths[0].name
    try:
        assert bounded(read) <= 200
    except InputError as error:
        message = str(error)
    assert any(path.name in message for path in paths) or "--" in message


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=MANY // 5, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data(), renumber=st.booleans())
def test_any_bytes_are_a_graph_or_an_error(
    name: str, renumber: bool, data: st.DataObject, tmp_path_factory: Any
) -> None:
    folder = tmp_path_factory.mktemp(name)
    paths, format, options = drawn(data, name, folder)
    output = folder / "g.h5"
    renumber = renumber or name == "names"
    try:
        convert(open_source(paths, format, options), output, ConvertOptions(renumber=renumber, threads=1))
    except InputError:
        assert not output.exists()
        return
    assert verify(output, threads=1).problems == []
    assert Graph.open(output).edges <= 400


def _npy(header: str) -> bytes:
    text = header.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(64)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "{'descr': '<u8', 'fortran_order': False, 'shape': (1152921504606846976, 2), }",
        "{'descr': '<u8', 'fortran_order': False, 'shape': (2, 1152921504606846976), }",
        "{'descr': '<u8', 'fortran_order': True, 'shape': (1152921504606846976, 2), }",
        "{'descr': '<u8', 'fortran_order': True, 'shape': (1099511627776, 2), }",
        "{'descr': '<u8', 'fortran_order': False, 'shape': (-5, 2), }",
        "{'descr': '<u8', 'fortran_order': False, 'shape': (5, -2), }",
        "{'descr': '<u8', 'fortran_order': False, 'shape': (5, 0), }",
        "{'descr': '<u8', 'fortran_order': False, 'shape': (1" + "0" * 30 + ", 2), }",
        "{'descr': [('a', '<u8', (1073741824,)), ('b', '<u8')], 'fortran_order': False, 'shape': (4,), }",
        "{'descr': [('a', '|V0'), ('b', '|V0')], 'fortran_order': False, 'shape': (4,), }",
        "{'descr': [('a', '<u8', (2,)), ('b', '<u8')], 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '<c16', 'fortran_order': False, 'shape': (2, 2), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (2, 2), }",
        "{'descr': [('a', '|O'), ('b', '<u8')], 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '<M8[s]', 'fortran_order': False, 'shape': (2, 2), }",
    ],
)
def test_arrays_that_claim_too_much_are_refused(header: str, tmp_path: Path) -> None:
    path = tmp_path / "edges.npy"
    path.write_bytes(_npy(header) if header else b"\x93NUMPY\x02\x00" + b"\xff" * 80)

    def read() -> None:
        for _ in open_source([path], "npy", IngestOptions(threads=1, host_memory=4 << 20)).batches():
            pass

    with pytest.raises(InputError, match=r"edges\.npy"):
        bounded(read)


@pytest.mark.parametrize("part", ["indices", "indptr", "data", "shape", "format"])
def test_a_sparse_matrix_whose_parts_claim_too_much_is_refused(part: str, tmp_path: Path) -> None:
    path = tmp_path / "matrix.npz"
    with zipfile.ZipFile(io.BytesIO(_sparse())) as old, zipfile.ZipFile(path, "w") as new:
        for entry in old.infolist():
            data = old.read(entry)
            if entry.filename == f"{part}.npy":
                data = _npy("{'descr': '<u8', 'fortran_order': False, 'shape': (1152921504606846976,), }")
            new.writestr(entry.filename, data)

    def read() -> None:
        for _ in open_source([path], "npz", IngestOptions(threads=1, host_memory=4 << 20)).batches():
            pass

    with pytest.raises(InputError, match=r"matrix\.npz"):
        bounded(read)


@pytest.mark.parametrize(
    ("format", "text"),
    [
        (
            "matrix-market",
            "%%MatrixMarket matrix coordinate pattern general\n4611686018427387904 4611686018427387904 1\n",
        ),
        ("matrix-market", "%%MatrixMarket matrix coordinate pattern general\n3 3 4611686018427387904\n1 2\n"),
        ("dimacs", "p sp 4611686018427387904 4611686018427387904\na 1 2 3\n"),
        ("metis", "4611686018427387904 4611686018427387904\n2\n1\n"),
        ("metis", "3" + 300 * "0" + " 2\n2 3\n1\n1\n"),
        ("metis", "2 1 011 4611686018427387904\n1 1 2 5\n"),
        ("webgraph", "4611686018427387904\n1\n"),
    ],
)
def test_headers_that_claim_too_much_are_refused(format: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "claims.in"
    path.write_text(text)

    def read() -> None:
        source = open_source([path], format, IngestOptions(threads=1, host_memory=4 << 20))
        convert(source, tmp_path / "g.h5", ConvertOptions(threads=1, host_memory=64 << 20))

    with pytest.raises(InputError):
        bounded(read)
    assert not (tmp_path / "g.h5").exists()
