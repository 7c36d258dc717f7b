"""Edges appended to sorted rows make the graph that all inputs together make; what does not suit is refused."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from penstock.storage.base.errors import BudgetError, InputError
from penstock.storage.convert import added_edges, convert_again
from penstock.storage.convert.append import append, append_opened, compact
from penstock.storage.convert.convert import convert
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.format.fingerprint import fingerprint
from penstock.storage.format.graph import Graph
from penstock.storage.ingest.core.source import IngestOptions, Source
from penstock.storage.ingest.open_source import open_source
from penstock.storage.read.verify import verify
from support.covering import covering
from support.lists import small_chunks

KINDS: list[dict[str, Any]] = [
    {},
    {"direction": "both", "drop_self_loops": True},
    {"undirected": True},
    {"undirected": True, "dedupe": "sum"},
    {"symmetrize": True, "dedupe": "max"},
    {"renumber": True, "direction": "both", "dedupe": "first"},
    {"order": "degree"},
    {"order": "hubs", "renumber": True, "undirected": True},
    {"bipartite": True, "undirected": True},
]


def lines(random: np.random.Generator, count: int, *, strings: bool, weighted: bool, most: int) -> str:
    ends = random.integers(0, most, (count, 2))
    name = (lambda v: f"käse{v % 7}-{v}") if strings else str
    return "".join(
        f"{name(u)} {name(v)}" + (f" {w}" if weighted else "") + "\n"
        for (u, v), w in zip(ends.tolist(), random.integers(0, 300, count).tolist(), strict=True)
    )


def source(*paths: Path, weighted: bool, sides: bool = False) -> Source:
    return open_source(paths, None, IngestOptions(weights=weighted, string_ids=None, sides=sides, threads=1))


@covering("strings, options", [False, True], KINDS, strength=1)
def test_appending_is_converting_all_together(options: dict[str, Any], strings: bool, tmp_path: Path) -> None:
    random = np.random.default_rng(len(options) + strings)
    weighted = "dedupe" in options or strings
    first, second = tmp_path / "a.txt", tmp_path / "b.txt"
    first.write_text(lines(random, 90, strings=strings, weighted=weighted, most=30))
    second.write_text(lines(random, 60, strings=strings, weighted=weighted, most=45))
    sides = bool(options.get("bipartite"))
    stripes = ()
    if options.get("direction"):
        stripes = (tmp_path / "one", tmp_path / "two")
        for folder in stripes:
            folder.mkdir()
    with small_chunks():
        made = ConvertOptions(threads=1, stripes=stripes, **options)
        convert(source(first, weighted=weighted, sides=sides), tmp_path / "g.h5", made)
        report = append(source(second, weighted=weighted, sides=sides), tmp_path / "g.h5", threads=1)
        assert verify(tmp_path / "g.h5", threads=1).problems == []
        compact(tmp_path / "g.h5", threads=1)
        both = source(first, second, weighted=weighted, sides=sides)
        convert(both, tmp_path / "all.h5", ConvertOptions(threads=1, **options))
    graph, together = Graph.open(tmp_path / "g.h5"), Graph.open(tmp_path / "all.h5")
    assert verify(tmp_path / "g.h5", threads=1).problems == []
    assert fingerprint(graph) == fingerprint(together)
    assert (report.vertices, report.edges) == (together.vertices, together.edges)
    assert (graph.left, graph.into is None, graph.weight_dtype) == (
        together.left, together.into is None, together.weight_dtype,
    )  # fmt: skip
    ids, wanted = graph.original_ids(), together.original_ids()
    assert ids is wanted is None or np.array_equal(np.asarray(ids), np.asarray(wanted))
    assert len(list(tmp_path.rglob("*.h5"))) == 2 + len(stripes)


def test_vertices_without_edges_stay(tmp_path: Path) -> None:
    (tmp_path / "g.graphml").write_text(
        '<graphml><graph edgedefault="directed"><node id="7"/><node id="9"/><node id="12"/>'
        '<edge source="7" target="9"/></graph></graphml>'
    )
    (tmp_path / "more.txt").write_text("9 15\n")
    convert(source(tmp_path / "g.graphml", weighted=False), tmp_path / "g.h5", ConvertOptions(renumber=True))
    append(source(tmp_path / "more.txt", weighted=False), tmp_path / "g.h5")
    ids = Graph.open(tmp_path / "g.h5").original_ids()
    assert ids is not None
    assert ids.tolist() == [7, 9, 12, 15]


@pytest.mark.parametrize(
    ("text", "given", "weighted", "message"),
    [
        ("1 2\n", {}, True, "g.h5 has weights, and .*more.txt has none"),
        ("1 2 3\n", {}, False, "more.txt has weights, and .*g.h5 has none"),
        ("a b\n", {}, False, "the ids of .*g.h5 are numbers, and those of .*more.txt are strings"),
        ("1 2\n", {"vertices_file": "only.txt"}, False, "has exactly the vertices of .*only.txt"),
    ],
)
def test_what_does_not_suit_the_graph_is_refused(
    tmp_path: Path, text: str, given: dict[str, Any], weighted: bool, message: str
) -> None:
    (tmp_path / "first.txt").write_text("0 1 4\n1 2 5\n")
    (tmp_path / "only.txt").write_text("0\n1\n2\n")
    (tmp_path / "more.txt").write_text(text)
    options = {name: tmp_path / value for name, value in given.items()}
    convert(source(tmp_path / "first.txt", weighted=weighted), tmp_path / "g.h5", ConvertOptions(**options))
    before = (tmp_path / "g.h5").read_bytes()
    with pytest.raises(InputError, match=message):
        append(source(tmp_path / "more.txt", weighted=text.count(" ") == 2), tmp_path / "g.h5")
    assert (tmp_path / "g.h5").read_bytes() == before
    assert not [path for path in tmp_path.iterdir() if path.suffix not in (".txt", ".h5")]


def convert_again_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(added_edges, "LEAST", 0)
    monkeypatch.setattr(added_edges, "SHARE", 1 << 20)


@pytest.mark.parametrize("strings", [False, True])
def test_ids_of_the_graph_are_in_the_budget(strings: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The conversion has what they leave; a budget that leaves too little is refused before anything is written."""
    names = [f"{'a-name-' if strings else ''}{7 * number}" for number in range(3000)]
    (tmp_path / "a.txt").write_text("".join(f"{one} {other}\n" for one, other in pairwise(names)))
    (tmp_path / "b.txt").write_text(f"{names[1]} {names[7]}\n")
    convert(source(tmp_path / "a.txt", weighted=False), tmp_path / "g.h5", ConvertOptions(host_memory=64 << 20))
    ids = Graph.open(tmp_path / "g.h5").original_ids()
    assert ids is not None
    held = 8 * len(names) + sum(map(len, names)) if strings else ids.nbytes
    given: list[int] = []
    real = convert_again.convert

    def noted(graph: Any, target: Path, options: ConvertOptions, watch: Any) -> Any:
        given.append(options.host_memory)
        return real(graph, target, options, watch)

    monkeypatch.setattr(convert_again, "convert", noted)
    convert_again_always(monkeypatch)
    before = (tmp_path / "g.h5").read_bytes()
    with pytest.raises(BudgetError, match=r"too small: the ids of the graph take .*33MiB"):
        append(source(tmp_path / "b.txt", weighted=False), tmp_path / "g.h5", host_memory=32 << 20)
    assert (tmp_path / "g.h5").read_bytes() == before
    append(source(tmp_path / "b.txt", weighted=False), tmp_path / "g.h5", host_memory=64 << 20)
    assert given == [(64 << 20) - held]


@pytest.mark.parametrize("layout", ["rows", "list"])
@pytest.mark.parametrize("ids", ["%%MatrixMarket matrix coordinate pattern general\n9 9 1\n1 2\n", "0 1\n1 7\n"])
def test_ids_that_need_a_table_may_come_late(
    ids: str, layout: Literal["rows", "list"], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The input is read again, as by a conversion; vertices without edges, and a graph that was there, stay."""
    (tmp_path / "g.txt").write_text(ids)
    monkeypatch.setattr("penstock.storage.ingest.core.source.LARGEST_BLOCK", 64 << 10)
    convert_again_always(monkeypatch)
    late = "".join(f"{v % 5} {v % 3}\n" for v in range(40_000))
    (tmp_path / "more.txt").write_text(f"{late}3 {2**38}\n")
    made = ConvertOptions(threads=1, layout=layout)
    convert(source(tmp_path / "g.txt", weighted=False), tmp_path / "g.h5", made)
    old = Graph.open(tmp_path / "g.h5")
    before = old.original_ids()
    notes: list[str] = []
    report = append_opened(
        lambda: source(tmp_path / "more.txt", weighted=False), tmp_path / "g.h5", notes.append, threads=1
    )
    graph = Graph.open(tmp_path / "g.h5")
    found = graph.original_ids()
    assert found is not None
    wanted = set(range(old.vertices) if before is None else before.tolist()) | {0, 1, 2, 3, 4, 2**38}
    assert found.tolist() == sorted(wanted)
    assert (report.edges, graph.layout) == (old.edges + 40_001, layout)
    assert verify(tmp_path / "g.h5", threads=1).problems == []
    assert ["read again" in note for note in notes] == [True]


def test_a_pipe_whose_late_ids_need_a_table_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "g.txt").write_text("0 1\n1 7\n")
    convert(source(tmp_path / "g.txt", weighted=False), tmp_path / "g.h5", ConvertOptions(threads=1))
    (tmp_path / "more.txt").write_text(f"3 {2**38}\n")
    before = (tmp_path / "g.h5").read_bytes()
    piped = source(tmp_path / "more.txt", weighted=False)
    monkeypatch.setattr(piped, "total_bytes", None)
    convert_again_always(monkeypatch)
    with pytest.raises(InputError, match="read again, and a pipe is read once; write it to a file, and append that"):
        append_opened(lambda: piped, tmp_path / "g.h5")
    assert (tmp_path / "g.h5").read_bytes() == before
