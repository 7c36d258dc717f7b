"""Ids that are strings or have two sides: the graph holds the input's edges under the input's ids, on any budget."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.storage.base.errors import InputError
from penstock.storage.convert.convert import convert
from penstock.storage.convert.renumber import vertex_order
from penstock.storage.convert.renumber.name_store import NameStore
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.convert.sort.spill_room import ArrayStore, SpillRoom
from penstock.storage.encoding.string_array import StringArray
from penstock.storage.format.graph import Graph
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.open_source import open_source
from support.conversions import arrays

Pairs = list[tuple[Any, Any]]


def converted(path: Path, *, format: str | None = None, **options: Any) -> Graph:
    """The graph of a file."""
    settings = ConvertOptions(force=True, threads=2, **options)
    reading = IngestOptions(host_memory=settings.host_memory, threads=2, string_ids=None, sides=settings.bipartite)
    output = path.with_suffix(".h5")
    convert(open_source([path], format, reading), output, settings)
    return Graph.open(output)


def named_edges(graph: Graph) -> tuple[list[Any], Pairs]:
    """Ids by vertex, and edges in them, sorted; of a bipartite graph sources and targets apart."""
    ids = graph.original_ids()
    assert ids is not None
    rows, neighbors, _ = arrays(graph, graph.out)
    names = ids.tolist()
    if graph.left is not None:
        assert (rows < graph.left).all()
        assert (neighbors >= graph.left).all()
    return names, sorted((names[u], names[v]) for u, v in zip(rows.tolist(), neighbors.tolist(), strict=True))


def texts(count: int, kinds: int, seed: int) -> list[tuple[str, str]]:
    chosen = random.Random(seed)
    names = [f"http://{'x' * (i % 13)}.org/{i * 7919 % kinds}" for i in range(kinds)]
    return [(chosen.choice(names), chosen.choice(names)) for _ in range(count)]


def file_of(folder: Path, edges: Pairs) -> Path:
    path = folder / "edges.txt"
    path.write_text("".join(f"{u}\t{v}\n" for u, v in edges))
    return path


@pytest.mark.parametrize(
    "options",
    [{}, {"order": "hubs"}, {"order": "degree"}, {"order": "paths"}, {"direction": "both", "host_memory": 32 << 20}],
)
def test_strings_are_numbered_by_their_bytes(tmp_path: Path, options: dict[str, Any]) -> None:
    edges = texts(4000, 700, 1)
    graph = converted(file_of(tmp_path, edges), **options)
    names, found = named_edges(graph)
    assert found == sorted(edges)
    assert sorted(names) == sorted({name for edge in edges for name in edge})
    assert (names == sorted(names)) == ("order" not in options)
    if options.get("order") in ("hubs", "degree"):
        degree = np.diff([0, *np.cumsum(np.bincount([names.index(u) for u, _ in edges], minlength=len(names)))])
        assert degree[: len(names) // 20].mean() > degree.mean()


@pytest.mark.parametrize("strings", [False, True])
def test_two_sides_are_two_spaces(tmp_path: Path, strings: bool) -> None:
    edges: Pairs = [(f"n{i % 31}", f"n{i * i % 57}") for i in range(500)]
    if not strings:
        edges = [(int(u[1:]), int(v[1:]) + (1 << 40)) for u, v in edges] + [(7, 7)]
    graph = converted(file_of(tmp_path, edges), bipartite=True)
    names, found = named_edges(graph)
    left = sorted({u for u, _ in edges})
    assert graph.left == len(left)
    assert names == left + sorted({v for _, v in edges})
    assert found == sorted(edges)


def test_rows_without_ids_have_two_sides(tmp_path: Path) -> None:
    path = tmp_path / "films"
    path.write_text("5 7\n7\n7 9 5\n")
    names, found = named_edges(converted(path, format="rows", bipartite=True))
    assert names == [0, 1, 2, 5, 7, 9]
    assert found == [(0, 5), (0, 7), (1, 7), (2, 5), (2, 7), (2, 9)]


def test_vertices_without_neighbors_exist(tmp_path: Path) -> None:
    path = tmp_path / "friends.adj"
    path.write_text("5: 7\n9\n20:\n")
    for given in ({}, {"renumber": True}, {"order": "degree"}):
        names, found = named_edges(converted(path, **given))
        assert (sorted(names), found) == ([5, 7, 9, 20], [(5, 7)])
    for given in ({"renumber": False}, {"renumber": False, "order": "degree"}):
        assert converted(path, **given).vertices == 21


def test_listed_strings_are_vertices(tmp_path: Path) -> None:
    listed = tmp_path / "vertices"
    listed.write_text("# all\nzoe 1 2\nann\nbob\n")
    source = file_of(tmp_path, [("bob", "ann")] * 2)
    names, found = named_edges(converted(source, vertices_file=listed))
    assert (names, found) == (["ann", "bob", "zoe"], [("bob", "ann")] * 2)
    listed.write_text("zoe\nbob\n")
    with pytest.raises(InputError, match=r"line \d+: target 'ann' is not listed in .*\n    bob"):
        converted(source, vertices_file=listed)


def test_the_line_of_an_edge_that_is_not_listed_is_named(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("# comment\n1 2\n\n2 1\n")
    (tmp_path / "two").write_text("% comment\n\n1 2\n2\t77\n1 2\n")
    (tmp_path / "listed").write_text("1\n2\n")
    source = open_source([tmp_path / "one", tmp_path / "two"], None, IngestOptions())
    options = ConvertOptions(vertices_file=tmp_path / "listed")
    with pytest.raises(InputError, match=r"two, line 4: target 77 is not listed in .*/listed, .*\n    2\t77$"):
        convert(source, tmp_path / "graph.h5", options)


def test_the_record_of_an_edge_that_is_not_listed_is_named(tmp_path: Path) -> None:
    """Of CSV too, where a record may have several lines."""
    (tmp_path / "a.csv").write_text('source,target,note\n1,2,"a, b"\n2,1,"two\nlines"\n2,77,"three\nmore"\n')
    (tmp_path / "listed").write_text("1\n2\n")
    source = open_source([tmp_path / "a.csv"], None, IngestOptions(columns=("source", "target")))
    with pytest.raises(InputError, match=r'a.csv, line 5: target 77 is not listed in .*\n    2,77,"three'):
        convert(source, tmp_path / "graph.h5", ConvertOptions(vertices_file=tmp_path / "listed"))


@pytest.mark.parametrize("options", [{"order": "hubs"}, {"order": "degree"}, {"vertices_file": Path("ids")}])
def test_what_two_sides_exclude(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="--bipartite: --"):
        ConvertOptions(bipartite=True, **options)


def test_names_that_do_not_fit_go_to_disk(tmp_path: Path) -> None:
    edges = [(f"{i * 2654435761 % 2**32:010d}/{'p' * 40}", f"{i:010d}/{'q' * 40}") for i in range(60_000)]
    path = file_of(tmp_path, edges)
    report = convert(
        open_source([path], None, IngestOptions(host_memory=32 << 20, threads=2, string_ids=True)),
        tmp_path / "g.h5",
        ConvertOptions(host_memory=32 << 20, threads=2),
    )
    assert (report.vertices, report.edges) == (120_000, 60_000)
    assert report.scratch_bytes > 120_000 * 50
    names, found = named_edges(Graph.open(tmp_path / "g.h5"))
    assert names == sorted(names)
    assert found == sorted(edges)


def test_names_come_in_any_order_from_pieces_and_blocks(tmp_path: Path) -> None:
    names = sorted({name for edge in texts(3000, 900, 3) for name in edge}, key=str.encode)
    order = np.random.default_rng(7).permutation(len(names)).astype(np.uint32)
    for block_bytes, quota in ((1, 0), (1000, 1 << 20), (1 << 30, 500)):
        scratch = SpillRoom(quota, tmp_path, lambda: None)
        store = ArrayStore(scratch)
        kept = NameStore(store, sides=False, block_bytes=block_bytes)
        for first in range(0, len(names), 171):
            text = [name.encode() for name in names[first : first + 171]]
            kept.add(StringArray(np.frombuffer(b"".join(text), np.uint8), np.cumsum([len(name) for name in text])))
        kept.new_ids = vertex_order.inverse(order)
        blocks = [names.strings().tolist() for names in kept.pieces()]
        assert [name for block in blocks for name in block] == [names[old] for old in order.tolist()]
        assert (len(blocks) == 1) == (block_bytes == 1 << 30)
        store.close()
        scratch.close()
