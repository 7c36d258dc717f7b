"""The suite `ranks`: PageRank on ranks that begin with even and with uneven shares, bounds fixed and moving.

    penstock run pagerank GRAPH --devices cpu,cpu --shares 1,3 [--no-repartition] --metrics FILE

A turn runs all of them, so that a machine that is not empty is so for all. Besides the seconds of each sweep a turn
tells after how many sweeps one took no more than NEAR times as long as with even, fixed shares (their median).
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import graphs
from benchmarks.runner import Runner, penstock

SWEEPS = 12
NEAR = 1.1
FIRST = 2
"""Sweeps that read the graph and load kernels: they tell nothing of the others."""


def ranks(runner: Runner) -> None:
    """On the file that the user names, or on a generated R-MAT."""
    choices = runner.choices
    devices = choices.device if "," in choices.device else "cpu,cpu"
    with tempfile.TemporaryDirectory(dir=choices.folder) as folder:
        if choices.graph is not None:
            path, title = Path(choices.graph), Path(choices.graph).stem
        else:
            scale = choices.scale or 20
            path, title = Path(folder, "rmat.h5"), f"rmat{scale}"
            graphs.rmat_on_disk(scale, path)
        options = [word for name, value in choices.given.items() for word in (f"--{name.replace('_', '-')}", value)]
        command = ("run", "pagerank", path, "--tol", 0, "--max-iter", SWEEPS, "--devices", devices, *options)
        size = devices.count(",") + 1
        runner.measure(
            f"{title} ranks {devices}", "s", lambda: turn(command, size, Path(folder, "metrics.jsonl")), untimed=1
        )


def turn(command: tuple[object, ...], size: int, metrics: Path) -> dict[str, tuple[float, str]]:
    """Seconds of the sweeps of each kind of start, by names of both."""
    even, uneven = ",".join(["1"] * size), ",".join(["1", *["3"] * (size - 1)])
    kinds: dict[str, tuple[str, ...]] = {
        "even, fixed": ("--shares", even, "--no-repartition"),
        "even, moving": ("--shares", even),
        "uneven, fixed": ("--shares", uneven, "--no-repartition"),
        "uneven, moving": ("--shares", uneven),
    }
    found: dict[str, tuple[float, str]] = {}
    balanced = 0.0
    for kind, words in kinds.items():
        penstock(*command, *words, "--metrics", metrics, "--force")
        sweeps = [line for line in map(json.loads, metrics.read_text().splitlines()) if line["kind"] == "iteration"]
        seconds = [sweep_seconds(sweep) for sweep in sweeps]
        balanced = balanced or median(seconds[FIRST:])
        found[f"{kind}, median"] = median(seconds[FIRST:]), "s"
        found |= {f"{kind}, sweep {number}": (taken, "s") for number, taken in enumerate(seconds)}
        near = [number for number, taken in enumerate(seconds) if number >= FIRST and taken <= NEAR * balanced]
        found[f"{kind}, sweeps until even"] = float(near[0] if near else SWEEPS), "sweeps"
        found[f"{kind}, moves"] = float(sum("moved" in sweep for sweep in sweeps)), "moves"
        found[f"{kind}, moving"] = sum(sweep.get("move_seconds", 0.0) for sweep in sweeps), "s"
    return found


def sweep_seconds(sweep: dict[str, Any]) -> float:
    """Seconds of a sweep, without those in which bounds moved after it."""
    return float(sweep["seconds"] - sweep.get("move_seconds", 0.0))
