"""Steps a second of random walks on R-MAT 22: on the cores, on a GPU that keeps all edges, and with a quarter of them.

    bash tests/gpu/on_device.sh python3 tests/gpu/walk_rates.py > $OUT/walk_rates.txt

Every edge is in the rows of both its ends. Walks are read block by block and dropped; the best of some turns counts.
`a quarter` chooses between copies and reads in place, `copied` copies always. `made` are the seconds in which walks
were made and brought to the host, `all` those of a call, which also loads rows.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from benchmarks.runner import prepare_cuda  # noqa: E402 - after the path

prepare_cuda()

from benchmarks.graphs import rmat_by_gpu  # noqa: E402 - after it is prepared
from penstock.engine import Graph, Session  # noqa: E402
from penstock.transfer.values.rates import Rates  # noqa: E402

KINDS: dict[str, dict[str, Any]] = {
    "uniform": {"weight": False},
    "weighted": {},
    "node2vec": {"weight": False, "p": 0.5, "q": 2.0},
}


def measure(graph: Graph, given: dict[str, Any], turns: int, **options: Any) -> str:
    """Make walks some times; a line of the best turn."""
    with Session(graph, **options) as session:
        best, line = float("inf"), ""
        for _ in range(turns + 1):  # the first one compiles
            walks = session.walk(**given)
            began = time.perf_counter()
            for _ in walks.blocks():
                pass
            taken, done = time.perf_counter() - began, walks.progress
            if done.seconds < best:
                best = done.seconds
                line = (
                    f"{done.steps / done.seconds / 1e6:8.1f} M/s made, {done.steps / taken / 1e6:8.1f} M/s all, "
                    f"{done.sweeps} sweeps, {done.bytes_copied / 1e9:.1f} GB copied, {done.in_place} in place"
                )
    return line


def main() -> None:
    """Make the graph and measure on it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scale", type=int, default=22)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--length", type=int, default=80)
    parser.add_argument("--walks-per-vertex", type=int, default=1)
    parser.add_argument("--turns", type=int, default=2)
    given = parser.parse_args()
    graph = rmat_by_gpu(given.scale)
    for kind, options in KINDS.items():
        asked = {"length": given.length, "walks_per_vertex": given.walks_per_vertex, "seed": 1, **options}
        quarter = graph.edges * (4 if kind != "weighted" else 12) // 4
        settings: dict[str, dict[str, Any]] = {
            "cores": {"device": "cpu"},
            "all edges": {"device": given.device},
            "a quarter": {"device": given.device, "device_edge_memory": quarter},
            "copied": {"device": given.device, "device_edge_memory": quarter, "rates": Rates()},
        }
        for name, setting in settings.items():
            print(f"rmat{given.scale} {kind:9} {name:10} {measure(graph, asked, given.turns, **setting)}", flush=True)


if __name__ == "__main__":
    main()
