"""The suite `disk`: programs on a graph on disk that host memory does not hold, on the GPU and on the cores.

Reads are direct. Host memory has room for a share of the decoded edges of one adjacency (`--share`); state, index and
buffers are added to it. Beside them the rate of the file itself: direct reads at places spread over it.
"""

from __future__ import annotations

import mmap
import os
import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from penstock.engine import Graph, Program, Result, Session
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.wcc import WCC

from benchmarks import graphs
from benchmarks.runner import Runner, gpu_name, prepare_cuda

STATE = 60
"""Bytes of a vertex for state, index and ids, at most."""

PROGRAMS = ("pagerank5", "bfs", "sssp", "wcc")
LARGE = 1 << 29
"""Edges from which partitions have the usual size."""


BLOCK = 4 << 20
IN_FLIGHT = 16
SECONDS = 1.0


def disk(runner: Runner) -> None:
    """On the file that the user names, or on a generated R-MAT."""
    choices = runner.choices
    devices = ("cpu",) if gpu_name() is None else ("cuda:0", "cpu")
    if "cuda:0" in devices:
        prepare_cuda()
    with tempfile.TemporaryDirectory(dir=choices.folder) as folder:
        if choices.graph is not None:
            measure(runner, Graph.open(Path(choices.graph)), Path(choices.graph).stem, devices)
        else:
            scale = choices.scale or 25
            measure(runner, graphs.rmat_on_disk(scale, Path(folder, "rmat.h5")), f"rmat{scale}", devices)


def measure(runner: Runner, graph: Graph, title: str, devices: Sequence[str], ids: int | None = None) -> None:
    """Seconds of each program on each device; the answers must be the same on all.

    ids: how many the input may have, so that memory is the same whether all of them are vertices or those that occur.
    """
    partition, buffers = (32 << 20, 512 << 20) if graph.edges >= LARGE else (4 << 20, 32 << 20)
    memory = int(runner.choices.share * graph.edges * 4) + STATE * (ids or graph.vertices) + buffers
    source = graphs.sources_of(graph)[0]
    figure = f"{title} disk raw"
    if runner.wants(figure):
        runner.measure(figure, "GB/s", lambda: direct_rate(graph.files) / 1e9)
    programs: list[Program] = [PageRank(tol=0, max_iter=5, weight=False), BFS(source), SSSP(source), WCC()]
    for name, program in zip(PROGRAMS, programs, strict=True):
        answers: list[Mapping[str, Any]] = []
        for device in devices:
            figure = f"{title} disk {device} {name}"
            if not runner.wants(figure):
                continue
            options: dict[str, Any] = {"device": device, "host_memory": memory, "direct_io": True}
            options["partition_bytes"] = partition
            if device != "cpu":
                options["device_edge_memory"] = memory // 4
            results: list[Result] = []

            def once(session: Session, program: Program = program, results: list[Result] = results) -> float:
                results[:] = [session.run(program)]
                return results[0].seconds

            with Session(graph, **options | runner.choices.given) as session:
                runner.measure(figure, "s", lambda s=session: once(s), note=lambda found=results: note_of(found[0]))
            answers.append(results[0].fields)
        for other in answers[1:]:
            runner.compare_answers(f"{title} disk {name}", answers[0], other)


def direct_rate(files: Sequence[Path]) -> float:
    """Bytes per second of direct reads of whole blocks of files in a random order, for SECONDS."""
    handles = [os.open(path, os.O_RDONLY | os.O_DIRECT) for path in files]
    blocks = [(handle, at) for handle in handles for at in range(0, os.fstat(handle).st_size - BLOCK + 1, BLOCK)]
    turns = iter(random.Random(os.getpid() + time.monotonic_ns()).sample(blocks, len(blocks)))
    room = mmap.mmap(-1, IN_FLIGHT * BLOCK, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    room.madvise(mmap.MADV_HUGEPAGE)
    room.write(bytes(len(room)))
    began = time.perf_counter()

    def read(worker: int) -> int:
        done, buffer = 0, memoryview(room)[worker * BLOCK : (worker + 1) * BLOCK]
        while time.perf_counter() - began < SECONDS and (block := next(turns, None)) is not None:
            done += os.preadv(block[0], [buffer], block[1])
        return done

    try:
        with ThreadPoolExecutor(IN_FLIGHT) as pool:
            total = sum(pool.map(read, range(IN_FLIGHT)))
        return total / (time.perf_counter() - began)
    finally:
        for handle in handles:
            os.close(handle)


def note_of(result: Result) -> str:
    """What a run read, decoded and waited for."""
    totals = [record.summary() for record in result.records]
    read, link, decoding, waiting = (
        sum(float(total[name]) for total in totals)
        for name in ("bytes_disk", "bytes_link", "decode_seconds", "wait_seconds")
    )
    return (
        f"{result.iterations} iterations, disk {read / 1e9:.2f} GB at {read / result.seconds / 1e9:.2f} GB/s, "
        f"link {link / 1e9:.2f} GB, decode {decoding:.2f} s, waited {waiting:.2f} s"
    )
