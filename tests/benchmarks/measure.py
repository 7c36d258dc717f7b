"""The suites `cpu`, `gpu` and `device`: programs in memory and on disk, what users wait for, the rates of the link.

Times of programs are those of their iterations (`Result.seconds`): from the first values to the last kernel, with the
edges loaded as the case says.
"""

from __future__ import annotations

import io
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
from penstock.engine import Graph, Program, Result, Session
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import ChebyshevPageRank, PageRank
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.wcc import WCC
from penstock.tools import cli

from benchmarks import disk, graphs
from benchmarks.runner import Runner, penstock, prepare_cuda, wall_seconds

Case = tuple[str, Sequence[Program], bool]
"""A name, programs of which the mean is measured, and whether an iteration counts rather than the run."""

DETAILED = 12
COPIES = (1 << 16, 1 << 20, 8 << 20, 32 << 20, 1 << 30)
COMPARED_BELOW = 2
"""`bench compare` runs on an R-MAT so many scales below that of the suite: its peers take long."""


def cpu(runner: Runner) -> None:
    """What the cores do: conversion, programs in memory and on disk, the peers, the command line."""
    scale = runner.choices.scale or 20
    with tempfile.TemporaryDirectory(dir=runner.choices.folder) as name:
        folder = Path(name)
        text, stored = folder / "rmat.txt", folder / "rmat.h5"
        penstock("generate", "rmat", "--scale", scale, "--weights", "1..63", "--output", text)

        def converted(*options: str) -> float:
            return float(penstock("convert", text, stored, "--force", *options)["seconds"])

        runner.measure(f"rmat{scale} convert text", "s", lambda: converted("--no-weights"))
        runner.measure(f"rmat{scale} convert text undirected weighted", "s", lambda: converted("--undirected"))
        names = [*(f"memory {name}" for name in CPU_CASES), *(f"disk cpu {name}" for name in disk.PROGRAMS)]
        if runner.wants(*(f"rmat{scale} {name}" for name in names)):
            converted("--undirected")
            graph = Graph.open(stored)
            known = cases_of(graph)
            time_cases(runner, graph, f"rmat{scale} memory", [known[name] for name in CPU_CASES], {"device": "cpu"})
            disk.measure(runner, graph, f"rmat{scale}", ("cpu",), 1 << scale)
        compare_with_peers(runner, scale - COMPARED_BELOW, folder)
        penstock("generate", "rmat", "--scale", 8, "--output", folder / "tiny.h5")
        tiny = (folder / "tiny.h5", "--source", 1, "--device", "cpu")
        runner.measure("penstock run bfs, tiny graph", "s", lambda: wall_seconds("run", "bfs", *tiny))
        runner.measure("penstock --help", "s", lambda: wall_seconds("--help"))


CPU_CASES = ("bfs", "sssp", "wcc", "pagerank10")


def compare_with_peers(runner: Runner, scale: int, folder: Path) -> None:
    """`penstock bench compare`: seconds of Penstock, and their ratio to those of scipy where it is installed."""

    def once() -> dict[str, tuple[float, str]]:
        facts = penstock("bench", "compare", "--scale", scale, "--repeat", 1, "--folder", folder)
        runner.wrong.extend(f"bench compare: {task} of {system}" for task, system in facts["wrong"])
        found = {task: (times["penstock"], "s") for task, times in facts["seconds"].items()}
        for task, times in facts["seconds"].items():
            if times.get("scipy"):
                found[f"{task} / scipy's"] = times["penstock"] / times["scipy"], "ratio"
        return found

    runner.measure(f"compare rmat{scale}", "", once)


def gpu(runner: Runner) -> None:
    """R-MAT with its edges on the device and over the link, and grids, whose runs have many small iterations."""
    prepare_cuda()
    choices = runner.choices
    scale = choices.scale or 25
    title = f"rmat{scale}{' hubs' if choices.hubs else ''}"
    memories = choices.memory or ("1GiB", "resident")
    labels = {memory: " ".join([title, memory, *(f"{k}={v}" for k, v in choices.given.items())]) for memory in memories}
    groups = [*GPU_CASES, [f"sssp delta {delta:g}" for delta in choices.deltas]]
    if runner.wants(*(f"{label} {name}" for label in labels.values() for group in groups for name in group)):
        graph = graphs.rmat_by_gpu(scale, hubs=choices.hubs)
        runner.say(f"{title}: {graph.edges:,} entries")
        known = cases_of(graph, choices.deltas)
        for memory, label in labels.items():
            options = edge_memory(graph, memory) | {"device": "cuda:0"} | choices.given
            for names in groups:
                mode = {"mode": "async"} if "residual" in names else {}
                if "residual" not in names or memory == "resident":
                    time_cases(runner, graph, label, [known[name] for name in names], options | mode)
        del graph, known
    levels(runner)


GPU_CASES = (("bfs", "wcc"), ("sssp",), ("sweep", "chebyshev"), ("residual",))
"""Those of a group share a session; programs with weights leave the others less memory for edges."""


def levels(runner: Runner) -> None:
    """BFS and SSSP on a grid: an iteration of each."""
    side = runner.choices.side
    cases: list[Case] = [("bfs level", [BFS(0)], True), ("sssp iteration", [SSSP(0)], True)]
    if not runner.wants(*(f"grid{side} {memory} {case[0]}" for memory in GRID_MEMORIES for case in cases)):
        return
    graph = graphs.grid(side)
    for memory in GRID_MEMORIES:
        options = edge_memory(graph, memory) | {"device": "cuda:0"} | runner.choices.given
        time_cases(runner, graph, f"grid{side} {memory}", cases, options)


GRID_MEMORIES = ("resident", "25%")


def edge_memory(graph: Graph, memory: str) -> dict[str, Any]:
    """The option of a Session for a text such as "1GiB", "25%" (of the neighbors) or "resident"."""
    if memory == "resident":
        return {}
    share = memory.removesuffix("%")
    return {"device_edge_memory": memory if share == memory else int(float(share) / 100 * graph.edges * 4)}


def cases_of(graph: Graph, deltas: Sequence[float] = ()) -> dict[str, Case]:
    """The programs by name; searches from two vertices."""
    sources = graphs.sources_of(graph)
    cases: list[Case] = [
        ("bfs", [BFS(source) for source in sources], False),
        ("sssp", [SSSP(source) for source in sources], False),
        ("wcc", [WCC()], False),
        ("sweep", [PageRank(tol=0, max_iter=3, weight=False)], True),
        ("pagerank10", [PageRank(tol=0, max_iter=10, weight=False)], False),
        ("chebyshev", [ChebyshevPageRank(tol=0.0042, max_iter=100, weight=False)], False),
        ("residual", [PageRank(tol=0.01, max_iter=1000, weight=False)], False),
    ]
    cases += [(f"sssp delta {delta:g}", [SSSP(source, delta) for source in sources], False) for delta in deltas]
    return {case[0]: case for case in cases}


def time_cases(
    runner: Runner, graph: Graph, label: str, cases: Sequence[Case], options: Mapping[str, Any], untimed: int = 2
) -> None:
    """Measure programs in one session, milliseconds each; the first runs load edges and correct the rates."""
    chosen = [case for case in cases if runner.wants(f"{label} {case[0]}")]
    if not chosen:
        return
    answers: list[tuple[str, Program, Mapping[str, Any]]] = []
    with Session(graph, **options) as session:
        for name, programs, by_iteration in chosen:
            results: list[Result] = []

            def once(programs: Any = programs, by_iteration: bool = by_iteration, results: Any = results) -> float:
                results[:] = [session.run(program) for program in programs]
                runs = sum(result.iterations for result in results) if by_iteration else len(results)
                return sum(result.seconds for result in results) / runs * 1e3

            runner.measure(f"{label} {name}", "ms", once, untimed=untimed, note=lambda found=results: note_of(found))
            answers += [(f"{label} {name}", result.program, result.fields) for result in results]
            if runner.choices.details:
                tell_iterations(runner, results[-1])
    if runner.choices.check and options.get("device") != "cpu":
        with Session(graph, device="cpu", mode=options.get("mode", "auto")) as host:
            for name, program, fields in answers:
                runner.compare_answers(name, fields, host.run(program).fields)


def note_of(results: Sequence[Result]) -> str:
    """Iterations, and what came over the link and from disk, in all of these runs."""
    totals = [record.summary() for result in results for record in result.records]
    gigabytes = {way: sum(total[f"bytes_{way}"] for total in totals) / 1e9 for way in ("link", "disk")}
    words = [f"{sum(result.iterations for result in results)} iterations"]
    words += [f"{way} {amount:.3f} GB" for way, amount in gigabytes.items() if amount]
    busy = sum(total["link_seconds"] for total in totals)
    if busy:
        words.append(f"copies {busy / sum(result.seconds for result in results):.0%} of the time")
    return ", ".join(words)


def tell_iterations(runner: Runner, result: Result) -> None:
    """Say what the first iterations of a run did, and how many lines its pushes read in place."""
    for record in result.records[:DETAILED]:
        routes = {route: f"{facts['bytes_link'] / 1e6:.1f} MB" for route, facts in record.by_route().items()}
        runner.say(
            f"    {record.direction} {record.vertices:,} vertices, {record.edges:,} edges, "
            f"{record.seconds * 1e3:.2f} ms {routes}"
        )
    found = [t for r in result.records if r.direction == "push" for t in r.tasks if t.route == "zero-copy"]
    predicted, read = sum(task.lines for task in found), sum(task.lines_read for task in found)
    if predicted and read:
        runner.say(f"    pushes read {read:,} lines in place, {read / predicted:.3f} of those of the active rows")


def device(runner: Runner) -> None:
    """The link of the first GPU, its calibration, and the first run of each program in a process."""
    prepare_cuda()
    copies(runner)
    for words in (["--quick"], ["--file", runner.choices.folder or "."]):
        runner.measure(f"penstock calibrate {words[0]}", "s", lambda words=words: calibrated(*words), untimed=0)
    if runner.wants("first run"):
        first_runs(runner)


def calibrated(*words: str) -> float:
    """Seconds of `penstock calibrate` in this process, where numba-cuda is prepared."""
    began = time.perf_counter()
    with redirect_stdout(io.StringIO()):
        code = cli.run_command(["calibrate", "--device", "cuda:0", "--force", *words])
    if code:
        raise RuntimeError(f"penstock calibrate {' '.join(words)}: exit code {code}")
    return time.perf_counter() - began


def copies(runner: Runner) -> None:
    """Copies from page-locked memory by size, and reading it in place, ascending."""
    if not runner.wants("pinned copy", "reading in place"):
        return
    import cupy
    from penstock.transfer.devices.cuda import CudaDevice

    device = CudaDevice(0)
    device.use()
    host = device.host_array(COPIES[-1], np.uint8)
    host[:] = 1
    target, stream = device.array(COPIES[-1], np.uint8), device.stream()
    total = cupy.ReductionKernel("uint32 x", "uint64 y", "x", "a + b", "y = a", "0", "total")
    mapped = device.mapped(host.view(np.uint32))

    def copied(size: int) -> float:
        first = device.event(stream)
        device.copy_in(target[:size], host[:size], stream)
        last = device.event(stream)
        device.wait(last)
        return float(size / device.seconds(first, last) / 1e9)

    def read() -> float:
        first = device.event(None)
        total(mapped)
        last = device.event(None)
        device.wait(last)
        return float(host.nbytes / device.seconds(first, last) / 1e9)

    for size in COPIES:
        runner.measure(f"pinned copy of {size >> 10} KiB", "GB/s", lambda size=size: copied(size))
    runner.measure("reading in place, ascending", "GB/s", read)
    device.close()


def first_runs(runner: Runner) -> None:
    """Say what loading or compiling costs each program: its first run in this process, and one in a second session."""
    graph = graphs.grid(20)
    programs: list[Program] = [
        BFS(0),
        SSSP(0),
        WCC(),
        PageRank(tol=0, max_iter=3, weight=False),
        ChebyshevPageRank(tol=0.01, weight=False),
    ]
    for program in programs:
        times = []
        for _ in range(2):
            began = time.perf_counter()
            with Session(graph, device="cuda:0") as session:
                session.run(program)
            times.append(time.perf_counter() - began)
        runner.say(f"first run of {type(program).__name__}: {times[0]:.2f} s, in a second session {times[1]:.3f} s")
