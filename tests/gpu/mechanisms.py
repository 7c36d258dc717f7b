"""Each mechanism switched off alone, over a GPU's link: the H200 columns of the table in transfer/measurements.md.

    bash tests/gpu/on_device.sh python3 tests/gpu/mechanisms.py > $OUT/mechanisms.txt

Two tables of `penstock bench routes`, of an R-MAT graph and of a web graph with a quarter of the edges on the device;
then pushes alone and pulls alone beside the choice per iteration. `--device emulated` tries it on cores.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from benchmarks.runner import prepare_cuda  # noqa: E402 - after the path

prepare_cuda()

from penstock.engine import Graph, Session  # noqa: E402 - after it is prepared
from penstock.tools.bench.routes.matrix import case_of, pick_source  # noqa: E402
from penstock.tools.cli import run_command  # noqa: E402

PROGRAMS = ("bfs", "sssp", "pagerank", "wcc", "labels")
TURNS = 5


def switched_off(graph: Path, device: list[str]) -> int:
    """Print the rows of `bench routes` that leave out one part of `auto`."""
    chosen = [word for name in PROGRAMS for word in ("--program", name)]
    rows = ["--row", "auto", "--repeat", str(TURNS), "--visits", "2", "--patience", "3"]
    return run_command(["bench", "routes", str(graph), *device, *chosen, *rows])


def directions(path: Path, device: str) -> None:
    """Print the seconds of a run that pushes, that pulls, and that chooses per iteration, medians in turn."""
    graph = Graph.open(path)
    for name in ("bfs", "sssp", "pagerank"):
        seconds: dict[str, list[float]] = {"auto": [], "push": [], "pull": []}
        make = case_of(name, [pick_source(graph)], 5).makers[0]
        for turn in range(TURNS + 1):
            for direction, found in seconds.items():
                with Session(graph, device=device, direction=direction) as session:
                    session.run(make())
                    if turn:  # the first one compiles
                        found.append(session.run(make()).seconds)
        print(name, *(f"{direction} {median(found) * 1e3:.1f} ms" for direction, found in seconds.items()))


def main() -> int:
    """Make the graphs and measure on them; the worst exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=int, default=22)
    parser.add_argument("--device", default="cuda:0")
    given = parser.parse_args()
    device = ["--device", given.device, "--device-edge-memory", "25%"]
    if given.device == "emulated":
        device += ["--link-rate", "400MB", "--partition-bytes", "512KiB", "--no-calibrate"]
    code = 0
    with tempfile.TemporaryDirectory() as folder:
        for kind in ("rmat", "web"):
            path = Path(folder) / f"{kind}.h5"
            size = ["--scale", str(given.scale)] if kind == "rmat" else ["--vertices", str(1 << given.scale)]
            made = ["generate", kind, *size, "--direction", "both", "--weights", "1..63", "--output", str(path)]
            code = code or run_command(made) or switched_off(path, device)
            directions(path, given.device)
    return code


if __name__ == "__main__":
    sys.exit(main())
