"""What the doctor finds: rows of a page with state and way out; risky imports are tried in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from penstock.tools.base.output import pairs

State = Literal["ok", "missing", "broken"]


@dataclass(frozen=True)
class Finding:
    """One row: what was looked at, what is there, and how that stands.

    missing: something optional, without which something does not work or is slower. broken: nothing works without it.
    way_out: a command or a sentence, "" where all is well.
    """

    name: str
    told: str
    state: State = "ok"
    way_out: str = ""


@dataclass(frozen=True)
class Section:
    """The rows of one subject, and the values behind them for machines."""

    title: str
    findings: list[Finding] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """For people: two columns below the title."""
        rows = [(one.name, one.told if one.state == "ok" else f"{one.told}  <- {one.state}") for one in self.findings]
        return [self.title, *pairs(rows, indent="  ")]


def verdict(sections: Sequence[Section]) -> list[str]:
    """The last lines of the page: what is broken and what is missing, each with its way out."""
    wrong = [one for section in sections for one in section.findings if one.state != "ok"]
    if not wrong:
        return ["all is well"]
    order = sorted(wrong, key=lambda one: one.state != "broken")
    return [f"{one.state}: {one.name}: {one.told}{'; ' if one.way_out else ''}{one.way_out}" for one in order]


PATIENCE = 20.0
"""Seconds until a process counts as hanging."""

IMPORTS = """
import importlib, json, sys
found = {}
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except BaseException as error:
        found[name] = f"{type(error).__name__}: {error}"
print(json.dumps(found))
"""
"""Imports modules; prints those that fail, with the error."""
CUDA = """
import json
found = {}
try:
    import cupy
    found["cupy"] = cupy.__version__
    runtime = cupy.cuda.runtime
    found["runtime"], found["driver"] = runtime.runtimeGetVersion(), runtime.driverGetVersion()
    found["devices"] = runtime.getDeviceCount()
    found["free_bytes"], found["total_bytes"] = runtime.memGetInfo()
except BaseException as error:
    found["cupy_error"] = f"{type(error).__name__}: {error}"
try:
    import numpy
    from numba import cuda
    if found.get("devices"):
        @cuda.jit
        def add(values):
            values[cuda.grid(1)] += 1
        there = cuda.to_device(numpy.zeros(32, numpy.int64))
        add[1, 32](there)
        found["kernel"] = int(there.copy_to_host().sum()) == 32
except BaseException as error:
    found["numba_error"] = f"{type(error).__name__}: {error}"
print(json.dumps(found))
"""
"""Asks CuPy for devices and versions, and runs a kernel that numba-cuda compiles."""
MPI = """
import json
import mpi4py
mpi4py.rc.initialize = False
from mpi4py import MPI
print(json.dumps({"library": MPI.Get_library_version().splitlines()[0].strip(chr(0)), "version": mpi4py.__version__}))
"""
"""Asks mpi4py for its MPI, which is not started."""


class Child:
    """A process that was started with a program of the above."""

    def __init__(self, program: str, *arguments: str) -> None:
        self._began = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", program, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, errors="replace",
        )  # fmt: skip

    def answer(self) -> tuple[dict[str, Any], str]:
        """Wait for it; return what it printed, and "" or why it printed nothing."""
        try:
            printed, said = self._process.communicate(timeout=max(0.1, self._began + PATIENCE - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            return {}, f"no answer within {PATIENCE:g} s"
        try:
            found: dict[str, Any] = json.loads((printed.splitlines() or [""])[-1])
        except ValueError:
            last = (said.strip().splitlines() or [""])[-1]
            return {}, last or f"the process ended with code {self._process.returncode}"
        return found, ""
