"""heat, circuit and neural on a GPU beside the cores, and an epoch of cf beside plain CuPy: a table, in a minute.

    bash tests/gpu/on_device.sh python3 tests/gpu/simulations.py > $OUT/simulations.txt

Exit code 1: an answer is not that of the cores.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from benchmarks.runner import prepare_cuda  # noqa: E402 - after the path

prepare_cuda()

import cupy  # noqa: E402 - after it is prepared
import cupyx  # noqa: E402
import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from penstock.engine import Graph, Program, Session, from_edges  # noqa: E402
from penstock.engine.programs.circuit import Circuit  # noqa: E402
from penstock.engine.programs.collaborative import CollaborativeFiltering  # noqa: E402
from penstock.engine.programs.heat import Heat  # noqa: E402
from penstock.engine.programs.katz import Katz  # noqa: E402
from penstock.engine.programs.neural import Neural  # noqa: E402

VERTICES, EDGES, SWEEPS, TURNS = 1 << 20, 1 << 23, 30, 5
HELD = {0: 5.0, 77: -1.0}
PROGRAMS: dict[str, Callable[[], Program]] = {
    "katz": lambda: Katz(alpha=1e-9, tol=0, max_iter=SWEEPS),
    "heat": lambda: Heat(HELD, tol=0, max_iter=SWEEPS),
    "neural": lambda: Neural(HELD, gain=1e-4, tol=0, max_iter=SWEEPS),
    "circuit": lambda: Circuit(HELD, tol=1e-9, floating=True),
}
"""katz: a sweep of the same kind that is in the other tables."""
WAYS: dict[str, dict[str, Any]] = {
    "cores": {"device": "cpu"},
    "resident": {"device": "cuda:0"},
    "filter": {"device": "cuda:0", "route": "filter", "device_edge_memory": 1 << 26},
    "zero-copy": {"device": "cuda:0", "route": "zero-copy", "device_edge_memory": 1 << 26},
}
USERS, ITEMS, RATINGS, RANK = 162_541, 59_047, 25_000_000, 8
"""The size of MovieLens 25M."""


def skewed(random: np.random.Generator, most: int, count: int, power: int) -> NDArray[np.int64]:
    """Ids below `most`, small ones more often."""
    return np.minimum((random.random(count) ** power * most).astype(np.int64), most - 1)


def simulations(random: np.random.Generator) -> bool:
    """Print milliseconds an iteration of every program and way; return whether all answers are those of the cores."""
    ends = skewed(random, VERTICES, 2 * EDGES, 3).reshape(2, -1)
    weights = random.integers(1, 60, EDGES).astype(np.uint8)
    graph = from_edges(ends[0], ends[1], weights, vertices=VERTICES, undirected=True)
    wanted: dict[str, NDArray[Any]] = {}
    good = True
    for way, options in WAYS.items():
        with Session(graph, **options) as session:
            for name, make in PROGRAMS.items():
                session.run(make())
                results = [session.run(make()) for _ in range(1 if way == "cores" else TURNS)]
                values = next(iter(results[0].fields.values()))
                right = wanted.setdefault(name, values)
                tolerance = 1e-3 if values.dtype == np.float32 else 1e-7
                same = bool(np.allclose(values, right, rtol=tolerance, atol=tolerance, equal_nan=True))
                good &= same
                each = median(result.seconds / result.iterations for result in results) * 1e3
                count = results[0].iterations
                print(f"{name:14} {way:10} {each:9.3f} ms an iteration, {count:4} iterations", "" if same else "WRONG")
    return good


def ratings(random: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:
    """Users, items and what users gave them."""
    users, items = skewed(random, USERS, RATINGS, 2), skewed(random, ITEMS, RATINGS, 4) + USERS
    return users, items, random.integers(1, 11, RATINGS).astype(np.uint8)


def epoch_seconds(graph: Graph) -> float:
    """Seconds of an epoch of cf: those of twelve less those of two, tenths."""
    with Session(graph, device="cuda:0") as session:
        few, many = (CollaborativeFiltering(rank=RANK, max_iter=count) for count in (2, 12))
        session.run(few)
        return (session.run(many).seconds - session.run(few).seconds) / 10


def plain_epoch_seconds(users: NDArray[Any], items: NDArray[Any], rating: NDArray[Any]) -> float:
    """Seconds of an epoch as gathers and scattered sums of CuPy, all edges at once: the same arithmetic."""
    one, other = cupy.asarray(users.astype(np.int32)), cupy.asarray(items.astype(np.int32))
    given, mean = cupy.asarray(rating.astype(np.float64)), float(rating.mean())
    values = cupy.asarray(np.random.default_rng(2).normal(0, 0.1, (USERS + ITEMS, RANK + 1)))
    speed = cupy.zeros_like(values)

    def epoch() -> None:
        a, b = values[one], values[other]
        error = given - mean - a[:, RANK] - b[:, RANK] - (a[:, :RANK] * b[:, :RANK]).sum(1)
        slope, curve = cupy.zeros_like(values), cupy.zeros_like(values)
        for ends, far in ((one, b), (other, a)):
            far[:, RANK] = 1
            cupyx.scatter_add(slope, ends, error[:, None] * far)
            cupyx.scatter_add(curve, ends, far * far)
        speed[...] = 0.8 * speed + 0.2 * (slope - 12 * values) / (curve + 12)
        values[...] += speed

    epoch()
    cupy.cuda.Device().synchronize()
    begin = time.perf_counter()
    for _ in range(TURNS):
        epoch()
    cupy.cuda.Device().synchronize()
    return (time.perf_counter() - begin) / TURNS


def main() -> int:
    """Measure all, and print it."""
    random = np.random.default_rng(1)
    good = simulations(random)
    users, items, rating = ratings(random)
    graph = from_edges(users, items, rating, vertices=USERS + ITEMS, undirected=True)
    print(f"cf, {RATINGS} ratings, rank {RANK}: Penstock {epoch_seconds(graph) * 1e3:9.1f} ms an epoch")
    print(f"cf, the same: plain CuPy {plain_epoch_seconds(users, items, rating) * 1e3:9.1f} ms an epoch")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
