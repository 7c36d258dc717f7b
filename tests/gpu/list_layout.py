"""Text to the first answer on a GPU, through a list and through rows: where sorting has paid.

    bash tests/gpu/on_device.sh python3 tests/gpu/list_layout.py [--scale 24] [--device cuda:0] > $OUT/list_layout.txt

An R-MAT graph as text is converted three ways; then each program runs in a new process (`--one`) that finds its
kernels compiled by an earlier one. Prints one table last.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "benchmarks")]

from runner import COMMAND, prepare_cuda  # noqa: E402 - after the path

LAYOUTS = {"list": ["--layout", "list"], "rows": [], "both": ["--direction", "both"]}
PROGRAMS = ("bfs", "pagerank 1", "pagerank 20", "wcc")
MEMORIES = (None, 256 << 20)
"""Bytes for edges on the device; None: all fit."""


def one(path: str, program: str, device: str, memory: int | None, plain: bool) -> dict[str, Any]:
    """Run a program once in this process; its seconds with all that comes before it."""
    began = time.perf_counter()
    if device.startswith("cuda"):
        prepare_cuda()
    import numpy as np
    from penstock.engine.programs.bfs import BFS
    from penstock.engine.programs.pagerank import PageRank
    from penstock.engine.programs.wcc import WCC
    from penstock.engine.session import Session
    from penstock.storage.format.graph import Graph

    graph = Graph.open(path)
    name, _, sweeps = program.partition(" ")
    options: dict[str, Any] = {"device": device}
    if memory is not None and device != "cpu":
        options["device_edge_memory"] = memory
    if plain and not device.startswith("cpu"):
        from penstock.engine.kernels.cuda.edge_blocks import CudaBlockKernels

        CudaBlockKernels.keeps_sums = False
    if name == "bfs":
        degrees = graph.degree_index("out")
        assert degrees is not None, "the conversion has counted them"
        made: Any = BFS(int(np.argmax(degrees.degrees(0, graph.vertices))))
    else:
        made = PageRank(tol=0, max_iter=int(sweeps), weight=False) if sweeps else WCC()
    with Session(graph, **options) as session:
        result = session.run(made)
    seconds = sorted(record.seconds for record in result.records)
    found = {"run": result.seconds, "median": seconds[len(seconds) // 2], "iterations": len(seconds)}
    return found | {"all": time.perf_counter() - began}


def measured(*words: object) -> dict[str, Any]:
    """What `one` says in a process of its own. Raises RuntimeError with its errors when it fails."""
    line = [sys.executable, __file__, "--one", *map(str, words)]
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def converted(folder: Path, scale: int) -> dict[str, float]:
    """Write the text and convert it each way, after a small one each way, which compiles; seconds by layout."""
    seconds = {}
    for size in (10, scale):
        text = folder / f"{size}.txt"
        make = ["generate", "rmat", "--scale", size, "--edge-factor", 16, "--seed", 1, "--output", text]
        subprocess.run([*COMMAND, *map(str, make)], check=True, capture_output=True)
        for layout, options in LAYOUTS.items():
            began = time.perf_counter()
            words = ["convert", str(text), str(folder / f"{layout}.h5"), *options, "--force"]
            subprocess.run([*COMMAND, *words], check=True, capture_output=True)
            seconds[layout] = time.perf_counter() - began
    return seconds


def main() -> None:
    """Measure all and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=int, default=24)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--one", nargs=5, metavar=("GRAPH", "PROGRAM", "DEVICE", "MEMORY", "PLAIN"))
    asked = parser.parse_args()
    if asked.one:
        path, program, device, memory, plain = asked.one
        print(json.dumps(one(path, program, device, int(memory) or None, plain == "plain")))
        return
    table = ["program | memory | layout | convert s | run s | iteration ms | iterations | text to answer s"]
    with tempfile.TemporaryDirectory() as folder:
        took = converted(Path(folder), asked.scale)
        for program in PROGRAMS:
            for memory in MEMORIES:
                for layout in ("list", "list, no sums kept", "rows", "both"):
                    kind, _, plain = layout.partition(", ")
                    words = f"{folder}/{kind}.h5", program, asked.device, memory or 0, "plain" if plain else "kept"
                    if memory is None:  # the first process compiles
                        measured(*words)
                    found = measured(*words)
                    size = "all" if memory is None else f"{memory >> 20} MiB"
                    figures = f"{found['run']:.2f} | {found['median'] * 1e3:.2f} | {found['iterations']}"
                    answer = took[kind] + found["all"]
                    table.append(f"{program} | {size} | {layout} | {took[kind]:.2f} | {figures} | {answer:.2f}")
    print("\n".join(table))


if __name__ == "__main__":
    main()
