"""`penstock doctor`: one page on this machine and this installation, and what is missing."""

from __future__ import annotations

import importlib.util
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from penstock.tools.base.options import ANY, console_options
from penstock.tools.base.output import Console, seconds


@click.command(name="doctor", short_help="Say what this machine has, and what is missing.")
@click.argument("place", type=ANY, required=False, metavar="[FOLDER | GRAPH.h5]")
@console_options
def command(place: Path | None, console: Console) -> None:
    """Say what this machine and this installation have, what is missing, and how to get it.

    Versions of Python and packages, cores, memory and their limits, GPUs with their driver and whether kernels
    run on them, MPI, the disk of a folder or of a graph file (of this folder by default), what is kept of compiled
    kernels and measured rates, and extras. Takes 1 to 3 seconds; the disk is read for half a second, a new
    file written for at most as long.

    Exit code 0: all that is needed works, whatever else is missing. 1: something needed is broken.

    \b
    Examples:
      penstock doctor
      penstock doctor /mnt/ssd
      penstock doctor web.h5 --json
    """
    from penstock.storage.base.errors import InputError, RunError
    from penstock.tools.doctor import machine, packages
    from penstock.tools.doctor.finding import CUDA, IMPORTS, MPI, Child, verdict

    began = time.perf_counter()
    where = place or Path()
    if not where.exists():
        raise InputError(f"{where} does not exist; name a folder, or a graph file, on the disk to measure")
    imports = Child(IMPORTS, *map(packages.module_of, packages.requirements()))
    optional = {
        name: Child(text)
        for name, text in (("cupy", CUDA), ("mpi4py", MPI))
        if importlib.util.find_spec(name) is not None
    }
    seen = machine.driver_gpus()
    sections = [
        *machine.machine(),
        packages.needed(*imports.answer()),
        machine.gpus(seen, optional["cupy"].answer() if "cupy" in optional else None),
        machine.mpi(optional["mpi4py"].answer() if "mpi4py" in optional else None),
        machine.disk(where),
        machine.caches(),
        packages.optional(has_gpu=bool(seen)),
    ]
    took = time.perf_counter() - began
    findings = [one for section in sections for one in section.findings]
    broken = [one.name for one in findings if one.state == "broken"]
    facts: dict[str, Any] = {"command": "doctor", "works": not broken, "seconds": took}
    facts["problems"] = [asdict(one) for one in findings if one.state != "ok"]
    facts["sections"] = {section.title.lower(): section.values for section in sections}
    lines = [line for section in sections for line in (*section.lines(), "")]
    console.answer(facts, [*lines, *verdict(sections), f"looked for {seconds(took)}"])
    if broken:
        raise RunError(f"this installation does not work: {', '.join(broken)}")
