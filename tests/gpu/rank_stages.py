"""What `two_gpus.py` runs in ranks, each as a process of mpiexec: verbs, programs, reach.

    PYTHONPATH=tests mpiexec -n 2 python3 tests/gpu/rank_stages.py STAGE DEVICE,DEVICE FILE ...

Rank 0 appends what it finds to FILE, a line of JSON at a time, so that a stage that is ended has said what it knows.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import graphs
from penstock.engine import Graph, Program, Result, Session
from penstock.engine.execution.loop import Loop
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.collaborative import CollaborativeFiltering
from penstock.engine.programs.pagerank import PPR, PageRank
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.wcc import WCC
from penstock.engine.ranks.mpi import MpiCommunicator
from penstock.engine.ranks.rank_devices import StagedCommunicator
from penstock.engine.ranks.rank_exchange import RankExchange
from penstock.engine.resources.link_stream import LinkStream
from penstock.storage.ingest.synthetic import rmat
from support.catalogue_oracles import SOURCE
from support.program_cases import CASES as CATALOGUE

CASES: dict[str, Callable[[], Program]] = {
    **{name: make for name, (make, _) in CATALOGUE.items()},
    "sssp": lambda: SSSP(SOURCE),
    "wcc": WCC,
    "sweeps": lambda: PageRank(tol=0, max_iter=5, weight=False),
    "personalized_pagerank": lambda: PPR(SOURCE),
    "cf": lambda: CollaborativeFiltering(rank=9, max_iter=4),
}
WAYS: dict[str, dict[str, Any]] = {
    "resident": {},
    "streamed": {"device_edge_memory": 1 << 16, "partition_bytes": 1 << 13},
    "push": {"direction": "push"},
}
MEMORY = {"device_memory": 4 << 30, "host_memory": 4 << 30}
VECTOR_BYTES = 256 << 20
TURNS = 5


class Told:
    """The file of what is found; only rank 0 writes."""

    def __init__(self, path: str, ranks: Any) -> None:
        self._path, self._ranks = path, ranks

    def add(self, **facts: Any) -> None:
        if self._ranks is None or self._ranks.rank == 0:
            with open(self._path, "a", encoding="utf-8") as file:
                file.write(json.dumps(facts) + "\n")


def verbs(ranks: Any, device: str, told: Told) -> None:
    """NCCL itself: every verb moves what it says, and how fast slices of 256 MiB pass."""
    from penstock.engine.ranks.nccl import NcclCommunicator, unusable
    from penstock.transfer.devices.cuda import CudaDevice, number_of

    gpu = CudaDevice(number_of(device), 4 << 30)
    reason = unusable(ranks, gpu)
    if reason is not None:
        told.add(verb="none", wrong=reason)
        return
    began = time.perf_counter()
    world = NcclCommunicator(ranks, gpu)
    told.add(verb="connect", seconds=time.perf_counter() - began)
    size, rank = ranks.size, ranks.rank
    wholes = [np.arange(1000, dtype=np.float64) + 1000 * one for one in range(size)]
    for bounds in (np.linspace(0, 1000, size + 1).astype(np.int64), np.array([0, 10, *[1000] * (size - 1)])):
        mine, here = gpu.to_device(wholes[rank]), slice(int(bounds[rank]), int(bounds[rank + 1]))
        world.gather_slices(mine, bounds)
        wanted = np.concatenate([one[bounds[r] : bounds[r + 1]] for r, one in enumerate(wholes)])
        found = gpu.array(size * (here.stop - here.start), np.float64).reshape(size, -1)
        world.exchange_slices(gpu.to_device(wholes[rank]), bounds, found)
        gpu.finish()
        good = [
            np.array_equal(gpu.to_host(mine), wanted),
            np.array_equal(gpu.to_host(found), [one[here] for one in wholes]),
        ]
        told.add(verb=f"slices {np.diff(bounds).tolist()}", wrong="" if all(good) else str(good))
    whole = gpu.array(VECTOR_BYTES, np.uint8)
    for name, least in (("equal", VECTOR_BYTES // size), ("unequal", VECTOR_BYTES // size // 2)):
        bounds = np.array([0, *np.linspace(least, VECTOR_BYTES, size)]).astype(np.int64)
        found = gpu.array(size * int(bounds[rank + 1] - bounds[rank]), np.uint8).reshape(size, -1)
        for call, act in (
            ("gather", partial(world.gather_slices, whole, bounds)),
            ("exchange", partial(world.exchange_slices, whole, bounds, found)),
        ):
            told.add(verb=f"{call} 256 MiB, {name}", seconds=min(_seconds(gpu, ranks, act) for _ in range(5)))
    for nbytes in (64, 1 << 14, 1 << 16, 1 << 17, 1 << 20, 1 << 24):
        bounds = np.linspace(0, nbytes, size + 1).astype(np.int64)
        act = partial(world.gather_slices, whole, bounds)
        told.add(verb=f"gather {nbytes} B", seconds=min(_seconds(gpu, ranks, act, 20) for _ in range(5)) / 20)
    told.add(verb="numbers of the host", seconds=_seconds(gpu, ranks, partial(ranks.gather_numbers, bounds), 100) / 100)
    world.close()
    gpu.close()


def _seconds(gpu: Any, ranks: Any, act: Callable[[], Any], times: int = 1) -> float:
    ranks.wait()
    gpu.finish()
    began = time.perf_counter()
    for _ in range(times):
        act()
        gpu.finish()
    return float(ranks.gather_numbers(np.array([time.perf_counter() - began])).max())


def programs(ranks: Any, device: str, told: Told, path: str, folder: str, names: str) -> None:
    """The answers of programs, in files that `two_gpus.py` compares."""
    for name in names.split(","):
        for way, options in WAYS.items():
            began = time.perf_counter()
            try:
                chosen = MEMORY | {"threads": 2, "device": device} | options
                if device == "cpu":
                    chosen = {key: value for key, value in chosen.items() if not key.startswith("device_")}
                with Session(Graph.open(path), ranks=ranks, **chosen) as session:
                    fields = session.run(CASES[name]()).fields
            except Exception as error:
                told.add(program=name, way=way, error=f"{type(error).__name__}: {error}")
                raise
            if ranks is None or ranks.rank == 0:
                np.savez(Path(folder) / f"{name}-{way}.npz", **{key: np.asarray(one) for key, one in fields.items()})
            told.add(program=name, way=way, seconds=time.perf_counter() - began)


Timed = tuple[str, dict[str, Any], Callable[[Sequence[int]], list[Program]], bool]
REACH: list[Timed] = [
    (
        "sweep, streamed",
        {"tuning": {"residency": "none"}},
        lambda at: [PageRank(tol=0, max_iter=3, weight=False)],
        True,
    ),
    ("sweep, caches", {}, lambda at: [PageRank(tol=0, max_iter=3, weight=False)], True),
    ("sssp, caches", {}, lambda at: [SSSP(source) for source in at], False),
    ("wcc, caches", {}, lambda at: [WCC()], False),
    ("bfs, caches", {}, lambda at: [BFS(source) for source in at], False),
]
"""Name, options, programs of which the mean counts, whether an iteration counts rather than the run."""


def reach(ranks: Any, device: str, told: Told, scale: str, edge_memory: str, seconds: str) -> None:
    """R-MAT in memory, a copy in each rank: one GPU, then all of them, with the same edge memory each."""
    end = time.monotonic() + float(seconds)
    began = time.perf_counter()
    graph = _graph(int(scale), device)
    at = graphs.sources_of(graph)
    told.add(figure="graph", seconds=time.perf_counter() - began, entries=graph.edges)
    options = {"device": device, "device_edge_memory": edge_memory, "threads": max(1, os.cpu_count() // ranks.size)}
    if device == "cpu":
        del options["device_edge_memory"]
    profile = Profile(device)
    for name, more, make, by_iteration in REACH:
        more = {} if device == "cpu" else more
        ranks.wait()
        if ranks.gather_numbers(np.array([time.monotonic() > end])).any():
            told.add(figure=name, skipped=True)
            continue
        made = make(at)
        if ranks.rank == 0:
            with Session(graph, **options, **more) as session:
                told.add(figure=name, ranks=1, **_timed(session, made, by_iteration, None))
                told.add(profile=f"{name}, one", figure="profile", **profile.of(partial(session.run, made[0])))
        ranks.wait()
        with Session(graph, ranks=ranks, **options, **more) as session:
            told.add(figure=name, ranks=ranks.size, **_timed(session, made, by_iteration, ranks))
            told.add(profile=name, figure="profile", **profile.of(partial(session.run, made[0])))


def _timed(session: Session, made: Sequence[Program], by_iteration: bool, ranks: Any) -> dict[str, Any]:
    """Milliseconds of each turn, and the parts of the exchange and of the link in the last one."""
    turns = []
    for _ in range(2 + TURNS):
        if ranks is not None:
            ranks.wait()
        found = [session.run(program) for program in made]
        runs = sum(one.iterations for one in found) if by_iteration else len(found)
        seconds = sum(one.seconds for one in found)
        if ranks is not None:
            seconds = float(ranks.gather_numbers(np.array([seconds])).max())
        turns.append(seconds / runs * 1e3)
    records = [record for one in found for record in one.records]
    return {
        "ms": turns[2:],
        "first_ms": turns[0],
        "exchange": sum(record.exchange_seconds for record in records) / seconds,
        "link_gb": sum(record.summary()["bytes_link"] for record in records) / 1e9,
        "iterations": len(records),
    }


def _graph(scale: int, device: str) -> Graph:
    if device.startswith("cuda"):
        import cupy

        cupy.cuda.Device(int(device.partition(":")[2])).use()
        return graphs.rmat_by_gpu(scale)
    batch = rmat(scale, graphs.EDGE_FACTOR, seed=1).batch(0, graphs.EDGE_FACTOR << scale)
    ends = np.concatenate([[batch.sources, batch.targets], [batch.targets, batch.sources]], axis=1).astype(np.int64)
    u, v = ends[:, np.lexsort(ends[::-1])]
    offsets = np.searchsorted(u, np.arange((1 << scale) + 1))
    weights = (1 + (np.minimum(u, v) * 7919 + np.maximum(u, v) * 104729) % 63).astype(np.uint8)
    return Graph.from_arrays(offsets, v.astype(np.uint32), weights, directed=False)


class Profile:
    """What iterations did and why, and seconds of the methods by which ranks exchange, each waited for.

    walks: of frontiers that are compared with the unsettled rows, by their iterations: edges of these in this rank, the
    limit of the bucket, and which was walked.
    """

    def __init__(self, device: str) -> None:
        self._on, self.seconds, self.calls = False, Counter[str](), Counter[str]()
        self.walks: dict[int, str] = {}
        self._follow()
        kinds: list[type] = [MpiCommunicator, RankExchange, StagedCommunicator]
        self._finish: Callable[[], None] = lambda: None
        if device.startswith("cuda"):
            import cupy
            from penstock.engine.kernels.cuda.launch_exchange import CudaExchangeKernels
            from penstock.engine.ranks.nccl import NcclCommunicator

            kinds += [CudaExchangeKernels, NcclCommunicator]
            self._finish = cupy.cuda.Stream.null.synchronize
        for kind in kinds:
            for name, method in list(vars(kind).items()):
                if callable(method) and not name.startswith("__"):
                    setattr(kind, name, self._timed(f"{kind.__name__}.{name}", method))

    def _follow(self) -> None:
        decide, count, counted = Loop._unsettled, LinkStream.unsettled, Counter[str]()

        def counting(stream: LinkStream, *arguments: Any) -> Any:
            found = count(stream, *arguments)
            counted["edges"] = int(found.active_edges.sum())
            return found

        def deciding(loop: Loop, frontier: Any, scalars: Any) -> Any:
            counted.clear()
            found = decide(loop, frontier, scalars)
            if counted:
                taken = "pushed" if found is None else "left for them"
                self.walks[loop.iteration] = f", {counted['edges']:,} unsettled here, below {loop.due.limit:g}: {taken}"
            return found

        LinkStream.unsettled, Loop._unsettled = counting, deciding  # type: ignore[method-assign]

    def _timed(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(*arguments: Any, **named: Any) -> Any:
            if not self._on:
                return method(*arguments, **named)
            self._finish()
            began = time.perf_counter()
            found = method(*arguments, **named)
            self._finish()
            self.seconds[name] += time.perf_counter() - began
            self.calls[name] += 1
            return found

        return call

    def of(self, run: Callable[[], Result]) -> dict[str, Any]:
        """What a run says of its iterations and of its exchange."""
        self._on = True
        self.seconds.clear()
        self.calls.clear()
        self.walks.clear()
        records = run().records
        self._on = False
        iterations = [
            f"{one.direction} {one.vertices:,} vertices {one.edges:,} edges {one.seconds * 1e3:.2f} ms, "
            f"exchange {one.exchange_seconds * 1e3:.2f}, link {one.summary()['bytes_link'] / 1e6:.1f} MB, "
            f"{dict(Counter(task.route for task in one.tasks))}{self.walks.get(one.number, '')}"
            for one in records[:20]
        ]
        parts = [f"{name} {self.calls[name]} x, {took * 1e3:.2f} ms" for name, took in self.seconds.most_common()]
        return {"iterations": iterations, "parts": parts}


STAGES: dict[str, Callable[..., None]] = {"verbs": verbs, "programs": programs, "reach": reach}


def _ranks(alone: bool) -> Any:
    if alone:
        return None
    return MpiCommunicator()


def main(stage: str, devices: str, file: str, *more: str) -> None:
    """Run a stage in this rank; an error ends all ranks."""
    names = devices.split(",")
    ranks = _ranks(len(names) == 1)
    try:
        STAGES[stage](ranks, names[0 if ranks is None else ranks.rank], Told(file, ranks), *more)
    except BaseException:
        traceback.print_exc()
        if ranks is None:
            raise
        sys.stderr.flush()
        ranks.abort(1)
    if ranks is not None:
        ranks.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
