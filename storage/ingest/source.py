"""Owns the door to raw input: names of files become a `Source`, by stated or recognized format.

A format is recognized by how the file begins (MatrixMarket's banner, Parquet's magic), never by
its name, which only tells formats that are no edge lists and would be misread as one.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from penstock.storage.errors import InputError
from penstock.storage.ingest.binary import CsrSource, PairSource
from penstock.storage.ingest.matrix_market import MatrixMarketSource, has_banner
from penstock.storage.ingest.options import IngestOptions, Source, parse_columns
from penstock.storage.ingest.parquet import MAGIC, ParquetSource
from penstock.storage.ingest.raw import STANDARD_INPUT
from penstock.storage.ingest.stream import Stream
from penstock.storage.ingest.text import TextSource

Format = Literal["text", "matrix-market", "binary32", "binary64", "csr", "parquet"]
FORMATS: tuple[str, ...] = get_args(Format)

_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_NOT_LISTS = {
    ".graph": "METIS adjacency",
    ".metis": "METIS adjacency",
    ".gml": "GML",
    ".graphml": "GraphML",
    ".gexf": "GEXF",
    ".npy": "NumPy",
    ".npz": "NumPy",
    ".mat": "MATLAB",
}


def open_source(paths: Sequence[str | Path], format: str | None, options: IngestOptions) -> Source:
    """Open raw input.

    ``paths`` are files of one format, read one after another (for ``csr``: offsets, neighbors and
    perhaps weights); ``-`` is standard input, which is text unless ``format`` says otherwise.
    ``format`` is one of `FORMATS`, or None to recognize it.

    Raises:
        InputError: a file is absent, is a folder, or is not of a format that can be read.
    """
    if not paths:
        raise InputError("no input is named; '-' is standard input")
    if format is not None and format not in FORMATS:
        raise InputError(f"--format {format!r} is unknown; there are {', '.join(FORMATS)}")
    format = format or _recognize(paths)
    if format == "csr":
        return CsrSource(paths, options)
    if format == "parquet":
        return ParquetSource(paths, options)
    if format == "matrix-market":
        if len(paths) > 1:
            raise InputError("a MatrixMarket file is a whole graph; convert one at a time")
        return MatrixMarketSource(paths[0], options)
    if format in ("binary32", "binary64"):
        dtype = np.dtype(np.uint32 if format == "binary32" else np.uint64)
        return PairSource(paths, dtype, options)
    _check_present(paths)
    return TextSource(paths, options)


def _recognize(paths: Sequence[str | Path]) -> str:
    found = {_format_of(path) for path in paths}
    if len(found) > 1:
        raise InputError(
            f"the inputs are of different formats ({', '.join(sorted(found))}); convert files of "
            "one format, or name it with --format"
        )
    return found.pop()


def _format_of(path: str | Path) -> str:
    if str(path) == STANDARD_INPUT:
        return "text"
    with Stream(path) as stream:
        buffer = bytearray(64)
        first = bytes(buffer[: stream.read_into(memoryview(buffer))])
    if first[:4] == MAGIC:
        return "parquet"
    if has_banner(first):
        return "matrix-market"
    suffixes = [suffix for suffix in Path(path).suffixes if suffix not in _COMPRESSED]
    suffix = suffixes[-1].lower() if suffixes else ""
    if suffix == ".mtx" and first.startswith(b"%%"):
        return "matrix-market"
    if suffix in _NOT_LISTS:
        raise InputError(
            f"{path}: files named {suffix} are {_NOT_LISTS[suffix]}, which is no edge list and "
            "cannot be read yet; --format text reads it as a list of edges all the same"
        )
    return "text"


def _check_present(paths: Sequence[str | Path]) -> None:
    """Refuse absent files and folders before any work."""
    for path in paths:
        if str(path) == STANDARD_INPUT:
            continue
        if Path(path).is_dir():
            raise InputError(f"{path} is a folder; name the files in it")
        if not Path(path).exists():
            raise InputError(f"{path} does not exist; check the name ('-' is standard input)")


__all__ = ["FORMATS", "Format", "IngestOptions", "Source", "open_source", "parse_columns"]
