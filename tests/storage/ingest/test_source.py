"""Formats are recognized by content, and what would be misread as an edge list is refused."""

from pathlib import Path

import pytest
from penstock.storage.errors import InputError
from penstock.storage.ingest.source import IngestOptions, open_source, parse_columns


def test_columns_are_numbers_or_names() -> None:
    assert parse_columns("0, 1,2") == (0, 1, 2)
    assert parse_columns("source,target") == ("source", "target")


@pytest.mark.parametrize("name", ["a.graph", "a.gml", "a.metis.gz"])
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


def test_blocks_fit_the_budget() -> None:
    for memory in (32 << 20, 1 << 30, 1 << 40):
        for threads in (1, 2, 16):
            options = IngestOptions(host_memory=memory, threads=threads)
            held = options.block_bytes * (10 * threads + 8)
            assert held <= memory // 4 or options.block_bytes == 64 << 10
