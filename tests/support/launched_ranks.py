"""Commands of the command line in several ranks, started as processes of their own."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

needs_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None, reason='ranks need MPI: pip install ".[ranks]"'
)
PATIENCE_SECONDS = 120

SLOW = """
import time
from penstock.engine import Field, Program
from numpy import float64

class Patient(Program):
    value = Field(float64, fill=1.0)
    combine, everywhere, max_iter = "sum", True, 60

    def send(value, degree): return value / max(degree, 1)
    def edge(sent): return sent
    def vertex(incoming): return incoming

    def done(self, iteration, totals):
        time.sleep(0.05)
        return False
"""
"""A program whose iterations take long enough to be killed in."""


def started(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "penstock.tools.main", "run", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder)


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE_SECONDS)
    return process.returncode, out, err


def ranks_of(process: subprocess.Popen[str], count: int) -> dict[int, int]:
    """The processes of the ranks that a command has started, by rank, once there are so many."""
    limit = time.monotonic() + PATIENCE_SECONDS
    ranks: dict[int, int] = {}
    while len(ranks) < count and time.monotonic() < limit and process.poll() is None:
        time.sleep(0.01)
        ranks = {}
        for one in psutil.Process(process.pid).children(recursive=True):
            try:
                if "penstock.tools.main" in one.cmdline() and "PMI_RANK" in one.environ():
                    ranks.setdefault(int(one.environ()["PMI_RANK"]), one.pid)
            except psutil.Error:
                continue  # it has just ended
    return ranks
