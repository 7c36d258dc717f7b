"""The suite `busy`: programs in memory and from disk, alone and beside processes that take all the time they get.

With b such processes a program that has c threads on c cores gets c / (c + b) of the machine, its fair share: it should
take (c + b) / c times as long as alone. Each figure has the seconds, and how many times as long as the fair share that
is; a run whose threads wait for each other takes longer. CPU seconds tell threads that burn time while they wait, and
what the caches lose at every switch. Every repeat measures each program
alone and beside the others in turn, so that a machine that is not empty is so for all.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.engine import Graph, Program, Session
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
LOOP = "while True: pass"


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
    """Seconds alone and beside busy processes, and how many times as long as the fair share that is."""
    threads = session.config.thread_count
    alone, used = timed(session, program)
    found = {"alone": (alone, "s"), "alone, CPU": (used, "s")}
    for count in BUSY:
        with looping(count):
            seconds, used = timed(session, program)
        fair = alone * max(1.0, (threads + count) / cores())
        found[f"beside {count}"] = seconds, "s"
        found[f"beside {count}, CPU"] = used, "s"
        found[f"beside {count} / fair share"] = seconds / fair, "ratio"
    return found


def timed(session: Session, program: Program) -> tuple[float, float]:
    """Seconds of a run, and CPU seconds of this process meanwhile."""
    before = time.process_time()
    return session.run(program).seconds, time.process_time() - before


@contextmanager
def looping(count: int) -> Iterator[None]:
    """With so many processes that do nothing but take time."""
    loops = [subprocess.Popen([sys.executable, "-S", "-c", LOOP]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
