"""Lists for tests: small chunks and blocks, and what a list holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
from penstock.storage.encoding.edge_keys import sources_of_keys, targets_of_keys
from penstock.storage.format.graph import Graph
from penstock.storage.read.reader import Reader
from support.conversions import Edge

CHUNK, BLOCK = 8, 4
FLOOR = "penstock.storage."
CHUNKED = ("convert.list_writer", "convert.append")
BLOCKED = (*CHUNKED, "format.graph", "format.schema", "format.csr_input", "read.checks")


@contextmanager
def small_chunks() -> Iterator[None]:
    """Lists have 8 edges a chunk and 4 a block."""
    with ExitStack() as stack:
        for name in CHUNKED:
            stack.enter_context(mock.patch(f"{FLOOR}{name}.CHUNK_EDGES", CHUNK))
        for name in BLOCKED:
            stack.enter_context(mock.patch(f"{FLOOR}{name}.LIST_BLOCK", BLOCK))
        stack.enter_context(mock.patch(f"{FLOOR}format.adjacency_writer.CHUNK_VERTICES", CHUNK))
        yield


def edges_of(graph: Graph) -> list[Edge]:
    """The edges of a list in their order, in original ids."""
    out, original = graph.out, graph.original_ids()
    if out.arrays is not None:
        keys, weights = out.arrays
    else:
        keys = np.empty(out.edges, np.uint64)
        weights = None if out.weight_dtype is None else np.empty(out.edges, out.weight_dtype)
        with Reader(graph, decode_threads=1) as reader:
            reader.fetch_all(out, keys, weights)
    ends = [part(keys) for part in (sources_of_keys, targets_of_keys)]
    if original is not None:
        ends = [original[part] for part in ends]
    values = [None] * len(keys) if weights is None else weights.tolist()
    return list(zip(*(part.tolist() for part in ends), values, strict=True))


def check_facts(graph: Graph) -> None:
    """Spans, degrees and self-loops are those of the edges."""
    index = graph.original_ids()
    number = {} if index is None else {name: vertex for vertex, name in enumerate(index.tolist())}
    edges = [(number.get(one, one), number.get(two, two)) for one, two, _ in edges_of(graph)]
    blocks = [edges[at : at + BLOCK] for at in range(0, len(edges), BLOCK)]
    bounds = [[f(pair[end] for pair in block) for end in (0, 1) for f in (min, max)] for block in blocks]
    assert graph.spans().tolist() == bounds
    assert graph.out.vertices == len(blocks) == graph.out.index().vertices
    assert graph.out.index().degrees(0, len(blocks)).tolist() == [len(block) for block in blocks]
    assert graph.listed is not None
    assert graph.listed.self_loops == sum(one == two for one, two in edges)
    ends = {"out": [one for one, _ in edges], "in": [two for _, two in edges]}
    if not graph.directed:
        ends = {"out": ends["out"] + [two for one, two in edges if one != two]}
    for direction, named in ends.items():
        found = graph.degree_index(direction)
        assert found is not None
        assert found.degrees(0, graph.vertices).tolist() == np.bincount(named, minlength=graph.vertices).tolist()
    touched = {end for edge in edges for end in edge}
    assert graph.path is None or graph.without_edges == graph.vertices - len(touched)


def opened(path: Path) -> Graph:
    """A list on disk, its facts checked."""
    graph = Graph.open(path)
    assert graph.layout == "list"
    check_facts(graph)
    return graph
