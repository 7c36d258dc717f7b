"""Parts of graphs: which vertices stay, what they are called then, and what a part holds; against plain Python."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.engine import Graph, convert, from_edges
from penstock.storage.base.errors import BudgetError, InputError, RunError
from penstock.storage.convert.subgraph.chosen_vertices import VertexBitmap, listed_in_file, listed_vertices
from penstock.storage.convert.subgraph.edge_filter import EdgeFilter
from penstock.storage.convert.subgraph.extract import (
    ExtractOptions,
    count_extracted,
    extract_to_file,
    extract_to_memory,
)
from penstock.storage.ingest.core.source import IngestOptions
from penstock.storage.read.verify import verify
from penstock.storage.tables import property_file
from penstock.storage.tables.properties import open_properties
from support.graphs import on_disk, shape

ENDS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40)


def rows(graph: Graph) -> Counter[Any]:
    """The edges of a graph, in the ids of its input."""
    columns = pa.table(graph).to_pydict().values()
    return Counter(zip(*columns, strict=True))


def some(graph: Graph, names: set[Any]) -> VertexBitmap:
    """The vertices of these ids."""
    return VertexBitmap.of(
        graph.vertices, lambda a, b: np.array([n in names for n in graph.original_ids_in(a, b).tolist()])
    )


@settings(max_examples=30)
@given(mask=st.lists(st.booleans(), max_size=300), seed=st.integers(0, 9))
def test_a_set_counts_its_members(mask: list[bool], seed: int) -> None:
    wanted = np.array(mask, np.bool_)
    found = VertexBitmap.of(len(mask), lambda first, last: wanted[first:last])
    other = np.random.default_rng(seed).random(len(mask)) < 0.5
    both = found & VertexBitmap.of(len(mask), lambda first, last: other[first:last])
    assert both.mask(0, len(mask)).tolist() == (wanted & other).tolist()
    assert len(found) == int(wanted.sum())
    assert [found.below(v) for v in range(len(mask) + 1)] == [0, *np.cumsum(wanted).tolist()]
    members = np.flatnonzero(wanted)
    assert found.ranks(members).tolist() == list(range(len(members)))
    assert found.holds(np.arange(len(mask))).tolist() == mask
    assert len(VertexBitmap.whole(len(mask))) == len(mask)


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("name", ["skewed", "parallel", "loops", "star-in", "isolated"])
def test_the_edges_between_chosen_vertices_stay(name: str, directed: bool, tmp_path: Path) -> None:
    edges = shape(name, directed=directed, weights="float32")
    graph = on_disk(edges, tmp_path / "g.h5")
    bounds = EdgeFilter.between("weight", 0.2, 0.9, graph)
    names = {v for v in range(edges.vertices) if v % 3}
    assert edges.weights is not None
    kept = Counter(
        (*((u, v) if directed else sorted((u, v))), w)
        for u, v, w in zip(edges.sources.tolist(), edges.targets.tolist(), edges.weights.tolist(), strict=True)
        if {u, v} <= names and np.float32(0.2) <= w <= np.float32(0.9)
    )
    chosen, options = some(graph, names), ExtractOptions(where=bounds)
    report = extract_to_file(graph, chosen, tmp_path / "part.h5", options)
    part = Graph.open(tmp_path / "part.h5")
    for one in (part, extract_to_memory(graph, chosen, options)):
        assert rows(one) == kept
        assert one.original_ids_in(0, one.vertices).tolist() == sorted(names)
        assert (one.directed, one.weight_dtype, one.input_edges) == (directed, np.float32, kept.total())
        assert (one.into is None) == (graph.into is None)
    counted = count_extracted(graph, chosen, options)
    assert (
        (counted.vertices, counted.input_edges) == (report.vertices, report.input_edges) == (len(names), kept.total())
    )
    ends = {v for edge in kept for v in edge[:2]}
    assert part.without_edges == len(names - ends)
    assert verify(tmp_path / "part.h5").whole
    fewer = extract_to_memory(graph, chosen, ExtractOptions(where=bounds, drop_isolated=True))
    assert fewer.original_ids_in(0, fewer.vertices).tolist() == sorted(ends)


@settings(max_examples=15)
@given(ends=ENDS, left=st.sets(st.integers(0, 9)), layout=st.sampled_from(["rows", "list"]), undirected=st.booleans())
def test_names_and_lists(ends: list[tuple[int, int]], left: set[int], layout: str, undirected: bool) -> None:
    names = [(f"v{u}", f"v{v}") for u, v in ends]
    graph = from_edges(names, layout=layout, undirected=undirected)
    part = extract_to_memory(graph, some(graph, {f"v{v}" for v in left}), ExtractOptions())
    same = (lambda edge: tuple(sorted(edge))) if undirected else tuple
    kept = Counter(same(edge) for edge in names if {int(name[1]) for name in edge} <= left)
    assert Counter(map(same, rows(part).elements())) == kept
    assert part.layout == layout


def test_a_list_stays_a_list_and_names_stay(tmp_path: Path) -> None:
    raw = tmp_path / "g.csv"
    raw.write_text("from,to,weight\nbob,ann,3\nann,cy,1\ncy,bob,2\nann,dan,9\n")
    for layout in ("list", "rows"):
        graph = convert(raw, tmp_path / f"{layout}.h5", renumber=True, weights=True, layout=layout)
        chosen = some(graph, {"ann", "bob", "cy"})
        extract_to_file(
            graph,
            chosen,
            tmp_path / f"{layout}-part.h5",
            ExtractOptions(where=EdgeFilter.between("weight", 2, 9, graph)),
        )
        part = Graph.open(tmp_path / f"{layout}-part.h5")
        assert rows(part) == Counter([("bob", "ann", 3), ("cy", "bob", 2)])
        assert (part.layout, part.neighbors("cy").tolist() if layout == "rows" else ["bob"]) == (layout, ["bob"])
        dry = count_extracted(
            graph, chosen, ExtractOptions(drop_isolated=True, where=EdgeFilter.between("weight", 3, 3, graph))
        )
        assert (dry.vertices, dry.edges) == (2, 1)


def test_two_sides_stay_apart(tmp_path: Path) -> None:
    graph = from_edges([1, 2, 2], [1, 1, 5], bipartite=True)
    part = extract_to_memory(graph, some(graph, {1, 5}), ExtractOptions())
    assert (part.left, part.original_ids_in(0, 3).tolist(), rows(part)) == (1, [1, 1, 5], Counter([(1, 1)]))


@pytest.mark.parametrize("named", [True, False])
def test_listed_vertices(named: bool, tmp_path: Path) -> None:
    graph = from_edges([("a", "b"), ("b", "c")]) if named else from_edges([(5, 70), (70, 900)], renumber=True)
    ids = ["c", "a"] if named else [900, 5]
    file = tmp_path / "ids.txt"
    file.write_text("".join(f"{name}\n" for name in [*ids, ids[0]]))
    reading = IngestOptions()
    for found in (
        listed_vertices(graph, ids, "ids", skip_missing=False),
        listed_in_file(graph, file, reading, skip_missing=False),
    ):
        assert found.mask(0, 3).tolist() == [True, False, True]
    missing = [*ids, "zoe" if named else 7]
    with pytest.raises(InputError, match=r"1 of the ids are not in the graph, such as (zoe|7); --skip-missing"):
        listed_vertices(graph, missing, "ids", skip_missing=False)
    assert len(listed_vertices(graph, missing, "ids", skip_missing=True)) == 2
    assert len(listed_vertices(graph, [], "ids", skip_missing=True)) == 0


@pytest.mark.parametrize("named", [False, True])
def test_a_list_has_half_of_the_budget(named: bool, tmp_path: Path) -> None:
    name = "v{}" if named else "{}"
    graph = from_edges([(name.format(0), name.format(1))] if named else [(0, 1)])
    (tmp_path / "ids.txt").write_text("".join(f"{name.format(number)}\n" for number in range(1 << 18)))
    few, many = IngestOptions(host_memory=8 << 20), IngestOptions(host_memory=100 << 20)
    assert len(listed_in_file(graph, tmp_path / "ids.txt", many, skip_missing=True)) == 2
    with pytest.raises(InputError, match=r"the first [\d,]+ ids take .* of memory, .* raise --host-memory"):
        listed_in_file(graph, tmp_path / "ids.txt", few, skip_missing=True)


@pytest.mark.parametrize("wrong", [[-1], ["x"], [1.5, None], np.array([-4])])
def test_what_is_no_id_is_refused(wrong: Any) -> None:
    graph = from_edges([(0, 1)])
    with pytest.raises(InputError, match="whole numbers from 0 on"):
        listed_vertices(graph, wrong, "ids", skip_missing=True)


def test_too_little_memory_is_refused_and_a_failure_leaves_nothing(tmp_path: Path) -> None:
    graph = on_disk(shape("skewed"), tmp_path / "g.h5")
    chosen = VertexBitmap.whole(graph.vertices)
    with pytest.raises(BudgetError, match=r"--host-memory \d+MiB or more"):
        extract_to_file(graph, chosen, tmp_path / "part.h5", ExtractOptions(host_memory=1 << 20))
    with pytest.raises(InputError, match="edges have no 'weight'"):
        extract_to_file(
            graph, chosen, tmp_path / "part.h5", ExtractOptions(where=EdgeFilter.between("weight", 0, 1, graph))
        )
    with pytest.raises(InputError, match="is an input too"):
        extract_to_file(graph, chosen, tmp_path / "g.h5", ExtractOptions(force=True))

    def stop(stage: str, done: int, total: int) -> None:
        raise RunError(f"stopped in {stage} at {done} of {total}")

    with pytest.raises(RunError, match="stopped in out"):
        extract_to_file(graph, chosen, tmp_path / "part.h5", ExtractOptions(watch=stop))
    assert [path.name for path in tmp_path.iterdir()] == ["g.h5"]


def test_a_part_of_a_graph_in_another_order_is_sound(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("0 1\n1 2\n3 2\n3 4\n3 5\n")
    graph = convert(tmp_path / "a.txt", tmp_path / "g.h5", order="degree")
    extract_to_file(graph, some(graph, {2, 3, 5}), tmp_path / "part.h5", ExtractOptions())
    assert verify(tmp_path / "part.h5").problems == []


def people(folder: Path, order: str) -> Graph:
    """A graph whose vertices have ages."""
    (folder / "edges.csv").write_text("from,to\ncy,bob\nann,cy\ncy,dan\n")
    (folder / "people.csv").write_text("id,age\nann,31\nbob,42\ncy,\ndan,64\n")
    return convert(folder / "edges.csv", folder / "g.h5", vertices=folder / "people.csv", order=order, renumber=True)


def test_the_copy_of_properties_is_in_the_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = people(tmp_path, "none")
    monkeypatch.setattr(property_file, "COPY_BYTES", 900 << 20)
    with pytest.raises(BudgetError, match=r"needs 900.* MiB: .* properties, .*--host-memory 9\d\dMiB or more"):
        extract_to_file(graph, VertexBitmap.whole(4), tmp_path / "part.h5", ExtractOptions(host_memory=800 << 20))


@pytest.mark.parametrize("order", ["none", "degree"])
def test_properties_of_vertices_stay(order: str, tmp_path: Path) -> None:
    graph = people(tmp_path, order)
    extract_to_file(graph, some(graph, {"ann", "cy", "dan"}), tmp_path / "part.h5", ExtractOptions())
    part = Graph.open(tmp_path / "part.h5")
    assert part.properties == graph.properties
    ages = open_properties(part.path, part.provenance, part.vertices).values("age", np.arange(3))
    assert ages == [31, None, 64]
    plain = from_edges([("ann", "cy")]).save(tmp_path / "plain.h5")
    extract_to_file(plain, VertexBitmap.whole(2), tmp_path / "part.h5", ExtractOptions(force=True))
    assert not (tmp_path / "part.vertices.parquet").exists()
