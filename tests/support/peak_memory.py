"""How much memory a run of the command line takes at its peak, at the least budget that it accepts.

A process of its own for each program, or one for several: it runs a program on a small graph of the same kind, so that
every kernel is loaded and every module imported, then resets the peak of resident memory and runs it on the graph with
an output and all summaries. The growth over the process before is what the budget promises to hold.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import inspect
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray
from penstock.engine.programs.table import PROGRAMS
from penstock.storage.base import budget, kernel_cache, missing_code
from penstock.storage.encoding.string_array import STRINGS
from support.graphs import skewed, weighed, write
from support.oracles import EdgeList

MIB = 1 << 20
SMALL_CHANGE = 8 * MIB
"""What a run may take beyond its budget: pages that allocators have of their own."""
SOURCE = ("--source", 0)
SPECIAL: dict[str, tuple[object, ...]] = {
    "distances": (*SOURCE, "--source", 1),
    "betweenness": SOURCE,
    "closeness": ("--k", 2),
    "harmonic": SOURCE,
    "diameter": ("--k", 2),
    "hyperball": ("--max-iter", 2, "--set", "log2m=4"),
    "pagerank": ("--max-iter", 3, "--tol", 0),
    "personalized_pagerank": (*SOURCE, "--max-iter", 3, "--tol", 0),
    "katz": ("--max-iter", 3, "--alpha", 1e-7),
    "louvain": ("--tol", 0.1),
    "leiden": ("--tol", 0.1),
    "kcore": ("--k", 2),
    "heat": ("--set", "initial={0: 1.0}", "--max-iter", 3),
    "circuit": ("--set", "fixed={0: 1.0}", "--set", "floating=True", "--max-iter", 3),
    "neural": ("--set", "inputs={0: 1.0}", "--max-iter", 3),
}


def arguments_of(name: str) -> tuple[object, ...]:
    """Return how a program is measured: from a source where it needs one, few iterations where it takes a number."""
    taken = inspect.signature(PROGRAMS[name]).parameters
    source = SOURCE if "source" in taken and taken["source"].default is inspect.Parameter.empty else ()
    return SPECIAL.get(name, (*source, *(("--max-iter", 3) if "max_iter" in taken else ())))


ARGUMENTS = {name: arguments_of(name) for name in PROGRAMS}
"""By program, the parameters with which it is measured."""


@dataclass(frozen=True)
class Peak:
    """What a run took at its peak beside what was held before, in bytes; its budget, the least it accepts.

    running: until its result was there. growth: with summary and output.
    """

    program: str
    budget: int
    running: int
    growth: int

    @property
    def beyond(self) -> bool:
        """Whether that is more than the budget, and than what the allocators of the C library and of Arrow keep."""
        return self.growth > self.budget + SMALL_CHANGE


def isolated(vertices: int) -> EdgeList:
    """Two edges and many vertices without any."""
    return weighed(EdgeList(vertices, np.array([0, 1]), np.array([1, 2]), None, True), "uint8")


def star(vertices: int) -> EdgeList:
    """An edge from vertex 0 to each other."""
    targets = np.arange(1, vertices)
    return weighed(EdgeList(vertices, np.zeros_like(targets), targets, None, True), "uint8")


def grid(vertices: int) -> EdgeList:
    """A square grid, each edge both ways."""
    side = int(vertices**0.5)
    places = np.arange(side * side).reshape(side, side)
    across, down = (places[:, :-1], places[:, 1:]), (places[:-1], places[1:])
    ends = [np.concatenate([one.ravel(), other.ravel()]) for one, other in zip(across, down, strict=True)]
    return weighed(EdgeList(side * side, ends[0], ends[1], None, False), "uint8")


def hubs(vertices: int) -> EdgeList:
    """Eight edges a vertex, most of them of a few vertices."""
    ends = skewed(vertices, 8 * vertices, 1)
    return weighed(EdgeList(vertices, ends[0], ends[1], None, True), "uint8")


SHAPES: dict[str, Callable[[int], EdgeList]] = {"isolated": isolated, "star": star, "grid": grid, "hubs": hubs}
SMALL = 3000
"""Vertices of the graph on which a program runs first."""


IDS: dict[str, tuple[Callable[[int], NDArray[Any]] | None, bool]] = {
    "numbers": (None, False),
    "names": (lambda vertices: np.array([f"n{number:09}" for number in range(vertices)], STRINGS), False),
    "ids": (lambda vertices: np.arange(vertices, dtype=np.uint64) * np.uint64(7), False),
    "hubs-first": (lambda vertices: np.roll(np.arange(vertices, dtype=np.uint64) * np.uint64(7), vertices // 12), True),
}
"""By name, the original ids of so many vertices, and whether hubs come first."""


def graphs(shape: str, vertices: int, folder: Path, ids: str = "numbers") -> tuple[Path, Path]:
    """A small graph and a large one of a shape, in files."""
    made = []
    original, hubs_first = IDS[ids]
    for count in (SMALL, vertices):
        made.append(folder / f"{shape}-{ids}-{count}.h5")
        if not made[-1].exists():
            edges = SHAPES[shape](count)
            provenance = {"source": "tests", "options": {"order": "hubs"} if hubs_first else {}}
            write(edges, made[-1], original=original and original(edges.vertices), provenance=provenance)
    return made[0], made[1]


def peaks(small: Path, large: Path, programs: Iterable[str], output: str, *options: str) -> list[Peak]:
    """The peaks of programs, measured one after another in a process of its own. output: name of the answer's file."""
    command = [sys.executable, "-m", "support.peak_memory", str(small), str(large), output, ",".join(programs)]
    tests = Path(__file__).parents[1]
    done = subprocess.run([*command, *options], cwd=tests, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return [Peak(**json.loads(line)) for line in done.stdout.splitlines()]


def _measured(program: str, small: Path, large: Path, output: Path, options: list[str]) -> Peak:
    """Measure one program in this process."""
    from penstock.engine.kernels.host import launch
    from penstock.engine.kernels.host.whole_rows import launch_rows

    given = ["run", program, *map(str, ARGUMENTS.get(program, ())), *options]
    least = _least([*given, str(large)])
    given += ["--json", "--quiet", "--force", "--no-calibrate", "--output", str(output)]
    usual = launch.SMALL
    for each in (usual, 1):  # kernels of one thread, kernels of all
        launch.SMALL = launch_rows.SMALL = each
        told([*given, str(small)])
    launch.SMALL = launch_rows.SMALL = usual
    given += [str(large), "--host-memory", f"{least}MiB"]
    return least_of(program, given, least * MIB)


def least_of(program: str, given: list[str], least: int) -> Peak:
    """Run a command and measure its peak, up to three times where it took more than it may.

    The first time kernels that the small graph has no use for may be loaded, or compiled; later ones differ by as much
    as 20 MiB on busy cores, by what allocators keep of threads that write the answer.
    """
    for _ in range(2):
        found = measured(program, given, least)
        if not found.beyond:
            return found
    return measured(program, given, least)


def measured(program: str, given: list[str], least: int) -> Peak:
    """Run a command and measure its peak."""
    gc.collect()
    pyarrow.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    before = budget.resident_bytes()
    facts = json.loads(told(given))
    return Peak(program, least, facts.get("peak_memory_bytes", before) - before, budget.peak_resident_bytes() - before)


def _least(given: list[str]) -> int:
    """The least budget that a program accepts, in MiB."""
    found = re.search(r"give --host-memory (\d+)MiB or more", told([*given, "--dry-run", "--host-memory", "1MiB"], 2))
    assert found is not None
    return int(found[1])


def told(arguments: list[str], code: int = 0) -> str:
    """What a command says that ends with a code."""
    from penstock.tools import cli

    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as error:
        ended = cli.run_command(arguments)
    if ended != code:
        raise RuntimeError(f"{arguments} ended with {ended}: {error.getvalue()}")
    return out.getvalue() + error.getvalue()


def load_for_good() -> None:
    """Let what a run on a small graph loads be all that a later one needs, in this process.

    It loads kernels, also where without them it would be done sooner. Pages of libraries stay where they are: given
    back before a run, and read again in it, they would count as its own.
    """
    missing_code.FEW = 0
    kernel_cache.give_back_library_pages = lambda: None


def _child(small: str, large: str, output: str, programs: str, *options: str) -> None:
    """Measure programs in this process, and print a line of each."""
    load_for_good()
    for program in programs.split(","):
        peak = _measured(program, Path(small), Path(large), Path(output), list(options))
        print(json.dumps(vars(peak)), flush=True)


if __name__ == "__main__":
    _child(*sys.argv[1:])
