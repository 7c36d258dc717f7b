"""Orders of vertices and layers of rows over a GPU's link: the last table of engine/decisions/paths.md.

    bash tests/gpu/on_device.sh python3 tests/gpu/path_order.py > $OUT/path_order.txt

A web graph with shuffled ids is converted in three orders; a quarter of its edges stays on the device. SSSP and
PageRank by residuals run without layers and with four, by `auto` and by filter alone. `--device emulated` tries it on
cores. Exit code 1: two orders, or two ways, have different answers.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

import numpy as np  # noqa: E402
from benchmarks.runner import COMMAND, prepare_cuda  # noqa: E402 - after the path

ORDERS = ("none", "degree", "paths")
WAYS: tuple[dict[str, Any], ...] = (
    {},
    {"tuning": {"layers": 4}},
    {"route": "filter", "direction": "push"},
    {"route": "filter", "direction": "push", "tuning": {"layers": 4}},
)
TURNS = 3


def shuffled_web(path: Path, vertices: int) -> None:
    """Write the pairs of a web graph whose ids mean nothing."""
    from penstock.storage.ingest.synthetic import web

    source = web(vertices, seed=1)
    names = np.random.default_rng(1).permutation(vertices).astype(np.uint32)
    edges = source.batch(0, source.edges)
    np.save(path, np.stack([names[edges.sources], names[edges.targets]], 1))


def measure(path: Path, device: str, source: int, right: dict[str, Any]) -> bool:
    """Print milliseconds and bytes over the link of every program and way; whether all answers are the first ones."""
    from penstock.engine import Graph, Session
    from penstock.engine.programs.pagerank import PageRank
    from penstock.engine.programs.sssp import SSSP

    graph, good = Graph.open(path), True
    makers = {"sssp": lambda: SSSP(source), "pagerank": lambda: PageRank(tol=1e-4, max_iter=5000, weight=False)}
    memory = max(5 << 19, graph.edges)  # a quarter of 4 bytes each, or the least that two slabs take
    for name, make in makers.items():
        for way in WAYS:
            options = dict(way, device=device, device_edge_memory=memory)
            if name == "pagerank":
                options |= {"mode": "async", "direction": "push"}
            if device == "emulated":
                options["tuning"] = options.get("tuning", {}) | {"link_rate": 4e8}
                options["partition_bytes"] = 1 << 18
            with Session(graph, **options) as session:
                results = [session.run(make()) for _ in range(TURNS + 1)][1:]
            field = next(iter(results[0].fields))
            values = results[0].fields[field][np.argsort(results[0].ids)]
            same = bool(np.allclose(values, right.setdefault(name, values), rtol=1e-2, atol=1e-6))
            good &= same
            moved = sum(record.summary()["bytes_link"] for record in results[0].records) / (4 * graph.edges)
            milliseconds = median(result.seconds for result in results) * 1e3
            shown = " ".join(f"{key}={value}" for key, value in way.items()) or "auto"
            found = f"{milliseconds:9.1f} ms {moved:7.2f} of the edges"
            print(f"{path.stem:7} {name:9} {shown:40} {found}", "" if same else "WRONG")
    return good


def main() -> int:
    """Convert and measure; 1 if answers differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--vertices", type=int, default=1 << 20)
    parser.add_argument("--device", default="cuda:0")
    given = parser.parse_args()
    if given.device.startswith("cuda"):
        prepare_cuda()
    right: dict[str, Any] = {}
    good = True
    with tempfile.TemporaryDirectory() as folder:
        pairs = Path(folder, "pairs.npy")
        shuffled_web(pairs, given.vertices)
        source = int(np.load(pairs, mmap_mode="r")[0, 0])
        for order in ORDERS:
            path, began = Path(folder, f"{order}.h5"), time.perf_counter()
            words = ["convert", str(pairs), str(path), "--order", order, "--direction", "both"]
            subprocess.run([*COMMAND, *words], check=True, capture_output=True)
            print(f"{order}: converted in {time.perf_counter() - began:.2f} s")
            good &= measure(path, given.device, source, right)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
