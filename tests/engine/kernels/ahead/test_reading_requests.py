"""What is compiled ahead for a run on a device is what reading a graph needs."""

from __future__ import annotations

from pathlib import Path

from support.faults import python

RUN = """
import sys
from penstock import convert, run
from penstock.storage.base.missing_code import when_asked
from penstock.storage.companion.process import request_for
from penstock.storage.format.graph import Graph
from penstock.engine.kernels.ahead.announce import reading_requests

convert(sys.argv[1], sys.argv[2])
graph, asked = Graph.open(sys.argv[2]), []
when_asked(lambda entry, origin, signature: asked.append(request_for(origin, signature)) if origin else None)
run("bfs", sys.argv[2], source=1, device="emulated", direction="push")
listed = reading_requests(graph.vertex_dtype, graph.out.degrees.spec.kind)
print([one for one in listed if one not in asked])
"""


def test_a_run_on_a_device_asks_for_all_that_is_listed(tmp_path: Path) -> None:
    edges = tmp_path / "edges.txt"
    edges.write_text("".join(f"{v % 90 + 1} {v % 300 + 1}\n" for v in range(2000)))
    child = python(RUN, str(edges), str(tmp_path / "graph.h5"))
    assert (child.stdout, child.stderr) == ("[]\n", "")
