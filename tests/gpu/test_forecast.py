"""Forecasts on a real device: what is told to be there is what a run allocates, and telling it brings no edge."""

from __future__ import annotations

from pathlib import Path

import pytest
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.session import Session
from support.graphs import on_disk, skewed
from support.oracles import EdgeList

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("share", [None, 0.4])
def test_what_is_foretold_is_what_is_held(tmp_path: Path, share: float | None) -> None:
    graph = on_disk(EdgeList(5000, *skewed(5000, 60_000, 5), None, True), tmp_path / "g.h5", chunk_edges=1 << 10)
    options = {} if share is None else {"device_edge_memory": int(share * graph.edges * 4), "partition_bytes": 1 << 12}
    with Session(graph, device="cuda:0", **options) as session:
        before = session.device.used_bytes
        told = session.forecast(PageRank(tol=0, max_iter=3, weight=False))
        assert session.device.used_bytes == before
        records = session.run(PageRank(tol=0, max_iter=3, weight=False)).records
        cache = session._equipment.pipeline.cache
    assert told.device == "cuda:0"
    assert told.placement is not None
    assert told.placement.whole == (share is None)
    assert told.placement.parts["cache"] == cache.nbytes
    moved = [sum(task.bytes_link for task in record.tasks) for record in records]
    assert (max(moved) == 0) == (told.later.link_bytes == 0) == (share is None)
