"""Owns the door to raw input: names of files become a `Source`, by stated or recognized format.

A format is recognized by how the file begins (MatrixMarket's banner, the magic of Parquet, NumPy and zip, the quotes of
CSV), and, where the beginning of an adjacency list or of CSV looks like that of an edge list, by the name's suffix.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from penstock.storage.base.errors import InputError
from penstock.storage.ingest.bytes.file import STANDARD_INPUT, RawFile
from penstock.storage.ingest.bytes.stream import Stream
from penstock.storage.ingest.core.source import FORMATS, IngestOptions, Source
from penstock.storage.ingest.formats import graph_file, npy, npz
from penstock.storage.ingest.formats.adjacency import AdjacencySource
from penstock.storage.ingest.formats.binary import PairSource
from penstock.storage.ingest.formats.csr import CsrSource
from penstock.storage.ingest.formats.dimacs import DimacsSource
from penstock.storage.ingest.formats.gml import gml_source
from penstock.storage.ingest.formats.graphml import graphml_source
from penstock.storage.ingest.formats.matrix_market import MatrixMarketSource, has_banner
from penstock.storage.ingest.formats.metis import MetisSource
from penstock.storage.ingest.formats.parquet import MAGIC, parquet_source
from penstock.storage.ingest.formats.queries import DUCKDB, FEATHER, SQLITE, batch_source
from penstock.storage.ingest.tables.delimited import delimited_source
from penstock.storage.ingest.tables.layout import check_dividers, is_blank_divided, looks_quoted
from penstock.storage.ingest.text.edge_list import SAMPLE_BYTES, TextSource
from penstock.storage.ingest.text.recognize import refuse_content
from penstock.storage.ingest.text.strings import NamedTextSource, begins_with_strings

_COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
_SUFFIXES = {
    ".gr": "dimacs",
    ".dimacs": "dimacs",
    ".graph": "metis",
    ".metis": "metis",
    ".graph-txt": "webgraph",
    ".adj": "adjacency",
    ".adjlist": "adjacency",
    ".gml": "gml",
    ".graphml": "graphml",
    ".csv": "csv",
    ".tsv": "csv",
}
_NOT_LISTS = {
    ".gexf": "GEXF",
    ".mat": "MATLAB",
    ".nkbg002": "NetworKit's binary format",
    ".nkbg003": "NetworKit's binary format",
}
_GRAPHML = re.compile(rb"<([\w.-]+:)?graphml[\s>]")
_GML = re.compile(rb"(?>(?:Creator |Version |#).*\s+)*+graph\s*\[")
NAMED_FORMATS = ("text", "csv", "parquet", "graphml", "sqlite", "duckdb", "feather")
_WHOLE: dict[str, Callable[[str | Path, IngestOptions], Source]] = {
    "matrix-market": MatrixMarketSource,
    "dimacs": DimacsSource,
    "metis": MetisSource,
    "npz": npz.NpzSource,
    "graph": graph_file.GraphFileSource,
    "graphml": graphml_source,
    "gml": gml_source,
}
"""Formats in which a file is a whole graph."""


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
    stated = format is not None
    format = format or ("csv" if options.delimiter else _recognize(paths, options))
    if options.delimiter and format != "csv":
        raise InputError(f"--delimiter is for CSV, and the format is {format}; leave one of them out")
    if options.comment and format != "text":
        raise InputError(f"--comment is for text, and the format is {format}; leave it out")
    if options.string_ids and format not in NAMED_FORMATS:
        raise InputError(f"--string-ids is for text, CSV, tables and GraphML; ids of the format {format} are numbers")
    _check_query_reads(options, format)
    if format in _WHOLE:
        if len(paths) > 1:
            raise InputError(f"a file in the format {format} is a whole graph; convert one at a time")
        return _WHOLE[format](paths[0], options)
    if options.query is not None and format not in ("sqlite", "duckdb", "feather"):
        raise InputError(f"--query is for databases (SQLite, DuckDB), and the format is {format}; leave it out")
    if format in ("sqlite", "duckdb", "feather"):
        return batch_source([Path(path) for path in paths], format, options)
    if format == "csr":
        return CsrSource(paths, options)
    if format == "parquet":
        return parquet_source(paths, options)
    if format in ("binary32", "binary64"):
        dtype = np.dtype(np.uint32 if format == "binary32" else np.uint64)
        return PairSource(paths, dtype, options)
    _check_present(paths)
    if format == "npy":
        return npy.NpySource(paths, options)
    if format in ("adjacency", "rows", "webgraph"):
        return AdjacencySource(paths, format, options)
    if format == "csv":
        return delimited_source(paths, options)
    if options.string_ids or (options.string_ids is None and begins_with_strings(paths[0], options)):
        if not stated and str(paths[0]) != STANDARD_INPUT:
            check_dividers(_sample(paths[0], options), str(paths[0]))
        return NamedTextSource(paths, options)
    return TextSource(paths, options)


def _check_query_reads(options: IngestOptions, format: str) -> None:
    """Refuse what a query may read besides, where there is no such query, or no such file."""
    if options.query_reads and (format != "duckdb" or options.query is None):
        raise InputError(f"--query-reads is for --query of a DuckDB database, and the format is {format}; leave it out")
    missing = next((path for path in options.query_reads if not path.exists()), None)
    if missing is not None:
        raise InputError(f"--query-reads {missing} does not exist; name a file or a folder that the query reads")


def _recognize(paths: Sequence[str | Path], options: IngestOptions) -> str:
    found = {_format_of(path, options) for path in paths}
    if len(found) > 1:
        raise InputError(
            f"the inputs are of different formats ({', '.join(sorted(found))}); convert files of "
            "one format, or name it with --format"
        )
    return found.pop()


def _format_of(path: str | Path, options: IngestOptions) -> str:
    if str(path) == STANDARD_INPUT:
        return "text"
    suffixes = [suffix for suffix in Path(path).suffixes if suffix not in _COMPRESSED]
    suffix = suffixes[-1].lower() if suffixes else ""
    if suffix == ".npz" and _begins(path, npz.MAGIC):
        return "npz"
    if _begins(path, graph_file.MAGIC):
        return "graph"
    if _begins(path, DUCKDB[1], DUCKDB[0]):  # behind a checksum, of any bytes
        return "duckdb"
    first = _sample(path, options)
    if first[:4] == MAGIC:
        return "parquet"
    if first.startswith(npy.MAGIC):
        return "npy"
    if first.startswith(SQLITE):
        return "sqlite"
    if first.startswith(FEATHER):
        return "feather"
    if has_banner(first) or (suffix == ".mtx" and first.startswith(b"%%")):
        return "matrix-market"
    begin = first.lstrip(b"\xef\xbb\xbf \t\r\n")
    if begin.startswith(b"<") and _GRAPHML.search(begin):
        return "graphml"
    if _GML.match(begin):
        return "gml"
    if suffix in _NOT_LISTS:
        raise InputError(
            f"{path}: files named {suffix} are {_NOT_LISTS[suffix]}, which is no edge list and "
            "cannot be read yet; --format text reads it as a list of edges all the same"
        )
    refuse_content(first, str(path))
    found = _SUFFIXES.get(suffix, "text")
    if found == "csv" and is_blank_divided(first):
        return "text"
    return "csv" if found == "text" and looks_quoted(first) else found


def _sample(path: str | Path, options: IngestOptions) -> bytes:
    """The first lines of a file's content, whole; fewer than `SAMPLE_BYTES`, or else the last one may be cut."""
    with Stream(path, options.host_memory) as stream:
        first = stream.read(SAMPLE_BYTES)
    return first if len(first) < SAMPLE_BYTES or b"\n" not in first else first[: first.rindex(b"\n")]


def _begins(path: str | Path, magic: bytes, at: int = 0) -> bool:
    raw = RawFile(path)
    raw.close()
    return raw.first.startswith(magic, at)


def _check_present(paths: Sequence[str | Path]) -> None:
    """Refuse absent files and folders before any work."""
    for path in paths:
        if str(path) == STANDARD_INPUT:
            continue
        if Path(path).is_dir():
            raise InputError(f"{path} is a folder; name the files in it")
        if not Path(path).exists():
            raise InputError(f"{path} does not exist; check the name ('-' is standard input)")
