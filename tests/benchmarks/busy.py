"""The suite `busy`: programs in memory and from disk, alone and beside processes that take all the time they get.

With b such processes a program that has c threads on c cores gets c / (c + b) of the machine, its fair share: it should
take (c + b) / c times as long as alone. Each figure has the seconds, and how many times as long as the fair share that
is; a run whose threads wait for each other takes longer. CPU seconds tell threads that burn time while they wait, and
what the caches lose at every switch. Every repeat measures each program
alone and beside the others in turn, so that a machine that is not empty is so for all.

Linux shares a core in turns of some milliseconds, so a share is defined over many of them: short programs run so often
in a row that they take LEAST seconds alone. The control is as many processes as threads, which compute a fixed amount
each and neither wait for each other nor read memory: what the machine really gives. A second control does wait: kernels
that compute, read no memory, and end when all threads have, after one and after three milliseconds. What a run takes
beyond it is Penstock's; what that takes beyond the first control is threads that wait for one whose core was taken.
"""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from penstock.engine import Graph, Program, Session
from penstock.engine.kernels.host.jit import loop_kernel, use_workers
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.wcc import WCC
from penstock.storage.base.budget import cores

from benchmarks import graphs
from benchmarks.disk import STATE
from benchmarks.runner import Runner

BUSY = (1, 2, 4)
"""Busy processes beside a run."""
LEAST = 0.4
"""Seconds that the runs of a program take alone, together, if one takes less."""
LOOP = "print(flush=True)\nwhile True: pass"
ENDS_WITH_PARENT = "import ctypes; ctypes.CDLL(None).prctl(1, 9)\n"
"""Linux' PR_SET_PDEATHSIG and SIGKILL: no loop is left where the benchmark is killed."""
COUNTING = "input()\nfor _ in range({}): pass"
COUNTS = 15_000_000
"""Steps of a process of the control: some 0.3 s."""
STEPS = (1, 3)
"""Milliseconds that a kernel of the second control takes alone."""
PARTS = 8
"""Parts of such a kernel for each thread, which takes the next one until none is left."""


def busy(runner: Runner) -> None:
    """On the file that the user names, or on a generated R-MAT."""
    choices = runner.choices
    with tempfile.TemporaryDirectory(dir=choices.folder) as folder:
        if choices.graph is not None:
            path, title = Path(choices.graph), Path(choices.graph).stem
        else:
            scale = choices.scale or 20
            path, title = Path(folder, "rmat.h5"), f"rmat{scale}"
            graphs.rmat_on_disk(scale, path)
        graph = Graph.open(path)
        memory = int(choices.share * graph.edges * 4) + STATE * graph.vertices + (32 << 20)
        runner.measure("busy control", "s", lambda: control(cores()))
        for milliseconds in STEPS:
            runner.measure(f"busy control steps of {milliseconds} ms", "s", lambda m=milliseconds: stepped(m, cores()))
        kinds = {"memory": {}, "disk": {"host_memory": memory, "direct_io": True, "partition_bytes": 4 << 20}}
        for kind, options in kinds.items():
            with Session(Graph.open(path), device="cpu", **options | choices.given) as session:
                for name, program in programs(graph).items():
                    runner.measure(f"{title} busy {kind} {name}", "s", lambda s=session, p=program: beside(s, p))


def programs(graph: Graph) -> dict[str, Program]:
    """The programs by name."""
    source = graphs.sources_of(graph)[0]
    sweeps = PageRank(tol=0, max_iter=10, weight=False)
    return {"bfs": BFS(source), "sssp": SSSP(source), "wcc": WCC(), "pagerank10": sweeps}


def beside(session: Session, program: Program) -> dict[str, tuple[float, str]]:
    """Seconds of a run alone and beside busy processes, and how many times as long as the fair share that is."""
    threads = session.config.thread_count
    runs = max(1, math.ceil(LEAST / session.run(program).seconds))
    alone, used = timed(session, program, runs)
    found = {"alone": (alone, "s"), "alone, CPU": (used, "s")}
    for count in BUSY:
        with looping(count):
            seconds, used = timed(session, program, runs)
        found[f"beside {count}"] = seconds, "s"
        found[f"beside {count}, CPU"] = used, "s"
        found[f"beside {count} / fair share"] = seconds / (alone * fair(threads, count)), "ratio"
    return found


def control(threads: int) -> dict[str, tuple[float, str]]:
    """The same of as many processes that wait for nobody, until the last has ended."""
    alone = counted(threads)
    found = {"alone": (alone, "s")}
    for count in BUSY:
        with looping(count):
            seconds = counted(threads)
        found[f"beside {count} / fair share"] = seconds / (alone * fair(threads, count)), "ratio"
    return found


@loop_kernel("busy control", grain=1)
def compute(first, end, turns, found):  # type: ignore[no-untyped-def]
    """Turn by turn, without memory, for each step."""
    for step in range(first, end):
        value = np.uint64(step + 1)
        for _ in range(turns):
            value ^= value << np.uint64(13)
            value ^= value >> np.uint64(7)
        found[step] = value


def stepped(milliseconds: float, threads: int) -> dict[str, tuple[float, str]]:
    """The same of kernels of so many milliseconds alone, one after another, each of which waits for all threads."""
    use_workers(threads)
    turns, found = 100_000, np.zeros(threads * PARTS, np.uint64)
    for _ in range(2):  # the first compiles it
        began = time.perf_counter()
        compute(threads, len(found), turns, found)
    turns = int(turns * milliseconds * 1e-3 / (time.perf_counter() - began))

    def repeated() -> float:
        begin = time.perf_counter()
        for _ in range(math.ceil(LEAST / milliseconds * 1e3)):
            compute(threads, len(found), turns, found)
        return time.perf_counter() - begin

    alone = repeated()
    told = {"alone": (alone, "s")}
    for count in BUSY:
        with looping(count):
            told[f"beside {count} / fair share"] = repeated() / (alone * fair(threads, count)), "ratio"
    return told


def fair(threads: int, count: int) -> float:
    """How many times as long as alone so many threads should take beside so many busy processes."""
    return max(1.0, (threads + count) / cores()) / max(1.0, threads / cores())


def timed(session: Session, program: Program, runs: int) -> tuple[float, float]:
    """Seconds of a run, and CPU seconds of this process meanwhile; means of so many in a row."""
    before = time.process_time()
    seconds = sum(session.run(program).seconds for _ in range(runs))
    return seconds / runs, (time.process_time() - before) / runs


def counted(processes: int) -> float:
    """Seconds until so many processes that begin together have counted."""
    command = [sys.executable, "-S", "-c", ENDS_WITH_PARENT + "print(flush=True)\n" + COUNTING.format(COUNTS)]
    with ExitStack() as stack:
        counters = [stack.enter_context(_started(command)) for _ in range(processes)]
        begin = time.perf_counter()
        for counter in counters:
            assert counter.stdin is not None
            counter.stdin.write(b"\n")
            counter.stdin.flush()
        for counter in counters:
            counter.wait()
        return time.perf_counter() - begin


@contextmanager
def looping(count: int) -> Iterator[None]:
    """With so many processes that do nothing but take time, and have begun to."""
    with ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(_started([sys.executable, "-S", "-c", ENDS_WITH_PARENT + LOOP]))
        yield


@contextmanager
def _started(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """With a process that has written its first line; it is ended."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process
        finally:
            process.kill()
