"""Writes edges back as a raw edge list: text (plain or gzip) or binary pairs.

Batches are formatted, and compressed as gzip members of their own, on every core, and written in order.
"""

import gzip
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.atomic import whole_file
from penstock.storage.base.errors import InputError
from penstock.storage.base.jit import jit
from penstock.storage.base.threads import pooled_map
from penstock.storage.ingest.core.edges import EdgeBatch
from penstock.storage.ingest.core.source import Source

DIGITS = 20
"""The longest id, 2^64 - 1, in decimal."""
GZIP_LEVEL = 1

Format = Callable[[EdgeBatch], bytes | memoryview]


def write_edges(
    source: Source,
    path: Path,
    *,
    force: bool = False,
    threads: int | None = None,
    progress: Callable[[int], None] = lambda edges: None,
) -> int:
    """Write all edges of a source to ``path`` in the format its name asks for; return the bytes.

    ``.txt .tsv .el .wel``: lines ``source<TAB>target[<TAB>weight]``; the same with ``.gz``: gzip;
    ``.bin``: little-endian pairs of the ids' width. ``progress`` is called with the number of edges written.

    Raises:
        InputError: another name, weights asked into pairs, or a target that cannot be written.
        RunError: the disk is full or failed.
    """
    format_batch = _format_for(path)

    def work(batch: EdgeBatch) -> tuple[int, bytes | memoryview]:
        return len(batch), format_batch(batch)

    edges = 0
    with whole_file(path, force=force) as partial:
        formatted = pooled_map(work, source.batches(), threads, "export")
        with partial.open("wb") as file, closing(formatted) as pieces:
            for count, piece in pieces:
                file.write(piece)
                edges += count
                progress(edges)
        return partial.stat().st_size


def _as_text(batch: EdgeBatch) -> memoryview:
    columns = 2 if batch.weights is None else 3
    text = np.empty(len(batch) * columns * (DIGITS + 1), np.uint8)
    weights = batch.sources[:0] if batch.weights is None else batch.weights
    length = _write_lines(batch.sources, batch.targets, weights, text)
    return text[:length].data


def _as_pairs(batch: EdgeBatch) -> memoryview:
    if batch.weights is not None:
        raise InputError("binary pairs hold no weights; write .txt, or a graph file (.h5)")
    kind = batch.sources.dtype.newbyteorder("<")
    pairs = np.empty((len(batch), 2), kind)
    pairs[:, 0] = batch.sources
    pairs[:, 1] = batch.targets
    return pairs.data.cast("B")


_FORMATS: dict[str, Format] = {
    **dict.fromkeys((".txt", ".tsv", ".el", ".wel"), _as_text),
    **dict.fromkeys(
        (".txt.gz", ".tsv.gz", ".el.gz", ".wel.gz"), lambda batch: gzip.compress(_as_text(batch), GZIP_LEVEL, mtime=0)
    ),
    ".bin": _as_pairs,
}


def _format_for(path: Path) -> Format:
    lower = path.name.lower()
    known = _FORMATS.get("".join(Path(lower).suffixes[-2 if lower.endswith(".gz") else -1 :]))
    if known is None:
        raise InputError(f"{path}: no edge list is called so; use one of {' '.join(_FORMATS)}")
    return known


@jit
def _write_lines(sources: NDArray[Any], targets: NDArray[Any], weights: NDArray[Any], text: NDArray[np.uint8]) -> int:
    """Write a line per edge into ``text`` (large enough); return how many bytes that took."""
    at = 0
    for i in range(len(sources)):
        at = _write_number(np.uint64(sources[i]), text, at)
        text[at] = 9
        at = _write_number(np.uint64(targets[i]), text, at + 1)
        if len(weights) > 0:
            text[at] = 9
            at = _write_number(np.uint64(weights[i]), text, at + 1)
        text[at] = 10
        at += 1
    return at


@jit
def _write_number(number: Any, text: NDArray[np.uint8], at: int) -> int:
    """Write a uint64 in decimal at ``at``; return where it ends."""
    digits = 1
    bound = np.uint64(10)
    while digits < DIGITS and number >= bound:
        digits += 1
        bound *= np.uint64(10)
    for place in range(at + digits - 1, at - 1, -1):
        rest = number // np.uint64(10)
        text[place] = np.uint8(number - rest * np.uint64(10)) + np.uint8(48)
        number = rest
    return at + digits
