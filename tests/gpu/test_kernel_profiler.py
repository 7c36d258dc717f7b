"""A watched run on a GPU: kernels and copies lie on the host's clock, one after another, and add up."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from penstock.engine.session import Session
from penstock.storage.base.timeline import Timeline
from penstock.tools.report.read_metrics import read
from penstock.tools.run.metrics import open_metrics
from penstock.transfer.devices import cuda
from support.graphs import in_memory, skewed, weighed
from support.oracles import EdgeList
from support.program_cases import check, program_of

pytestmark = pytest.mark.gpu
EDGES = weighed(EdgeList(5_000, *skewed(5_000, 400_000, 3), None, False), "uint8")


@pytest.mark.parametrize("route", ["auto", "filter", "compaction", "zero-copy"])
def test_spans_of_a_gpu_lie_in_the_run_and_do_not_overlap(tmp_path: Path, route: str) -> None:
    timeline, path = Timeline(), tmp_path / "metrics.jsonl"
    options = {"device": "cuda:0", "route": route, "device_edge_memory": 3 << 20, "partition_bytes": 1 << 17}
    options["direction"] = "push"
    with open_metrics(path) as metrics, Session(in_memory(EDGES), timeline=timeline, **options) as session:
        metrics.begin(session, {"program": "sssp"})
        steps = session.steps(program_of("sssp", EDGES))
        while True:
            try:
                metrics.note(next(steps))
            except StopIteration as end:
                result = end.value
                break
        metrics.end({"seconds": result.seconds})
    check("sssp", EDGES, result.fields)
    spans = list(timeline.spans())
    run = [span for span in spans if span.track == "iterations"]
    first, last = run[0].began, run[-1].began + run[-1].seconds
    for group in ("kernel", "link"):
        mine = sorted((span for span in spans if span.group == group), key=lambda span: span.began)
        assert mine or group == "link"
        for one, other in pairwise(mine):
            assert other.began >= one.began + one.seconds - 2e-5
        inside = [span for span in mine if first - 1e-3 <= span.began <= last + 1e-3]
        assert len(inside) >= 0.8 * len(mine)
    tasks = [task for record in result.records for task in record.tasks]
    copied = sum(span.seconds for span in spans if span.group == "link")
    assert copied == pytest.approx(sum(task.link_seconds for task in tasks), rel=0.05, abs=1e-4)
    (told,) = read(path)
    assert json.loads(path.read_text().splitlines()[0])["device"]["kind"] == "cuda"
    assert told.verdict.sentence


def test_nvtx_ranges_nest() -> None:
    nvtx = cuda.nvtx()
    if nvtx is None:
        pytest.skip("CuPy was built without NVTX")
    nvtx.RangePush("outer")
    nvtx.RangePush("inner")
    nvtx.RangePop()
    nvtx.RangePop()
