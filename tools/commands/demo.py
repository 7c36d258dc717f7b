"""`penstock demo`: a road map and a graph larger than memory, converted and run in a temporary folder.

The commands that it shows are those that it runs.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import click
from penstock.storage.base.atomic import scratch_folder
from penstock.storage.base.budget import cores, format_bytes
from penstock.storage.base.stage_clock import compile_times
from penstock.storage.companion.process import keeping
from penstock.tools.base.options import FOLDER, console_options
from penstock.tools.base.output import Console, answer_of, seconds
from penstock.tools.base.progress import waiting

Facts = dict[str, Any]
BUDGET = 32 << 20
LEAST = 0.1
"""Seconds of compiling that are worth a line."""
LIMIT = f"--host-memory {BUDGET >> 20}MiB"


DemoStep = tuple[str, Callable[[Facts], str]]
"""A command line, and a sentence about what it answers."""


def _made(facts: Facts) -> str:
    size = format_bytes(facts["output_bytes"])
    counts = f"{facts['vertices']:,} vertices, {facts['input_edges']:,} edges"
    return f"{counts} in {size} on disk, {seconds(facts['seconds'])}"


def _cost(facts: Facts) -> str:
    return f"({seconds(facts['seconds'])}, {format_bytes(facts['bytes_read'])} read from disk)"


def _farthest(facts: Facts) -> str:
    found = facts["fields"]["distance"]
    away = f"{found['max'] / 1e4:.1f} km"
    return f"{found['reached']:,} places can be reached, the farthest by {away} of road {_cost(facts)}"


def _networks(facts: Facts) -> str:
    found = facts["fields"]["component"]
    return f"{found['components']:,} networks, the largest of {found['largest']:,} places {_cost(facts)}"


def _best(facts: Facts) -> str:
    first = facts["top"][0]
    return f"vertex {first['vertex']} ranks first, {first['rank']:.6f} {_cost(facts)}"


def _within(facts: Facts) -> str:
    found = facts["fields"]["level"]
    return f"{found['reached']:,} vertices within {found['max']} steps {_cost(facts)}"


ROADS = {
    "convert": ("convert malta-roads.txt.gz roads.h5 --weights --undirected --renumber", _made),
    "sssp": ("run sssp roads.h5 --source 256593339", _farthest),
    "wcc": ("run wcc roads.h5", _networks),
}
LARGE = {
    "generate": (f"generate rmat --scale 17 --edge-factor 128 --direction both {LIMIT} --output rmat.h5", _made),
    "pagerank": (f"run pagerank rmat.h5 --tol 0 --max-iter 10 --top 1 {LIMIT} --direct-io", _best),
    "bfs": (f"run bfs rmat.h5 --source 1 {LIMIT} --direct-io", _within),
}


@click.command(name="demo", short_help="Convert and run a real and a generated graph, in seconds.")
@click.option("--folder", type=FOLDER, help="Where the temporary folder is made.")
@console_options
def command(folder: Path | None, console: Console) -> None:
    """Convert and run a real and a generated graph, in seconds.

    The real one is the road map of Malta; the generated one has more bytes of edges than the memory
    that it is made and run in. Everything happens in a temporary folder and is removed.

    \b
    Examples:
      penstock demo
      penstock demo --folder /mnt/ssd --json
    """
    began = time.perf_counter()
    data = resources.files("penstock.tools") / "data" / "malta-roads.txt.gz"
    with keeping(_kernels if cores() > 1 else None), scratch_folder(folder) as scratch, resources.as_file(data) as text:
        places = {
            "malta-roads.txt.gz": text,
            **{name: scratch / name for name in ("roads.h5", "rmat.h5")},
        }
        console.say("The roads of Malta, (c) OpenStreetMap contributors, ODbL:")
        roads = _take(ROADS, places, console)
        console.say("")
        console.say(f"A graph of 64 MiB of edges each way, which gets {BUDGET >> 20} MiB of memory:")
        large = _take(LARGE, places, console)
    took = time.perf_counter() - began
    compiled = sum(facts["compile_seconds"] for facts in (*roads.values(), *large.values()))
    slower = f", {seconds(compiled)} of them for compiling kernels: again it is faster" if compiled >= LEAST else ""
    found = "penstock" if shutil.which("penstock") else sys.argv[0]
    console.answer(
        {"command": "demo", "roads": roads, "large": large, "seconds": took, "compile_seconds": compiled},
        ["", f"Done in {seconds(took)}{slower}; the temporary folder is gone. Next: {found} --help"],
    )


def _kernels() -> Facts:
    """The job that compiles what all steps need, in their order."""
    from penstock.engine.kernels.ahead.announce import KernelJob, described
    from penstock.engine.programs.table import PROGRAMS
    from penstock.storage.companion.job_compiler import job_of
    from penstock.storage.convert.convert import kernel_job

    make: Mapping[str, Callable[..., Any]] = PROGRAMS
    sssp, wcc, pagerank, bfs = make["sssp"](0), make["wcc"](), make["pagerank"](), make["bfs"](0)
    plain, both = ("uint32", None, cores()), ("push", "pull")
    jobs = [
        KernelJob(sssp, ("push",), False, "uint32", "uint16", cores(), counts=False),
        KernelJob(wcc, ("push",), False, *plain, counts=False),
        KernelJob(pagerank, ("pull",), True, *plain, packed=True),
        KernelJob(bfs, both, True, *plain),
    ]
    return job_of([kernel_job(), *(described(job, "host") for job in jobs)])


def _take(steps: Mapping[str, DemoStep], places: Mapping[str, Path], console: Console) -> Facts:
    """Show each command, run it with its files in their places, say what came out."""
    found = {}
    for name, (line, sentence) in steps.items():
        words = line.split()
        console.say(f"$ penstock {line}")
        before = compile_times().compiling
        with waiting("penstock " + " ".join(words[:2]), quiet=console.silent):
            found[name] = answer_of([str(places.get(word, word)) for word in words])
        compiled = found[name]["compile_seconds"] = compile_times().compiling - before
        console.say(f"  {sentence(found[name])}")
        if compiled >= LEAST:
            console.say(f"  compiling kernels took {seconds(compiled)}, which happens once on a machine")
    return found
