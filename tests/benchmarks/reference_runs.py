"""Measures the runs that forecasts begin with: `tools/data/reference_runs.csv`.

    PYTHONPATH=tests python tests/benchmarks/reference_runs.py FOLDER FILE.csv DEVICE CORES...

A line is one run of a program on a made graph; FOLDER has the graphs, kernels and rates. DEVICE: cpu or cuda:0. CORES:
0,1 4,5: each pair measures by itself, a GPU one process at a time. The machine should have nothing else to do. Every
command runs once before, for its kernels.
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any

from penstock.engine import Graph

from benchmarks.forecasts import PROGRAMS, least_bytes
from benchmarks.graphs import sources_of
from benchmarks.runner import COMMAND

GRAPHS: dict[str, tuple[object, ...]] = {
    "rmat14": ("rmat", "--scale", 14, "--undirected"),
    "rmat17": ("rmat", "--scale", 17, "--undirected"),
    "rmat20": ("rmat", "--scale", 20, "--undirected"),
    "sparse": ("rmat", "--scale", 18, "--edge-factor", 3, "--undirected"),
    "grid25k": ("grid", "--rows", 150, "--columns", 170),
    "grid": ("grid", "--rows", 700, "--columns", 800),
    "web60k": ("web", "--vertices", 60_000, "--undirected"),
    "web": ("web", "--vertices", 500_000, "--undirected"),
}
FROM = ("bfs", "sssp", "widest", "reachability", "php", "personalized_pagerank")
OTHERS = (
    "widest", "reachability", "php", "personalized_pagerank", "eigenvector", "hyperball", "scc", "mis", "coloring",
    "msf", "bridges", "articulation", "diameter", "lcc",
)  # fmt: skip
COLUMNS = (
    "program", "stays", "vertices", "edges", "most", "threads", "iterations", "sweeps", "seconds", "endless", "depth",
    "besides", "compiling",
)  # fmt: skip
BESIDE = ("iterations", "compiling", "calibrating")
SMALL = ("rmat14", "rmat17", "grid25k", "web60k")
Command = tuple[str, str, tuple[object, ...]]


def commands(folder: Path, device: str) -> Iterator[Command]:
    """Graph, program, words."""
    for name in GRAPHS:
        graph = Graph.open(folder / f"{name}.h5")
        source = sources_of(graph)[0]
        for program in (*PROGRAMS, *(OTHERS if name in SMALL else ())):
            given = ("--source", source) if program in FROM else ()
            yield name, program, given
            if PROGRAMS.get(program):
                yield name, program, PROGRAMS[program]
            if program in PROGRAMS and name not in ("rmat14", "grid25k"):
                every = budgets(graph, program, device)
                yield from ((name, program, (*given, *PROGRAMS[program], *one)) for one in every)


def budgets(graph: Graph, program: str, device: str) -> list[tuple[object, ...]]:
    """Options with which not all edges stay."""
    edges = 4 * graph.edges
    if device != "cpu":
        return [("--device-edge-memory", edges // 4)]
    least = least_bytes(graph, program, sources_of(graph)[0])
    return [("--host-memory", least + more, "--direct-io") for more in (edges // 2, 1 << 20)]


def run(command: Command, device: str, folder: Path, cores: str) -> dict[str, Any] | None:
    """The line of one run; None where it cannot run."""
    (name, program, words), cache = command, folder / cores
    variables = os.environ | {"XDG_CACHE_HOME": str(cache), "NUMBA_CACHE_DIR": str(folder / "kernels")}
    for old in cache.glob("penstock/runs-*"):
        old.unlink()
    line = [*COMMAND, "run", program, folder / f"{name}.h5", *words, "--device", device, "--top", 0, "--json"]
    try:
        done = subprocess.run(
            ["taskset", "-c", cores, *map(str, line)], env=variables, capture_output=True, text=True, timeout=60
        )
        (kept,) = cache.glob("penstock/runs-*")
    except (ValueError, subprocess.TimeoutExpired) as error:
        print(name, program, *words, error, file=sys.stderr)
        return None
    stages = json.loads(done.stdout)["stages"]
    besides = sum(taken for stage, taken in stages.items() if stage not in BESIDE)
    told = json.loads(kept.read_text()) | {"besides": besides, "compiling": stages.get("compiling", 0.0)}
    return told | {"graph": name}


def _text(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value).lower()


def main(folder: Path, target: Path, device: str, pairs: list[str]) -> None:
    """Generate, run everything once, then measure."""
    for name, words in GRAPHS.items():
        if not (folder / f"{name}.h5").exists():
            line = [*COMMAND, "generate", *words, "--weights", "1..63", "--output", folder / f"{name}.h5"]
            subprocess.run([*map(str, line)], check=True, capture_output=True)
    free: Queue[str] = Queue()
    for pair in pairs:
        free.put(pair)
        shutil.rmtree(folder / pair, ignore_errors=True)

    def one(command: Command) -> dict[str, Any] | None:
        pair = free.get()
        try:
            return run(command, device, folder, pair)
        finally:
            free.put(pair)

    with ThreadPoolExecutor(len(pairs)) as pool:
        every = list(commands(folder, device))
        compiling: dict[str, float] = {}
        for told in filter(None, pool.map(one, every)):
            compiling[told["program"]] = max(told["compiling"], compiling.get(told["program"], 0.0))
        found = [told for told in pool.map(one, every) if told]
    depths = {told["graph"]: told["iterations"] for told in found if told["program"] == "bfs" and told["stays"] == 1}
    with target.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        for told in found:
            told |= {"depth": depths[told["graph"]], "compiling": compiling[told["program"]]}
            rows.writerow([_text(told[name]) for name in COLUMNS])
    for place in folder.glob(f"{pairs[0]}/penstock/rates-*"):
        print(json.loads(place.read_text())["rates"])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4:])
