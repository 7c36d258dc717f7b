"""Formats are recognized by content, and what would be misread as an edge list is refused."""

import gzip
from pathlib import Path

import pytest
from penstock.storage.base.errors import InputError
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.ingest.core.formats import FORMATS
from penstock.storage.ingest.core.source import IngestOptions, parse_columns
from penstock.storage.ingest.open_source import open_source


def test_columns_are_numbers_or_names() -> None:
    assert parse_columns("0, 1,2") == (0, 1, 2)
    assert parse_columns("source,target") == ("source", "target")


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.graph", b"2 1\n2\n1\n", "MetisSource"),
        ("a.METIS", b"2 1\n2\n1\n", "MetisSource"),
        ("a.gr", b"p sp 1 0\n", "DimacsSource"),
        ("a.gr.gz", gzip.compress(b"p sp 1 0\n", mtime=0), "DimacsSource"),
        ("A.GR.GZ", gzip.compress(b"p sp 1 0\n", mtime=0), "DimacsSource"),
        ("a.graph-txt.gz", gzip.compress(b"1\n\n", mtime=0), "AdjacencySource"),
        ("a.adj", b"1: 2\n", "AdjacencySource"),
        ("a.txt", b"\x93NUMPY", "NpySource"),
        ("a.npy", b"1 2\n", "TextSource"),
        ("a.npz", b"1 2\n", "TextSource"),
        ("a.graph", b"%%MatrixMarket matrix coordinate pattern general\n1 1 0\n", "MatrixMarketSource"),
        ("a.txt", b"2 1\n", "TextSource"),
        ("a.txt", b"<?xml version='1.0'?><!-- x --><graphml><graph></graph></graphml>", "ElementSource"),
        ("a.xml", b"<graphml><graph><node id='n0'/></graph></graphml>", "ElementSource"),
        ("a.txt", b"# by hand\ngraph [ ]", "ElementSource"),
        ("a.gml", b"graph\n[\n]", "ElementSource"),
    ],
)
def test_formats_are_recognized(tmp_path: Path, name: str, content: bytes, kind: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert type(open_source([tmp_path / name], None, IngestOptions())).__name__ == kind


@pytest.mark.parametrize("name", ["a.gexf", "a.mat.gz"])
def test_other_formats_are_not_misread(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("4 2\n2 3\n")
    with pytest.raises(InputError, match="cannot be read yet; --format text"):
        open_source([path], None, IngestOptions())
    assert open_source([path], "text", IngestOptions()).total_bytes == 8


def test_unknown_and_mixed_formats(tmp_path: Path) -> None:
    text, matrix = tmp_path / "a", tmp_path / "b"
    text.write_text("1 2\n")
    matrix.write_text("%%MatrixMarket matrix coordinate pattern general\n1 1 0\n")
    with pytest.raises(InputError, match="'magic' is unknown; there are text"):
        open_source([text], "magic", IngestOptions())
    with pytest.raises(InputError, match="different formats"):
        open_source([text, matrix], None, IngestOptions())
    with pytest.raises(InputError, match="no input"):
        open_source([], None, IngestOptions())


def test_absent_files_and_empty_folders_are_refused_in_every_format(tmp_path: Path) -> None:
    for name in FORMATS:
        with pytest.raises(InputError, match="does not exist"):
            open_source([tmp_path / "a"] * (2 if name == "csr" else 1), name, IngestOptions())
        with pytest.raises(InputError, match="there is no file"):
            open_source([tmp_path] * (2 if name == "csr" else 1), name, IngestOptions())


def test_blocks_fit_the_budget() -> None:
    for memory in (32 << 20, 1 << 30, 1 << 40):
        for threads in (1, 2, 16, 64):
            options = ConvertOptions(host_memory=memory, threads=threads).reading(IngestOptions(), Path("g.h5"))
            assert options.block_bytes * (10 * options.workers + 8) <= memory // 4
