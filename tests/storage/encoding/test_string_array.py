"""Names packed end to end, as arrays of strings, in any order, and in graph files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.base.errors import RunError
from penstock.storage.encoding import string_array as storage_names
from penstock.storage.encoding.string_array import StringArray
from penstock.storage.format.graph import Graph
from penstock.storage.format.writer import GraphWriter
from support.graph_files import string_array

TEXTS = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=50), max_size=30)


def names_of(texts: list[str]) -> StringArray:
    return string_array(texts)


@given(texts=TEXTS)
def test_names_are_their_strings(texts: list[str]) -> None:
    names = names_of(texts)
    assert (len(names), names.strings().tolist()) == (len(texts), texts)
    assert names.lengths.tolist() == [len(text.encode()) for text in texts]


@given(st.lists(st.one_of(st.binary(max_size=6), st.text(max_size=4).map(lambda text: text.encode("utf-8", "ignore")))))
def test_what_is_no_utf8_is_found(parts: list[bytes]) -> None:
    text = np.frombuffer(b"".join(parts), np.uint8)
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    assert storage_names.first_invalid(text, ends) == next((i for i, part in enumerate(parts) if not _utf8(part)), -1)


@pytest.mark.parametrize("lead", [0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5])
def test_every_second_byte_is_judged(lead: int) -> None:
    for second in range(256):
        for rest in (b"", b"\x80", b"\x80\x80"):
            part = bytes([lead, second]) + rest
            found = storage_names.first_invalid(np.frombuffer(part, np.uint8), np.array([len(part)]))
            assert (found == -1) == _utf8(part), part


def _utf8(part: bytes) -> bool:
    try:
        part.decode()
    except UnicodeDecodeError:
        return False
    return True


@given(texts=TEXTS, seed=st.integers(0, 9))
def test_names_in_another_order(texts: list[str], seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(texts))[: len(texts) // 2 + 1]
    assert names_of(texts).taken(order).strings().tolist() == [texts[i] for i in order]


def test_long_names_are_spread_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_names, "_SPREAD_BYTES", 1000)
    texts = ["x" * (1 + i % 300) for i in range(50)]
    assert names_of(texts).strings().tolist() == texts


def write(path: Path, pieces: list[StringArray], vertices: int, left: int | None = None) -> None:
    kind = np.dtype(np.uint32)
    with GraphWriter(path, vertices=vertices, directed=True, vertex_dtype=kind, weight_dtype=None) as writer:
        out = writer.adjacency("out")
        out.degrees(np.zeros(vertices, np.uint32))
        out.finish()
        writer.left = left
        for names in pieces:
            writer.original_ids(names)


def test_a_graph_file_keeps_names(tmp_path: Path) -> None:
    pieces = [names_of([f"n{i}é" for i in range(first, first + 100)]) for first in (0, 100, 200)]
    write(tmp_path / "g.h5", pieces, 300, left=120)
    graph = Graph.open(tmp_path / "g.h5")
    ids = graph.original_ids()
    assert ids is not None
    assert (ids.tolist(), graph.left) == ([f"n{i}é" for i in range(300)], 120)


@pytest.mark.parametrize(("ends", "first"), [([3, 2, 3], 0), ([3, 2, 3], 1), ([-1, 2, 3], 0), ([-1, 2, 3], 1)])
def test_ends_that_do_not_rise_are_damage(ends: list[int], first: int, tmp_path: Path) -> None:
    """Whether all names are read or some."""
    write(tmp_path / "g.h5", [StringArray(np.frombuffer(b"abc", np.uint8), np.array(ends))], 3)
    graph = Graph.open(tmp_path / "g.h5")
    for read in (graph.original_ids, lambda: graph.original_ids_in(first, 3)):
        with pytest.raises(RunError, match="ends of its ids"):
            read()
