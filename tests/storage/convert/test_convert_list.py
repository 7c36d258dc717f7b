"""A list holds the edges of its input in their order; sorted later it is the graph that the input makes."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.convert.convert import convert
from penstock.storage.convert.from_arrays import from_edges
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.format.fingerprint import fingerprint
from penstock.storage.format.graph import Graph
from penstock.storage.ingest.core.edges import EdgeBatch
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.ingest.formats.binary import PairSource
from penstock.storage.ingest.open_source import open_source
from penstock.storage.read.verify import verify
from support.conversions import Edge, Given
from support.faults import small_disk
from support.lists import check_facts, edges_of, opened, small_chunks

EDGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 300)), max_size=40)
SIZES = st.lists(st.integers(0, 15), max_size=3)
OPTIONS = st.fixed_dictionaries(
    {"undirected": st.booleans(), "drop_self_loops": st.booleans(), "renumber": st.sampled_from([None, False, True])}
)


def kept(edges: list[Edge], options: dict[str, Any]) -> list[Edge]:
    return [edge for edge in edges if edge[0] != edge[1] or not options.get("drop_self_loops")]


@settings(max_examples=12)
@given(EDGES, SIZES, OPTIONS, st.booleans(), st.integers(0, 2))
def test_a_list_keeps_its_input_and_is_sorted_later(
    tmp_path_factory: pytest.TempPathFactory,
    edges: list[Edge],
    sizes: list[int],
    options: dict[str, Any],
    weighted: bool,
    stripes: int,
) -> None:
    folder = tmp_path_factory.mktemp("list")
    edges = [(one, two, float(value) if weighted else None) for one, two, value in edges]
    places = tuple(folder / str(number) for number in range(stripes))
    for place in places:
        place.mkdir()
    path, settled = folder / "g.h5", {"threads": 1, **options}
    with small_chunks():
        made = ConvertOptions(layout="list", stripes=places, **settled)
        report = convert(Given(edges, sizes), path, made)
        graph = opened(path)
        assert verify(path, threads=1).problems == []
        assert edges_of(graph) == kept(edges, options)
        assert (report.input_edges, graph.input_edges, graph.edges) == (len(edges), len(edges), report.edges)
        assert graph.directed is not options["undirected"]
        again = from_edges(
            [one for one, _, _ in edges],
            [two for _, two, _ in edges],
            [value for _, _, value in edges] if weighted and edges else None,
            layout="list",
            **options,
        )
        assert edges_of(again) == kept(edges, options)
        assert (again.vertices, again.weight_dtype) == (graph.vertices, graph.weight_dtype if edges else None)
        check_facts(again)
        convert(open_source([path], None, IngestOptions()), folder / "sorted.h5", ConvertOptions(threads=1))
        convert(Given(edges, sizes), folder / "direct.h5", ConvertOptions(**settled))
    found, direct = (Graph.open(folder / name) for name in ("sorted.h5", "direct.h5"))
    if weighted and edges and not kept(edges, options):
        return  # a list without edges has no weights
    assert found.edges == direct.edges
    assert fingerprint(found) == fingerprint(direct)
    assert (found.original_ids() is None) == (direct.original_ids() is None)


def test_ids_that_are_strings_are_kept(tmp_path: Path) -> None:
    text = tmp_path / "in.txt"
    text.write_text("b a 3\nc b 1.5\na a 2\n")
    reading = IngestOptions(string_ids=True, weights=True)
    with small_chunks():
        convert(open_source([text], None, reading), tmp_path / "g.h5", ConvertOptions(layout="list"))
        graph = opened(tmp_path / "g.h5")
        assert edges_of(graph) == [("b", "a", 3.0), ("c", "b", 1.5), ("a", "a", 2.0)]
        source = open_source([tmp_path / "g.h5"], None, IngestOptions())
        convert(source, tmp_path / "sorted.h5", ConvertOptions(order="degree"))
        convert(open_source([text], None, reading), tmp_path / "direct.h5", ConvertOptions(order="degree"))
    found, direct = (Graph.open(tmp_path / name) for name in ("sorted.h5", "direct.h5"))
    assert fingerprint(found) == fingerprint(direct)
    assert found.provenance["options"] == direct.provenance["options"]


def test_both_sides_keep_their_ids(tmp_path: Path) -> None:
    edges: list[Edge] = [(5, 5, None), (7, 5, None), (5, 9, None)]
    with small_chunks():
        convert(Given(edges, []), tmp_path / "g.h5", ConvertOptions(layout="list", bipartite=True))
        graph = opened_sides(tmp_path / "g.h5")
        assert edges_of(graph) == edges
        assert verify(tmp_path / "g.h5").problems == []
        source = open_source([tmp_path / "g.h5"], None, IngestOptions())
        convert(source, tmp_path / "sorted.h5", ConvertOptions())
        convert(Given(edges, []), tmp_path / "direct.h5", ConvertOptions(bipartite=True))
    assert fingerprint(Graph.open(tmp_path / "sorted.h5")) == fingerprint(Graph.open(tmp_path / "direct.h5"))


def opened_sides(path: Path) -> Graph:
    graph = Graph.open(path)
    assert (graph.left, graph.vertices) == (2, 4)
    return graph


def test_degrees_are_left_out_where_memory_is_short(tmp_path: Path) -> None:
    edges: list[Edge] = [(0, 1, None), (5_000_000, 2, None)]
    options = ConvertOptions(layout="list", host_memory=32 << 20, renumber=False)
    report = convert(Given(edges, []), tmp_path / "g.h5", options)
    graph = Graph.open(tmp_path / "g.h5")
    assert graph.degree_index("out") is graph.degree_index("in") is None
    assert report.without_edges is graph.without_edges is None
    assert edges_of(graph) == edges
    assert verify(tmp_path / "g.h5").problems == []


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"direction": "both"}, "--direction both"),
        ({"symmetrize": True}, "--symmetrize"),
        ({"dedupe": "min"}, "--dedupe min"),
        ({"order": "hubs"}, "--order hubs"),
        ({"encoding": "plain"}, "--encoding plain"),
    ],
)
def test_what_needs_rows_is_refused(options: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=f"--layout list does not take {named}: "):
        ConvertOptions(layout="list", **options)


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([(1 << 32, 1, None)], "vertices below 2\\^32, and there is 4294967296; --renumber"),
        ([(1, 2, float("nan"))], "weights must be finite"),
        ([(0, 1, None), (1 << 30, 1, None)], "--renumber numbers"),
    ],
)
def test_edges_that_a_list_cannot_hold_are_refused(tmp_path: Path, edges: list[Edge], message: str) -> None:
    with pytest.raises(InputError, match=message):
        convert(Given(edges, [1]), tmp_path / "g.h5", ConvertOptions(layout="list", renumber=False))
    assert list(tmp_path.iterdir()) == []


def test_sorted_rows_are_no_input(tmp_path: Path) -> None:
    convert(Given([(0, 1, None)], []), tmp_path / "g.h5", ConvertOptions())
    with pytest.raises(InputError, match="sorted rows already"):
        open_source([tmp_path / "g.h5"], None, IngestOptions())
    (tmp_path / "other.h5").write_bytes(b"\x89HDF\r\n\x1a\n")
    with pytest.raises((InputError, RunError)):
        open_source([tmp_path / "other.h5"], None, IngestOptions())


def test_original_ids_stay(tmp_path: Path) -> None:
    convert(Given([(7, 3, None)], []), tmp_path / "g.h5", ConvertOptions(layout="list", renumber=True))
    source = open_source([tmp_path / "g.h5"], None, IngestOptions())
    with pytest.raises(InputError, match="keep their ids"):
        convert(source, tmp_path / "s.h5", ConvertOptions(renumber=True))
    convert(source, tmp_path / "l.h5", ConvertOptions(layout="list"))
    assert edges_of(Graph.open(tmp_path / "l.h5")) == [(7, 3, None)]


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    dice = np.random.default_rng(1)
    ends = dice.integers(0, 1000, (20_000, 2)).tolist()
    with small_disk(tmp_path / "disk", 24 << 10) as disk:
        with pytest.raises(RunError, match="free space"):
            convert(Given([(*pair, None) for pair in ends], []), disk / "g.h5", ConvertOptions(layout="list"))
        assert list(disk.iterdir()) == []


PAIRS = np.random.default_rng(1).integers(0, 1 << 20, (20_000, 2)).astype("<u4") * 3
SMALL = IngestOptions(host_memory=32 << 20, threads=2)
"""Of blocks of 64 KiB and more: the pairs are several."""


def other_edge(path: Path) -> None:
    """One edge that is in the file becomes another one that is, with the times that the file had."""
    times = path.stat()
    pairs = PAIRS.copy()
    pairs[-1] = pairs[0]
    path.write_bytes(pairs.tobytes())
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@pytest.mark.parametrize("options", [{}, {"renumber": True}, {"layout": "rows", "order": "degree"}])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (other_edge, "raw.bin was changed while it was read; convert it again"),
        (lambda path: path.write_bytes((PAIRS + 1).tobytes()), "raw.bin was changed while it was read"),
        (lambda path: path.write_bytes(PAIRS[:9000].tobytes()), "raw.bin became shorter while it was read"),
        (Path.unlink, "raw.bin does not exist"),
    ],
)
def test_a_file_that_changes_between_its_readings_is_refused(
    change: Callable[[Path], None], message: str, options: dict[str, Any], tmp_path: Path
) -> None:
    """Edges wait for all ids in their file, which is read twice: a graph that was there stays, and nothing else."""

    class Changing(PairSource):
        def batches(self) -> Generator[EdgeBatch]:
            yield from super().batches()
            change(raw)

    raw, graph = tmp_path / "raw.bin", tmp_path / "g.h5"
    raw.write_bytes(PAIRS.tobytes())
    graph.write_bytes(b"an older one")
    with pytest.raises((InputError, RunError), match=message):
        convert(Changing([raw], "<u4", SMALL), graph, ConvertOptions(**{"layout": "list", **options}, force=True))
    assert graph.read_bytes() == b"an older one"
    assert {path.name for path in tmp_path.iterdir()} <= {"raw.bin", "g.h5"}


@pytest.mark.parametrize("options", [{"layout": "list"}, {"order": "paths"}, {"renumber": True, "undirected": True}])
def test_edges_wait_in_plain_files_or_in_the_log(options: dict[str, Any], tmp_path: Path) -> None:
    """A file that is replaced by its copy may be read again; parts of an input may be compressed."""
    plain, packed, whole = tmp_path / "a.bin", tmp_path / "b.bin.gz", tmp_path / "all.npy"
    plain.write_bytes(PAIRS[:13_000].tobytes())
    packed.write_bytes(gzip.compress(PAIRS[13_000:].tobytes()))
    np.save(whole, PAIRS)
    for inputs, form, name in (([plain, packed], "binary32", "parts.h5"), ([whole], None, "whole.h5")):
        convert(open_source(inputs, form, SMALL), tmp_path / name, ConvertOptions(**options))
    parts, all_edges = Graph.open(tmp_path / "parts.h5"), Graph.open(tmp_path / "whole.h5")
    assert fingerprint(parts) == fingerprint(all_edges)
    assert np.array_equal(np.asarray(parts.original_ids()), np.asarray(all_edges.original_ids()))
    if parts.layout == "list":
        assert edges_of(parts) == edges_of(all_edges)
