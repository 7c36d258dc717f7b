"""Verifying a list: what is wrong with its edges, spans, degrees or weights is found, though all checksums agree."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from penstock.storage.convert import list_writer
from penstock.storage.convert.convert import convert
from penstock.storage.convert.list_writer import EndCounts
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.format.graph import Graph
from penstock.storage.read.verify import verify
from support.conversions import Edge, Given
from support.faults import flip_bit
from support.lists import small_chunks

EDGES: list[Edge] = [(number % 7, number * 5 % 11, float(number)) for number in range(30)]


def problems(path: Path) -> str:
    with small_chunks():
        return " | ".join(f"{problem.place}: {problem.what}" for problem in verify(path, threads=1).problems)


def made(path: Path) -> Path:
    with small_chunks():
        convert(Given(EDGES, []), path, ConvertOptions(layout="list", threads=1))
    return path


def test_wrong_spans_and_self_loops_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = list_writer.spans_of

    def wrong(keys: np.ndarray, block: int) -> tuple[np.ndarray, int]:
        spans, loops = right(keys, block)
        spans[0, 2] += 1
        return spans, loops + 1

    monkeypatch.setattr(list_writer, "spans_of", wrong)
    found = problems(made(tmp_path / "g.h5"))
    assert "block 0 has vertices that its span does not say" in found
    assert "edges lead from a vertex to itself, and the header says" in found


def test_wrong_degrees_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = EndCounts.of

    def wrong(self: EndCounts, vertices: int) -> list[np.ndarray]:
        counts = right(self, vertices)
        counts[1][3] += 1
        counts[1][4] -= 1
        return counts

    monkeypatch.setattr(EndCounts, "of", wrong)
    assert "the degree of vertex 3 is not that of its edges" in problems(made(tmp_path / "g.h5"))


def test_a_damaged_chunk_is_named_and_does_not_hide_weights(tmp_path: Path) -> None:
    path = made(tmp_path / "g.h5")
    with small_chunks():
        graph = Graph.open(path)
    assert graph.out.neighbors is not None
    flip_bit(path, int(graph.out.neighbors.offsets[1]) + 3)
    found = problems(path)
    assert "chunk 1 of out/neighbors" in found
    assert "checksum does not match" in found
