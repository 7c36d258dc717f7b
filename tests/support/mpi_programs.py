"""Run by mpiexec: several programs on one graph file, with compiled kernels; rank 0 stores the answers.

mpiexec -n N python mpi_programs.py GRAPH.h5 ANSWERS.npz PROGRAM,... [moving]

moving: bounds between ranks are others after every iteration, and sweeps group their messages.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import numpy as np
from penstock.engine import Graph, Program
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.cdlp import CDLP
from penstock.engine.programs.kcore import Coreness
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.reachability import Reachability
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.triangles import Triangles
from penstock.engine.programs.wcc import WCC
from penstock.engine.session import Session

SOURCE = 3
RUNS: dict[str, tuple[Callable[[], Program], dict[str, object]]] = {
    "bfs": (lambda: BFS(SOURCE), {}),
    "bfs-push": (lambda: BFS(SOURCE), {"direction": "push"}),
    "sssp": (lambda: SSSP(SOURCE), {}),
    "sssp-sync-pull": (lambda: SSSP(SOURCE), {"mode": "sync", "direction": "pull"}),
    "reachability": (lambda: Reachability(SOURCE), {}),
    "pagerank": (lambda: PageRank(tol=0, max_iter=5), {}),
    "pagerank-little-memory": (lambda: PageRank(tol=0, max_iter=5), {"host_memory": "8MiB"}),
    "wcc": (WCC, {}),
    "coreness": (Coreness, {}),
    "cdlp": (CDLP, {}),
    "triangles": (Triangles, {}),
}


def answers(graph: Graph, ranks: object, threads: int, names: Iterable[str]) -> dict[str, np.ndarray]:
    """The fields of some of `RUNS`, by names of both."""
    found = {}
    for name in names:
        make, options = RUNS[name]
        with Session(graph, ranks=ranks, threads=threads, device="cpu", **options) as session:
            result = session.run(make())
            found |= {f"{name}/{field}": np.asarray(values) for field, values in result.fields.items()}
    return found


def moving_answers(graph: Graph, ranks: object, names: Iterable[str]) -> dict[str, np.ndarray]:
    """The same while bounds move."""
    from penstock.engine.kernels.host import group_sources
    from penstock.engine.resources import host_resources
    from support.forced_moves import moving

    host_resources.LEAST_VERTICES, host_resources.LEAST_SWEEPS, group_sources.GAIN = 0, 0, np.inf
    with moving():
        return answers(graph, ranks, 1, names)


if __name__ == "__main__":
    from penstock.engine.ranks.mpi import MpiCommunicator

    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    world = MpiCommunicator()
    give = moving_answers if sys.argv[4:] == ["moving"] else partial(answers, threads=1)
    all_answers = give(Graph.open(sys.argv[1]), world, names=sys.argv[3].split(","))
    if world.rank == 0:
        np.savez(sys.argv[2], **all_answers)
    world.wait()
