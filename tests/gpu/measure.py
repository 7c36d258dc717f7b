"""Measure a real device: link rates, kernels on resident edges, every route on a graph that does not fit.

    PYTHONPATH=… python tests/gpu/measure.py rates compiling levels:3000 programs:22 routes:22:0.25 phases:24

`phases:SCALE[:MB[:BLOCKS,…[:NAMES]]]` prints what each launch of a sweep takes (`phases.py`): with all edges resident
or with MB of them (0: all), with so many blocks a multiprocessor in every launch (0: as they are), of these programs.
A tool of the developers: it prints a short table, last line last. Graphs are Penstock's own R-MAT, sorted on the GPU.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

if not hasattr(np, "row_stack"):
    np.row_stack = np.vstack

import cupy
from penstock.engine.kernels.cuda import launch as cuda_kernels
from penstock.engine.program.program import Program
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.chebyshev import ChebyshevPageRank
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.wcc import WCC
from penstock.engine.session import Session
from penstock.engine.state.result import Result
from penstock.storage.base.slot_pool import aligned_empty
from penstock.storage.format.graph import Graph
from penstock.storage.ingest.synthetic import BATCH_EDGES, rmat
from penstock.tools import cli
from penstock.transfer.devices.cuda import CudaDevice
from penstock.transfer.routes.registry import serving
from phases import phases

LINES: list[str] = []


def say(text: str) -> None:
    LINES.append(text)
    print(f"{time.perf_counter() - BEGAN:7.1f}s {text}", flush=True)


BEGAN = time.perf_counter()

_WEIGH = cupy.ElementwiseKernel(
    "uint64 key",
    "uint8 weight",
    """unsigned long long u = key >> 32, v = key & 0xffffffffull, a = u < v ? u : v, b = u < v ? v : u;
    unsigned long long x = (a << 32 | b) * 0x9E3779B97F4A7C15ull;
    x ^= x >> 29; x *= 0xBF58476D1CE4E5B9ull; x ^= x >> 32;
    weight = 1 + x % 63;""",
    "weigh",
)


def graph_of(scale: int, *, weights: bool = True, hubs: bool = False) -> Graph:
    """R-MAT of edge factor 16, every edge in both rows, rows sorted; hubs: renumbered by falling degree."""
    began = time.perf_counter()
    source = rmat(scale, 16, seed=1)
    vertices, edges = 1 << scale, source.edges
    keys = cupy.empty(2 * edges, dtype=np.uint64)
    with ThreadPoolExecutor(16) as pool:

        def make(first: int) -> tuple[int, Any, Any]:
            batch = source.batch(first, 16 * BATCH_EDGES)
            return first, batch.sources.astype(np.uint64), batch.targets.astype(np.uint64)

        for first, sources, targets in pool.map(make, range(0, edges, 16 * BATCH_EDGES)):
            u, v = cupy.asarray(sources), cupy.asarray(targets)
            keys[first : first + len(u)] = u << np.uint64(32) | v
            keys[edges + first : edges + first + len(u)] = v << np.uint64(32) | u
    made = time.perf_counter()
    if hubs:
        degrees = cupy.bincount((keys >> np.uint64(32)).astype(np.int64), minlength=vertices)
        rank = cupy.empty(vertices, dtype=np.uint64)
        rank[cupy.argsort(-degrees)] = cupy.arange(vertices, dtype=np.uint64)
        low = rank[(keys & np.uint64(0xFFFFFFFF)).astype(np.int64)]
        keys = rank[(keys >> np.uint64(32)).astype(np.int64)] << np.uint64(32) | low
        del rank, degrees, low
    keys.sort()
    weight = _WEIGH(keys) if weights else None
    neighbors = aligned_empty(2 * edges, np.uint32)
    (keys & np.uint64(0xFFFFFFFF)).astype(np.uint32).get(out=neighbors)
    keys >>= np.uint64(32)
    offsets = cupy.searchsorted(keys, cupy.arange(vertices + 1, dtype=np.uint64)).get()
    heavy = None
    if weight is not None:
        heavy = aligned_empty(2 * edges, np.uint8)
        weight.get(out=heavy)
    del keys, weight
    cupy.get_default_memory_pool().free_all_blocks()
    sorted_ = time.perf_counter()
    graph = Graph.from_arrays(offsets, neighbors, heavy, directed=False)
    say(
        f"R-MAT {scale}: {2 * edges:,} entries; generated in {made - began:.1f} s, sorted {sorted_ - made:.1f} s, "
        f"checked {time.perf_counter() - sorted_:.1f} s"
    )
    return graph


def grid(side: int) -> Graph:
    """A grid of `side` squared vertices, weights 1..63."""
    at = np.arange(side * side, dtype=np.int64).reshape(side, side)
    ends = [(at[:, :-1], at[:, 1:]), (at[:-1], at[1:])]
    u = np.concatenate([a.ravel() for a, b in ends] + [b.ravel() for a, b in ends])
    v = np.concatenate([b.ravel() for a, b in ends] + [a.ravel() for a, b in ends])
    order = np.lexsort((v, u))
    low, high = np.minimum(u, v)[order], np.maximum(u, v)[order]
    weights = (1 + (low * 7919 + high * 104729) % 63).astype(np.uint8)
    offsets = np.searchsorted(u[order], np.arange(side * side + 1))
    return Graph.from_arrays(offsets, v[order].astype(np.uint32), weights, directed=False)


def levels(side: int) -> None:
    """BFS and SSSP on a resident grid of `side` squared vertices: microseconds an iteration, by blocks of a stretch."""
    graph = grid(side)
    with Session(graph, device="cpu") as session:
        answers = [session.run(program).fields for program in (BFS(0), SSSP(0))]
    most = cuda_kernels.blocks_together()
    for name, of, answer in (("bfs", BFS, answers[0]), ("sssp", SSSP, answers[1])):
        for direction in ("auto", "push"):
            with Session(graph, device="cuda:0", direction=direction) as session:
                for blocks in (0, 1, 8, 33, 66, most) if direction == "push" else (most,):
                    stretching(blocks)
                    SPENT.clear()
                    began = time.perf_counter()
                    results = [session.run(of(0)) for _ in range(3)]
                    best = min(results, key=lambda r: r.seconds)
                    each = best.seconds / best.iterations * 1e6
                    good = all(np.array_equal(answer[field], best.fields[field]) for field in answer)
                    say(
                        f"grid {side}x{side} {name} {direction} {blocks} blocks: {best.iterations} iterations, "
                        f"{each:.1f} us each, {spent()}{'equal to the host' if good else 'WRONG'}, "
                        f"first {results[0].seconds * 1e3:.0f} ms, all {time.perf_counter() - began:.1f} s"
                    )
    stretching(most)


ABLE = cuda_kernels.CudaKernels.can_fuse
STRETCH = cuda_kernels.CudaKernels.fused_iterations
SPENT: list[tuple[float, int]] = []


def stretching(blocks: int) -> None:
    """Run stretches in so many blocks, none for 0; what they take is added up in SPENT."""
    cuda_kernels.blocks_together = lambda: blocks
    cuda_kernels.CudaKernels.can_fuse = ABLE if blocks else lambda kernels, frontier: False
    cuda_kernels.CudaKernels.fused_iterations = timed


def timed(*arguments: Any) -> Any:
    began = time.perf_counter()
    done = STRETCH(*arguments)
    SPENT.append((time.perf_counter() - began, len(done.frontiers)))
    return done


def spent() -> str:
    """What an iteration took on the device: of all launches but those of the first third, which may compile."""
    some = SPENT[len(SPENT) // 3 :]
    if not some:
        return ""
    each = sum(seconds for seconds, _ in some) / sum(count for _, count in some) * 1e6
    return f"{each:.1f} us of them in {len(some)} launches, "


def compiling() -> None:
    """Seconds of the first run of each program in this process, on a tiny graph: what loading or compiling costs."""
    graph = grid(20)
    for program in (
        BFS(0),
        SSSP(0),
        WCC(),
        PageRank(tol=0, max_iter=3, weight=False),
        ChebyshevPageRank(tol=0.01, weight=False),
    ):
        times = []
        for _ in range(2):
            began = time.perf_counter()
            with Session(graph, device="cuda:0") as session:
                session.run(program)
            times.append(time.perf_counter() - began)
        say(f"{type(program).__name__}: first run {times[0]:.2f} s, in a second session {times[1]:.3f} s")


def rates() -> None:
    """Copies by size, and reading in place, ascending."""
    device = CudaDevice(0)
    device.use()
    host = device.host_array(1 << 30, np.uint8)
    host[:] = 1
    target = device.array(1 << 30, np.uint8)
    stream = device.stream()
    for size in (1 << 16, 1 << 20, 8 << 20, 32 << 20, 1 << 30):
        best = 1e9
        for _ in range(5):
            first = device.event(stream)
            device.copy_in(target[:size], host[:size], stream)
            last = device.event(stream)
            device.wait(last)
            best = min(best, device.seconds(first, last))
        say(f"pinned copy {size >> 10:8d} KiB {size / best / 1e9:6.1f} GB/s {best * 1e6:8.1f} us")
    total = cupy.ReductionKernel("uint32 x", "uint64 y", "x", "a + b", "y = a", "0", "total")
    mapped = device.mapped(host.view(np.uint32))
    best = 1e9
    for _ in range(3):
        first = device.event(None)
        total(mapped)
        last = device.event(None)
        device.wait(last)
        best = min(best, device.seconds(first, last))
    say(f"in place, ascending, CuPy reduction: {host.nbytes / best / 1e9:6.1f} GB/s")
    device.close()


def calibrate() -> None:
    """`penstock calibrate` on the first GPU: quickly with nothing compiled yet, again, and at length with this disk."""
    for words in (["--quick"], ["--quick"], ["--file", "."]):
        began = time.perf_counter()
        code = cli.run_command(["calibrate", "--device", "cuda:0", "--force", *words])
        say(f"penstock calibrate {' '.join(words)}: exit {code}, {time.perf_counter() - began:.2f} s")


def trials(graph: Graph) -> list[tuple[str, Program, dict[str, Any]]]:
    degrees = graph.out.index().degrees(0, graph.vertices)
    sources = [int(v) for v in np.random.default_rng(1).choice(np.flatnonzero(degrees > 0), 2)]
    found: list[tuple[str, Program, dict[str, Any]]] = []
    for source in sources:
        found.append(("bfs", BFS(source), {}))
    for source in sources:
        found.append(("sssp", SSSP(source), {}))
    found.append(("wcc", WCC(), {}))
    found.append(("sweep", PageRank(tol=0, max_iter=3, weight=False), {}))
    found.append(("chebyshev", ChebyshevPageRank(tol=0.0042, max_iter=100, weight=False), {}))
    found.append(("residual", PageRank(tol=0.01, max_iter=1000, weight=False), {"mode": "async"}))
    return found


def programs(graph: Graph, options: dict[str, Any], only: tuple[str, ...] = (), repeat: int = 3) -> dict[str, Any]:
    """Time every program; print each one's iterations of the best run."""
    answers: dict[str, Any] = {}
    for mode in ("auto", "async"):
        chosen = [t for t in trials(graph) if t[2].get("mode", "auto") == mode and (not only or t[0] in only)]
        if not chosen:
            continue
        with Session(graph, mode=mode, **options) as session:
            for number, (name, program, _) in enumerate(chosen):
                times = []
                for _ in range(repeat + (number == 0)):
                    result = session.run(program)
                    times.append(result.seconds)
                best = min(times)
                link = sum(task.bytes_link for record in result.records for task in record.tasks)
                label = " ".join(str(value) for key, value in options.items() if key != "device")
                say(
                    f"{name:9s} {label}: {best * 1e3:8.2f} ms, {result.iterations} iterations, "
                    f"link {link / 1e9:.3f} GB, "
                    f"times {[round(t * 1e3, 1) for t in times]}{copies_of(result)}{lines_of(result)}"
                )
                for r in result.records[:12]:
                    routes = [(t.route, len(t.partitions), round(t.bytes_link / 1e6, 1)) for t in r.tasks]
                    kinds = {
                        kind: (sum(n for k, n, _ in routes if k == kind), sum(b for k, _, b in routes if k == kind))
                        for kind in dict.fromkeys(k for k, _, _ in routes)
                    }
                    print("     ", r.direction, r.vertices, r.edges, round(r.seconds * 1e3, 2), "ms", kinds)
                answers[f"{name}{number}"] = result.fields
    return answers


def lines_of(result: Result) -> str:
    """Lines of ids that pushes counted as they read them in place, over those that the active rows have."""
    found = [t for r in result.records if r.direction == "push" for t in r.tasks if t.route == "zero-copy"]
    told, read = sum(task.lines for task in found), sum(task.lines_read for task in found)
    return f", pushes read {read / 1e6:.3f} M lines, {read / told:.3f} of the active rows'" if told and read else ""


def copies_of(result: Result) -> str:
    """Seconds that the link was at copies, as the records say, over those of the run."""
    copies = sum(task.link_seconds for record in result.records for task in record.tasks)
    return f", copies busy {copies * 1e3:.1f} ms, {copies / result.seconds:.0%} of the run" if copies else ""


def compare(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    for name, fields in ours.items():
        for field, values in fields.items():
            other = theirs[name][field]
            if values.dtype.kind == "f":
                gap = float(np.abs(values - other).sum())
                good = gap < (0.02 if name.startswith("residual") else 1e-9)
            else:
                gap, good = int(np.count_nonzero(values != other)), bool(np.array_equal(values, other))
            say(f"{name}.{field}: {'equal to the host' if good else 'WRONG'} ({gap})")


def main() -> None:
    graphs: dict[Any, Graph] = {}
    for word in sys.argv[1:]:
        what, *rest = word.split(":")
        if what == "rates":
            rates()
            continue
        if what == "calibrate":
            calibrate()
            continue
        if what == "levels":
            levels(int(rest[0]))
            continue
        if what == "compiling":
            compiling()
            continue
        scale = int(rest[0])
        hubs = "hubs" in rest
        if (scale, hubs) not in graphs:
            graphs.clear()
            graphs[scale, hubs] = graph_of(scale, hubs=hubs)
        graph = graphs[scale, hubs]
        if what == "programs":
            compare(programs(graph, {"device": "cuda:0"}), programs(graph, {"device": "cpu"}, repeat=1))
        elif what == "resident":
            programs(graph, {"device": "cuda:0"}, ("bfs", "sssp", "wcc", "sweep", "chebyshev"), repeat=2)
        elif what == "check":
            parts = 1 << 20 if scale < 24 else 32 << 20
            options = {"device": "cuda:0", "device_edge_memory": int(rest[1]) << 20, "partition_bytes": parts}
            only = ("bfs", "sssp", "wcc", "sweep")
            compare(programs(graph, options, only, repeat=1), programs(graph, {"device": "cpu"}, only, repeat=1))
        elif what == "deltas":
            options = {"device": "cuda:0", "device_edge_memory": int(rest[1]) << 20}
            with Session(graph, **options) as session:
                for delta in (float(text) for text in rest[2].split(",")):
                    for name, program, _ in trials(graph):
                        if name == "sssp":
                            results = [session.run(SSSP(program.source, delta)) for _ in range(2)]
                            best = min(results, key=lambda r: r.seconds)
                            link = sum(task.bytes_link for r in best.records for task in r.tasks)
                            say(
                                f"sssp delta {delta:g}: {best.seconds * 1e3:.1f} ms, {best.iterations} iterations, "
                                f"{sum(r.edges for r in best.records) / 1e9:.2f} G edges, link {link / 1e9:.2f} GB"
                            )
        elif what == "phases":
            megabytes, blocks, names = (rest[1:4] + ["0", "0", "pagerank,chebyshev"][len(rest[1:4]) :])[:3]
            known: dict[str, Program] = {name: program for name, program, _ in trials(graph)}
            known |= {
                "pagerank": PageRank(tol=0, max_iter=10, weight=False),
                "chebyshev": ChebyshevPageRank(tol=0, max_iter=10, weight=False),
            }
            for each in (int(text) for text in blocks.split(",")):
                phases(graph, {name: known[name] for name in names.split(",")}, say, int(megabytes) << 20, each)
        elif what == "routes":
            memory = int(float(rest[1]) * graph.edges * 4)
            for route in (*serving("cuda")[1:], "auto"):
                options = {"device": "cuda:0", "route": route, "device_edge_memory": memory}
                programs(graph, options, tuple(rest[2].split(",")), repeat=2)
        elif what == "budget":
            options = {"device": "cuda:0", "device_edge_memory": int(rest[1]) << 20}
            programs(graph, options, ("bfs", "wcc"), repeat=4)
            programs(graph, options, ("sssp",), repeat=4)
            programs(graph, options, ("sweep", "chebyshev"), repeat=2)
    print("\n".join(["", "table", *LINES]))


if __name__ == "__main__":
    main()
