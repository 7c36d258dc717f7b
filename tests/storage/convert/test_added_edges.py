"""Rows that were changed beside their file hold what a conversion of all edges together holds; or are as they were."""

from __future__ import annotations

import errno
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from penstock.storage.base.atomic import partial_name
from penstock.storage.base.budget import process_space
from penstock.storage.base.errors import InputError
from penstock.storage.convert import added_edges
from penstock.storage.convert.append import append, compact
from penstock.storage.convert.convert import convert
from penstock.storage.convert.remove import remove
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.format.fingerprint import fingerprint
from penstock.storage.format.graph import Graph
from penstock.storage.ingest.core.source import IngestOptions, Source
from penstock.storage.ingest.open_source import open_source
from penstock.storage.read.reader import Reader
from penstock.storage.read.verify import verify
from support.covering import covering
from support.lists import small_chunks

KINDS: list[dict[str, Any]] = [
    {},
    {"direction": "both", "drop_self_loops": True},
    {"undirected": True},
    {"symmetrize": True},
    {"symmetrize": True, "dedupe": "first"},
    {"renumber": False, "direction": "both"},
    {"order": "degree", "direction": "both"},
    {"windows": 4, "direction": "both"},
    {"windows": 4, "undirected": True, "dedupe": "first"},
    {"bipartite": True, "direction": "both"},
]


def source(*paths: Path, weighted: bool, sides: bool = False) -> Source:
    return open_source(paths, None, IngestOptions(weights=weighted, string_ids=None, sides=sides, threads=1))


def lines(
    random: np.random.Generator, count: int, most: int, *, weighted: bool, name: str = "", sources: int = 99
) -> list[str]:
    ends, weights = random.integers(0, most, (count, 2)).tolist(), random.integers(0, 300, count).tolist()
    return [
        f"{name}{u % sources} {name}{v}" + (f" {w}" if weighted else "")
        for (u, v), w in zip(ends, weights, strict=True)
    ]


@contextmanager
def small_windows() -> Iterator[None]:
    """Chunks are small, and windows have eight vertices or more."""
    with small_chunks(), mock.patch("penstock.storage.convert.windows.page_rows", return_value=8):
        yield


def written(path: Path, text: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in text))
    return path


def content(graph: Graph) -> list[Any]:
    """Everything that a program may see, read through a reader and by parts."""
    found: list[Any] = [graph.vertices, graph.edges, graph.vertex_dtype, graph.weight_dtype]
    ids = graph.original_ids()
    found += [None if ids is None else ids.tolist(), graph.weight_range and graph.weight_range[::2]]
    for rows in graph.all_rows:
        neighbors = np.empty(rows.edges, rows.neighbor_dtype)
        weights = None if rows.weight_dtype is None else np.empty(rows.edges, rows.weight_dtype)
        with Reader(graph, decode_threads=2) as reader:
            reader.fetch_all(rows, neighbors, weights)
        index = rows.index()
        found += [index.starts(0, graph.vertices + 1).tolist(), neighbors.tolist(), np.asarray(weights).tolist()]
        for row in range(0, graph.vertices, 5):
            first, last = index.starts(row, row + 1)[0], index.starts(row + 1, row + 2)[0]
            part, values = rows.edges_in(int(first), int(last))
            assert part.tolist() == neighbors[first:last].tolist()
            assert weights is None or (values is not None and values.tolist() == weights[first:last].tolist())
    return found


def named(graph: Graph) -> list[Any]:
    """The edges of each direction in ids of the input, sorted; how many vertices and what weights there are."""
    ids = graph.original_ids()
    names = np.arange(graph.vertices) if ids is None else ids
    found: list[Any] = [sorted(names.tolist()), graph.weight_dtype, graph.input_edges]
    for rows in graph.adjacencies:
        neighbors, weights = rows.edges_in(0, rows.edges)
        sources = names[np.repeat(np.arange(graph.vertices), rows.index().degrees(0, graph.vertices))]
        values = np.zeros(rows.edges) if weights is None else weights
        found.append(sorted(zip(sources.tolist(), names[neighbors].tolist(), values.tolist(), strict=True)))
    return found


@covering("seed, weighted, stripes, name, options", range(4), [False, True], [0, 2], ["", "käse"], KINDS, strength=2)
def test_added_edges_are_among_the_others(
    seed: int, weighted: bool, stripes: int, name: str, options: dict[str, Any], tmp_path: Path
) -> None:
    """Three times: parallel edges, self-loops, rows over several chunks, new ids; then in one again."""
    random, sides = np.random.default_rng(seed), bool(options.get("bipartite"))
    options = {key: value for key, value in options.items() if not (name and key == "renumber")}
    given = {"weighted": weighted, "name": name} | ({"sources": 3} if sides else {})
    folders = tuple(tmp_path / f"stripe{number}" for number in range(stripes))
    for folder in folders:
        folder.mkdir()
    sizes, most = random.integers(1, [120, 40, 40, 40]), (30, 30, 36, 39)
    files = [
        written(tmp_path / f"{number}.txt", lines(random, size, limit, **given))
        for number, (size, limit) in enumerate(zip(sizes.tolist(), most, strict=True))
    ]
    with small_windows():
        first = source(files[0], weighted=weighted, sides=sides)
        convert(first, tmp_path / "g.h5", ConvertOptions(stripes=folders, **options))
        before = {path: path.read_bytes() for folder in folders for path in folder.iterdir()}
        for file in files[1:]:
            append(source(file, weighted=weighted, sides=sides), tmp_path / "g.h5", threads=2)
        convert(source(*files, weighted=weighted, sides=sides), tmp_path / "all.h5", ConvertOptions(**options))
    graph, together = Graph.open(tmp_path / "g.h5"), Graph.open(tmp_path / "all.h5")
    assert verify(tmp_path / "g.h5", threads=2).problems == []
    assert named(graph) == named(together)
    if not graph.reordered:
        assert content(graph) == content(together)
    assert graph.without_edges in (None, together.without_edges)
    if graph.out.splice is not None and not (sides or "windows" in options):  # else it may have been converted again
        assert before.items() <= {path: path.read_bytes() for path in before}.items()
    assert graph.input_edges == together.input_edges
    with small_windows():
        compact(tmp_path / "g.h5", threads=2)
    assert fingerprint(Graph.open(tmp_path / "g.h5")) == fingerprint(together)
    assert Graph.open(tmp_path / "g.h5").input_edges == together.input_edges
    assert compact(tmp_path / "g.h5") is None
    assert len(list(tmp_path.rglob("*.h5"))) == 2 + stripes


@covering("seed, weighted, options", range(4), [False, True], [*KINDS[:3], {"windows": 3}], strength=2)
def test_removed_edges_are_gone(seed: int, weighted: bool, options: dict[str, Any], tmp_path: Path) -> None:
    """Stored ones and added ones, all edges of a vertex, and what is added again afterwards."""
    random = np.random.default_rng(seed)
    there = lines(random, 130, 30, weighted=weighted)
    first, later = there[:100], there[100:]
    loops = [] if options.get("drop_self_loops") else [f"{v} {v}" + " 1" * weighted for v in range(30)]
    undirected = bool(options.get("undirected"))

    def ends(line: str) -> tuple[int, ...]:
        pair = [int(field) for field in line.split()[:2]]
        return tuple(sorted(pair) if undirected else pair)

    gone = {ends(there[at]) for at in random.choice(130, 25, replace=False).tolist()}
    if options.get("drop_self_loops"):
        gone = {pair for pair in gone if pair[0] != pair[1]}
    kept = [line for line in loops + there if ends(line) not in gone and 7 not in ends(line)]
    with small_windows():
        convert(
            source(written(tmp_path / "a.txt", loops + first), weighted=weighted),
            tmp_path / "g.h5",
            ConvertOptions(**options, renumber=False),
        )
        more = written(tmp_path / "b.txt", later)
        append(source(more, weighted=weighted), tmp_path / "g.h5")
        less = written(tmp_path / "r.txt", [f"{u} {v}" for u, v in gone])
        report = remove(source(less, weighted=False), tmp_path / "g.h5", vertices=[7])
        append(source(more, weighted=weighted), tmp_path / "g.h5")
        both = source(written(tmp_path / "k.txt", kept), more, weighted=weighted)
        convert(both, tmp_path / "all.h5", ConvertOptions(**options, renumber=False))
    graph, together = Graph.open(tmp_path / "g.h5"), Graph.open(tmp_path / "all.h5")
    assert verify(tmp_path / "g.h5").problems == []
    assert graph.out.splice is not None
    assert len(graph.out.splice.removed) > 0
    assert report.edges < graph.edges
    assert [content(graph)[at] for at in (1, 6, 7, 8)] == [content(together)[at] for at in (1, 6, 7, 8)]
    with small_windows():
        compact(tmp_path / "g.h5")
    assert content(Graph.open(tmp_path / "g.h5"))[6:] == content(graph)[6:]


MIXED: list[dict[str, Any]] = [{}, {"undirected": True}, {"windows": 4, "direction": "both"}, {"bipartite": True}]


@covering("seed, weighted, name, options", range(3), [False, True], ["", "käse"], MIXED, strength=2)
def test_changes_in_any_order(seed: int, weighted: bool, name: str, options: dict[str, Any], tmp_path: Path) -> None:
    """What remains are the edges that were added and not removed since, also when they are written in one again."""
    random, sides = np.random.default_rng(seed), bool(options.get("bipartite"))
    given: dict[str, Any] = {"weighted": weighted, "name": name, "sources": 3 if sides else 99}

    def ends(line: str) -> tuple[str, ...]:
        pair = line.split()[:2]
        return tuple(sorted(pair) if options.get("undirected") else pair)

    there = lines(random, 80, 20, **given)
    file, kinds = tmp_path / "change.txt", Counter[str]()
    with small_windows():
        first = source(written(tmp_path / "a.txt", there), weighted=weighted, sides=sides)
        convert(first, tmp_path / "g.h5", ConvertOptions(**options))
        for _ in range(6):
            removes = bool(there) and random.random() < 0.5
            gone = {ends(there[at]) for at in random.integers(0, len(there), 4)} if removes else set()
            more = [] if removes else lines(random, 10, 22, **given)
            written(file, [" ".join(pair) for pair in gone] if removes else more)
            there = [line for line in there if ends(line) not in gone] + more
            (remove if removes else append)(
                source(file, weighted=weighted and not removes, sides=sides), tmp_path / "g.h5"
            )
            kinds["removed" if removes else "added"] += 1
            assert verify(tmp_path / "g.h5").problems == []
        convert(
            source(written(tmp_path / "k.txt", there), weighted=weighted, sides=sides),
            tmp_path / "all.h5",
            ConvertOptions(**options),
        )
        graph, together = Graph.open(tmp_path / "g.h5"), Graph.open(tmp_path / "all.h5")
        assert named(graph)[3:] == named(together)[3:], kinds
        compact(tmp_path / "g.h5")
    assert named(Graph.open(tmp_path / "g.h5"))[2:] == named(graph)[2:]
    assert verify(tmp_path / "g.h5").problems == []


@pytest.mark.parametrize(
    ("text", "vertices", "told"),
    [
        ("0 1\n1 0\n4 4\n", [], "has no edge 1 0, nor 1 more of these; nothing was removed"),
        ("0 77\n", [], "vertex 77 is not in the graph"),
        ("", [99], "vertex 99 is not in the graph"),
    ],
)
def test_what_is_not_there_is_not_removed(text: str, vertices: list[int], told: str, tmp_path: Path) -> None:
    made = source(written(tmp_path / "a.txt", ["0 1", "2 4"]), weighted=False)
    convert(made, tmp_path / "g.h5", ConvertOptions(renumber=False))
    (tmp_path / "r.txt").write_text(text)
    before = (tmp_path / "g.h5").read_bytes()
    with pytest.raises(InputError, match=told):
        remove(source(tmp_path / "r.txt", weighted=False), tmp_path / "g.h5", vertices=vertices)
    assert (tmp_path / "g.h5").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize(
    ("options", "told"),
    [({"layout": "list"}, "it is a list")],
)
def test_graphs_whose_edges_cannot_be_removed(options: dict[str, Any], told: str, tmp_path: Path) -> None:
    made = written(tmp_path / "a.txt", ["0 1", "2 4"])
    convert(source(made, weighted=False), tmp_path / "g.h5", ConvertOptions(**options))
    with pytest.raises(InputError, match=told):
        remove(source(made, weighted=False), tmp_path / "g.h5")


def test_many_added_edges_are_written_with_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once there are too many; a source that is read for that is not read twice."""
    monkeypatch.setattr(added_edges, "LEAST", 3)
    convert(
        source(written(tmp_path / "a.txt", ["0 1", "1 2", "2 0"]), weighted=False), tmp_path / "g.h5", ConvertOptions()
    )
    spliced = []
    for number in range(3):
        more = written(tmp_path / f"{number}.txt", ["0 2", f"2 {number}"])
        append(source(more, weighted=False), tmp_path / "g.h5")
        graph = Graph.open(tmp_path / "g.h5")
        spliced.append((graph.edges, graph.out.splice is not None))
    assert spliced == [(5, True), (7, False), (9, True)]


def test_a_graph_that_is_open_stays_as_it_was(tmp_path: Path) -> None:
    """A run that has it open reads the edges of its time; the next sees those of now, which have another name."""
    convert(source(written(tmp_path / "a.txt", ["0 1", "1 2"]), weighted=False), tmp_path / "g.h5", ConvertOptions())
    graphs = [Graph.open(tmp_path / "g.h5")]
    for line in ("2 0", "2 1"):
        append(source(written(tmp_path / "b.txt", [line]), weighted=False), tmp_path / "g.h5")
        graphs.append(Graph.open(tmp_path / "g.h5"))
    compact(tmp_path / "g.h5")
    assert [graph.out.edges_in(0, graph.edges)[0].tolist() for graph in graphs] == [[1, 2], [1, 2, 0], [1, 2, 0, 1]]
    assert len({fingerprint(graph)["content"] for graph in graphs}) == 3


def left_of(target: Path, process: int, space: str) -> Path:
    """An unfinished file of a process of a machine, or of a container."""
    name = partial_name(target).name.replace(f"-{os.getpid()}-", f"-{process}-")
    path = target.with_name(name.replace(process_space(), space))
    path.write_text("unfinished")
    return path


@pytest.mark.parametrize("name", ["g.h5", "g.v2.h5"])
def test_unfinished_files_of_killed_processes_go_and_no_others(name: str, tmp_path: Path) -> None:
    """Those of living ones stay, and those of other hosts and containers, whose processes are not seen here."""
    graph, line = tmp_path / name, written(tmp_path / "a.txt", ["0 1", "1 2"])
    convert(source(line, weighted=False), graph, ConvertOptions())
    ended, shard = subprocess.Popen(["true"]), f"{graph.stem}.01abcdef.0.h5"
    ended.wait()
    gone = {left_of(path, ended.pid, process_space()) for path in (graph, tmp_path / shard)}
    stay = {left_of(graph, os.getpid(), process_space()), left_of(graph, ended.pid, "0123abcd")}
    stay |= {left_of(tmp_path / other, ended.pid, process_space()) for other in ("g.csv", "g.v3.h5", "other.h5")}
    append(source(line, weighted=False), graph)
    assert {path for path in gone | stay if path.exists()} == stay


def test_unfinished_files_that_cannot_be_removed_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As another user's in a folder of many users; the graph is changed nevertheless."""
    graph, line = tmp_path / "g.h5", written(tmp_path / "a.txt", ["0 1", "1 2"])
    convert(source(line, weighted=False), graph, ConvertOptions())
    ended, unlink = subprocess.Popen(["true"]), Path.unlink
    ended.wait()
    left = left_of(graph, ended.pid, process_space())

    def refused(path: Path, missing_ok: bool = False) -> None:
        if path == left:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(path))
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", refused)
    assert append(source(line, weighted=False), graph).edges == 4
    assert left.exists()
