"""Measure a graph on disk that host memory does not hold, on the GPU and on the CPU cores, with direct reads.

    python tests/gpu/disk_resident.py GRAPH.h5 SHARE [program ...]

SHARE: host memory for edges as a share of the decoded edges of one adjacency; state and index come on top. Prints, for
every run: seconds an iteration, bytes read and their rate, seconds of decoding (of all threads) and of waiting. A tool
of the developers; see measure.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

if not hasattr(np, "row_stack"):
    np.row_stack = np.vstack

from penstock.engine.program.program import Program
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.wcc import WCC
from penstock.engine.session import Session
from penstock.storage.format.graph import Graph

STATE = 60  # bytes a vertex for state, index and ids, at most


def programs(graph: Graph, names: list[str]) -> list[tuple[str, Program]]:
    degrees = graph.out.index().degrees(0, graph.vertices)
    source = int(np.random.default_rng(1).choice(np.flatnonzero(degrees > 0)))
    known: dict[str, Program] = {
        "pagerank": PageRank(tol=0, max_iter=5, weight=False), "bfs": BFS(source), "sssp": SSSP(source), "wcc": WCC()
    }  # fmt: skip
    return [(name, known[name]) for name in names or known]


def one(graph: Graph, device: str, name: str, program: Program, memory: int) -> tuple[str, dict[str, Any]]:
    options = {"device": device, "host_memory": memory, "direct_io": True}
    if device != "cpu":
        options["device_edge_memory"] = memory // 4
    with Session(graph, **options) as session:
        session.run(program)
        result = session.run(program)
    tasks = [task for record in result.records for task in record.tasks]
    disk, link = sum(t.bytes_disk for t in tasks), sum(t.bytes_link for t in tasks)
    each = result.seconds / max(1, result.iterations)
    rate = disk / result.seconds / 1e9
    return (
        f"{device:7s} {name:9s} {result.seconds:7.3f} s, {result.iterations} iterations of {each * 1e3:8.1f} ms, disk "
        f"{disk / 1e9:6.2f} GB at {rate:5.2f} GB/s, link {link / 1e9:6.2f} GB, decode "
        f"{sum(t.decode_seconds for t in tasks):6.2f} s, waited {sum(t.wait_seconds for t in tasks):6.2f} s"
    ), result.fields


def main() -> None:
    path, share, *names = sys.argv[1:]
    graph = Graph.open(Path(path))
    edges = graph.edges * (graph.out.neighbor_dtype.itemsize)
    memory = int(float(share) * edges) + STATE * graph.vertices + (512 << 20)
    lines = [f"{path}: {graph.vertices:,} vertices, {graph.edges:,} entries, {graph.file_bytes / 1e9:.2f} GB on disk, "
             f"host memory {memory / 1e9:.2f} GB"]  # fmt: skip
    print(lines[0], flush=True)
    for name, program in programs(graph, names):
        answers = []
        for device in ("cuda:0", "cpu"):
            text, fields = one(graph, device, name, program, memory)
            lines.append(text)
            print(text, flush=True)
            answers.append(fields)
        for field, values in answers[0].items():
            other = answers[1][field]
            same = np.allclose(values, other, rtol=1e-9) if values.dtype.kind == "f" else np.array_equal(values, other)
            lines.append(f"        {name}.{field}: {'equal' if same else 'WRONG'}")
            print(lines[-1], flush=True)
    print("\n".join(["", "table", *lines]))


if __name__ == "__main__":
    main()
