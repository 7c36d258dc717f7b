"""Owns the door to raw input: names of files become a `Source`, by stated or recognized format (`core/formats.py`).

A format is recognized by how the file begins (MatrixMarket's banner, the magic of Parquet, NumPy and zip, the quotes of
CSV), and, where that looks like an edge list (CSV, DIMACS, METIS, adjacency lists, webgraph), by the name's suffix.
"""

import importlib
import os
from collections.abc import Sequence

from penstock.storage.base.errors import InputError
from penstock.storage.base.places import Address, Place, place_of
from penstock.storage.ingest.bytes.file import STANDARD_INPUT, RawFile
from penstock.storage.ingest.bytes.stream import Stream
from penstock.storage.ingest.core.formats import (
    FORMATS,
    Format,
    format_of_suffix,
    recognized,
    refuse_content,
    suffix_of,
)
from penstock.storage.ingest.core.source import IngestOptions, Source
from penstock.storage.ingest.tables.folders import files_of
from penstock.storage.ingest.tables.layout import check_dividers, is_blank_divided, looks_quoted
from penstock.storage.ingest.text.edge_list import SAMPLE_BYTES


def open_source(paths: Sequence[Place], format: str | None, options: IngestOptions) -> Source:
    """Open raw input.

    ``paths`` are files of one format, read one after another (for ``csr``: offsets, neighbors and
    perhaps weights), on this machine or in a store (``s3://bucket/key``), folders of such files, or patterns of their
    names; ``-`` is standard input, which is text, or CSV with a ``delimiter``, unless ``format`` says otherwise.
    ``format`` is one of `FORMATS`, or None to recognize it.

    Raises:
        InputError: a file is absent, or is not of a format that can be read.
    """
    if not paths:
        raise InputError("no input is named; '-' is standard input")
    paths = [file for place in paths for file in files_of(place_of(place))]
    if format is not None and format not in FORMATS:
        raise InputError(f"--format {format!r} is unknown; there are {', '.join(FORMATS)}")
    found = FORMATS[format or "csv"] if format or options.delimiter else _recognize(paths, options)
    _check_options(found, options)
    if found.whole and len(paths) > 1:
        raise InputError(f"a file in the format {found.name} is a whole graph; convert one at a time")
    for path in paths:
        _check_present(path)
    module, _, name = found.opens.partition(":")
    opens = getattr(importlib.import_module(f"penstock.storage.ingest.{module}"), name)
    source: Source = opens(paths[0] if found.whole else paths, *found.given, options)
    if format is None and found.name == "text" and getattr(source, "named", False) and str(paths[0]) != STANDARD_INPUT:
        check_dividers(_sample(paths[0], options), str(paths[0]))
    return source


def _check_options(form: Format, options: IngestOptions) -> None:
    """Refuse options that the format does not take, and files for a query that are not there."""
    for option in dict.fromkeys(option for one in FORMATS.values() for option in one.takes):
        if getattr(options, option) and option not in form.takes:
            takers = ", ".join(one.name for one in FORMATS.values() if option in one.takes)
            name = option.replace("_", "-")
            raise InputError(f"--{name} is for {takers}, and the format is {form.name}; leave it out")
    missing = next((path for path in options.query_reads if not path.exists()), None)
    if missing is not None:
        raise InputError(f"--query-reads {missing} does not exist; name a file or a folder that the query reads")


def _recognize(paths: Sequence[Place], options: IngestOptions) -> Format:
    found = {form.name: form for form in (_format_of(path, options) for path in paths)}
    if len(found) > 1:
        raise InputError(
            f"the inputs are of different formats ({', '.join(sorted(found))}); convert files of "
            "one format, or name it with --format"
        )
    return found.popitem()[1]


def _format_of(path: Place, options: IngestOptions) -> Format:
    if str(path) == STANDARD_INPUT:
        return FORMATS["text"]
    suffix, raw = suffix_of(path), RawFile(path)
    raw.close()
    found = recognized(raw.first, suffix)
    if found is not None:
        return found
    first = _sample(path, options)
    found = recognized(first, suffix)
    if found is not None:
        return found
    by_name = format_of_suffix(suffix, str(path))
    refuse_content(first, str(path))
    if by_name.name == "csv" and is_blank_divided(first):
        return FORMATS["text"]
    return FORMATS["csv"] if by_name.name == "text" and looks_quoted(first) else by_name


def _sample(path: Place, options: IngestOptions) -> bytes:
    """The first lines of a file's content, whole; fewer than `SAMPLE_BYTES`, or else the last one may be cut."""
    with Stream(path, options.host_memory) as stream:
        first = stream.read(SAMPLE_BYTES)
    return first if len(first) < SAMPLE_BYTES or b"\n" not in first else first[: first.rindex(b"\n")]


def _check_present(path: Place) -> None:
    """Refuse an absent file of this machine before any work; a store was asked for its own."""
    if str(path) != STANDARD_INPUT and not isinstance(path, Address) and not os.path.exists(path):
        raise InputError(f"{path} does not exist; check the name ('-' is standard input)")
