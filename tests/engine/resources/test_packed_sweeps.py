"""Sweeps on the cores that decode what they read give what sweeps along plain edges give, wherever the pieces are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import Graph
from penstock.engine.program.program import Program
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.katz import Katz
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.resources.host_resources import HostResources
from penstock.engine.session import Session
from penstock.storage.base.errors import RunError
from support.covering import covering
from support.graphs import in_memory, on_disk, shape
from support.small_host import CHUNK, packed_sweeps

EDGES = shape("skewed")


@pytest.fixture(name="graph")
def graph_on_disk(tmp_path: Path) -> Graph:
    return on_disk(EDGES, tmp_path / "g.h5", chunk_edges=CHUNK)


def ranks(session: Session, program: Program | None = None) -> dict[str, Any]:
    return dict(session.run(program or PageRank(tol=0.0, max_iter=5)).fields)


def is_packed(session: Session) -> bool:
    assert session._equipment is not None
    return session._equipment.plan.packed is not None


@covering(
    "share, chunks, program",
    [0, 0.4, 1],
    [1, 3],
    [PageRank(tol=0.0, max_iter=5), Katz(tol=0.0, max_iter=5, alpha=1e-3)],
)
def test_answers_are_those_of_plain_edges(
    graph: Graph, program: Program, chunks: int, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Session(in_memory(EDGES), device="cpu", threads=2) as session:
        right = ranks(session, program)
    packed_sweeps(monkeypatch, chunks, share)
    with Session(graph, device="cpu", threads=2) as session:
        for _ in range(2):
            result = session.run(program)
            for name, values in right.items():
                assert np.allclose(result.fields[name], values, rtol=0, atol=1e-15)
        assert is_packed(session)
        read = sum(task.bytes_disk for record in result.records for task in record.tasks)
        assert (read == 0) == (share == 1)
        session.run(BFS(source=0))
        assert not is_packed(session)


def test_a_run_and_its_forecast_have_the_same_pieces(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    packed_sweeps(monkeypatch, 2, 0.5)
    with Session(graph, device="cpu") as session:
        ranks(session)
        assert session._equipment is not None
        pipeline = session._equipment.pipeline
        paper = HostResources(graph, session.config, session._equipment.needs, session.device, paper=True).pipeline
        for one, other in ((pipeline.cache, paper.cache), (pipeline.options, paper.options)):
            assert type(one) is type(other)
        assert paper.options == pipeline.options
        assert paper.cache.nbytes == pipeline.cache.nbytes
        assert session._equipment.plan.held.edges < session._equipment.needs.edge_bytes


@pytest.mark.parametrize("program", [BFS(source=0), PageRank(tol=0.0, max_iter=2)])
def test_edges_stay_plain_for_searches_and_where_weights_count(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed_sweeps(monkeypatch, 2, 0.5)
    weighted = on_disk(shape("skewed", weights="uint8"), tmp_path / "w.h5", chunk_edges=CHUNK)
    with Session(weighted, device="cpu") as session:
        session.run(program)
        assert not is_packed(session)


def test_an_id_of_no_vertex_ends_the_run(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """A payload that is sound, of which an id is beyond the last vertex."""
    packed_sweeps(monkeypatch, 2, 1)
    with Session(graph, device="cpu", threads=2) as session:
        ranks(session)
        assert session._equipment is not None
        pieces = session._equipment.pipeline.cache
        assert pieces is not None
        piece = pieces.arrays("in", 1, 1, False)[0]
        piece[1], piece[4] = 8, 255  # the bits of an id, and the first id of the first block
        with pytest.raises(RunError, match=r"chunk 2 .*verify"):
            ranks(session)
