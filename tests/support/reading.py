"""What the tests of raw input share: all edges of a file as tuples, and blocks so small that files have many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from penstock.storage.ingest.core import source as ingest_options
from penstock.storage.ingest.core.source import IngestOptions, Source
from penstock.storage.ingest.open_source import open_source

Edges = list[tuple[Any, ...]]


def edges_in(source: Source) -> Edges:
    """The edges of a source as (source, target[, weight]) in order, ids that are strings as such."""
    found: Edges = []
    for batch in source.batches():
        ends = [batch.sources.tolist(), batch.targets.tolist()]
        if batch.names is not None:
            names = batch.names.names.strings().tolist()
            ends = [[names[number] for number in end] for end in ends]
        columns = ends if batch.weights is None else [*ends, batch.weights.tolist()]
        found += zip(*columns, strict=True)
    return found


def edges_of(path: Path | str, format: str | None = None, **options: Any) -> tuple[Edges, Source]:
    """The edges of a file, and the source."""
    source = open_source([path], format, IngestOptions(threads=2, **options))
    return edges_in(source), source


def small_blocks(patch: pytest.MonkeyPatch, size: int = 64) -> None:
    """Make blocks of about `size` bytes, so that a few lines make several."""
    patch.setattr(ingest_options, "SMALLEST_BLOCK", size)
    patch.setattr(ingest_options, "LARGEST_BLOCK", size)
