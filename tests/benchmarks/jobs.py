"""The suite `jobs`: whole jobs from command to prompt, each a process of its own, with nothing of the graph in memory.

Before each job the page cache gives up the graph's file (`cold`). Kernels are warm, for an untimed run of the same job
comes first; the job `bfs, cold kernels` has an empty cache folder, which holds this machine's rates and nothing else.
"""

from __future__ import annotations

import ctypes
import math
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from mmap import PAGESIZE
from pathlib import Path
from typing import Any

import numpy as np
from penstock.engine import Graph
from penstock.storage.base.user_cache import user_cache

from benchmarks.runner import Runner, penstock

SIZES = {"cpu": (22, 16), "gpu": (28, 20)}
"""Scale and edge factor."""
EDGE_MEMORY = "4GiB"
"""Of a GPU, where `--memory` names no other."""
SWEEPS = {"cpu": 10, "gpu": 5}
READ = 4 << 30
"""Bytes that tell the rate of the disk, at most."""
BLOCK = 8 << 20
LASTING = 0.01
"""Seconds that a stage has to take in the first run to be a figure."""
DROP_CACHES = Path("/proc/sys/vm/drop_caches")
CACHES = {"XDG_CACHE_HOME": "", "CUPY_CACHE_DIR": "cupy", "CUDA_CACHE_PATH": "cuda"}
"""Variables that name where compiled kernels are kept, and a folder for each."""


@dataclass(frozen=True)
class Job:
    """A command line less its graph and what it has in common with others, and whether its kernels are compiled."""

    name: str
    words: tuple[object, ...]
    compiled: bool = True


def jobs(runner: Runner) -> None:
    """Measure wall time, iterations and CPU time of each job, and the stages that it accounts for."""
    choices = runner.choices
    kind = "cpu" if choices.device == "cpu" else "gpu"
    scale, factor = choices.scale or SIZES[kind][0], SIZES[kind][1]
    title = Path(choices.graph).stem if choices.graph else f"rmat{scale}x{factor}"
    with tempfile.TemporaryDirectory(dir=choices.folder) as name:
        folder = Path(name)
        graph = Path(choices.graph) if choices.graph else folder / "rmat.h5"
        if not graph.exists():
            made = penstock(
                "generate", "rmat", "--scale", scale, "--edge-factor", factor, "--direction", "both", "--output", graph
            )
            runner.say(f"{graph}: {made['edges']:,} edges in {made['wall_seconds']:.1f} s")
        runner.say(f"the disk gives {disk_rate(graph) / 1e9:.2f} GB/s")
        common: tuple[object, ...] = ("--device", choices.device)
        if kind == "gpu":
            common += ("--device-edge-memory", (choices.memory or (EDGE_MEMORY,))[0])
        for option, value in choices.given.items():
            common += (f"--{option.replace('_', '-')}", value)
        for job in cases(graph, kind):
            measure(runner, job, f"{title} {choices.device}", (graph, *common), folder)


def cases(graph: Path, kind: str) -> list[Job]:
    """The jobs of the suite on a graph file."""
    source = hub(graph)
    search = "bfs", "--source", source
    sweeps = "pagerank", "--tol", 0, "--max-iter", SWEEPS[kind]
    return [
        Job("bfs", search),
        Job("wcc", ("wcc",)),
        Job(f"pagerank {SWEEPS[kind]}", sweeps),
        Job("bfs, cold kernels", search, compiled=False),
    ]


def measure(runner: Runner, job: Job, title: str, rest: tuple[object, ...], folder: Path) -> None:
    """Measure one job; an older checkout accounts for no stages, so that with `--alternate` they are only said."""
    facts: dict[str, Any] = {}
    program, *words = job.words
    graph, *options = rest
    answer = folder / "answer.npy"
    lasting: list[str] = []

    def once() -> Mapping[str, tuple[float, str]]:
        left = cold(Path(str(graph)))
        with kernels(folder, compiled=job.compiled) as variables:
            found = penstock("run", program, graph, *words, *options, "--output", answer, variables=variables)
        facts.clear()
        facts.update(found, cached=left, answer=answer.stat().st_size)
        answer.unlink()
        cpu = found["user_seconds"] + found["system_seconds"]
        told = {"": (found["wall_seconds"], "s"), "iterations": (found["seconds"], "s"), "cpu": (cpu, "s")}
        if not runner.alternating:
            stages = stages_of(found)
            lasting.extend([] if lasting else [stage for stage, taken in stages.items() if taken >= LASTING])
            told |= {f"stage {stage}": (stages.get(stage, 0.0), "s") for stage in lasting}
        return told

    runner.measure(f"{title} {job.name}", "s", once, untimed=int(job.compiled), note=lambda: note_of(facts))


def stages_of(facts: Mapping[str, Any]) -> dict[str, float]:
    """Seconds by stage, as far as the answer of the command tells them; `exit` is what comes after the answer."""
    told = {stage: float(taken) for stage, taken in facts.get("stages", {}).items()}
    return told | {"exit": facts["wall_seconds"] - facts["told_seconds"]} if told else {}


def note_of(facts: Mapping[str, Any]) -> str:
    """What the last job read, held and wrote, and its stages."""
    words = [
        f"{facts['iterations']} iterations",
        f"read {facts['bytes_read'] / 1e9:.3f} GB",
        f"answer {facts['answer'] / 1e9:.3f} GB",
        f"peak {facts['peak_memory_bytes'] / 2**30:.2f} GiB",
    ]
    if facts["cached"]:
        words.append(f"{facts['cached']:.0%} of the graph was in the page cache")
    words += [f"{stage} {taken:.2f}" for stage, taken in stages_of(facts).items()]
    return ", ".join(words)


@contextmanager
def kernels(folder: Path, *, compiled: bool) -> Iterator[dict[str, str]]:
    """Yield the variables of a process: none, or those by which it finds no compiled kernel."""
    if compiled:
        yield {}
        return
    with tempfile.TemporaryDirectory(dir=folder) as name:
        variables = {variable: str(Path(name, part)) for variable, part in CACHES.items()}
        (Path(name) / "penstock").mkdir()
        for rates in user_cache().glob("rates-*.json"):
            shutil.copy(rates, Path(name) / "penstock")
        yield variables | {"NUMBA_CACHE_DIR": ""}


def hub(path: Path) -> int:
    """The vertex with the most out-edges, the first of several."""
    best, most, first = 0, -1, 0
    for degrees in Graph.open(path).out.degrees.load():
        at = int(np.argmax(degrees))
        if degrees[at] > most:
            best, most = first + at, int(degrees[at])
        first += len(degrees)
    return best


def cold(path: Path) -> float:
    """Let the page cache give up a file; return the share of it that is still there.

    Where the kernel keeps it in spite of the advice, all of the page cache goes, if this process may ask for that.
    """
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    left = cached_share(path)
    if left > 0.01:
        try:
            DROP_CACHES.write_text("1", encoding="ascii")
        except OSError:  # not permitted: the caller says how much is cached
            return left
        left = cached_share(path)
    return left


def cached_share(path: Path) -> float:
    """Share of a file's pages that are in the page cache."""
    mapped = np.memmap(path, dtype=np.uint8, mode="r")
    resident = np.zeros(math.ceil(len(mapped) / PAGESIZE), dtype=np.uint8)
    library = ctypes.CDLL(None, use_errno=True)
    failed = library.mincore(
        ctypes.c_void_p(mapped.ctypes.data), ctypes.c_size_t(len(mapped)), ctypes.c_void_p(resident.ctypes.data)
    )
    if failed:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(path))
    return float((resident & 1).mean())


def disk_rate(path: Path) -> float:
    """Bytes a second of the first bytes of a file, which the page cache does not hold, read by a thread a core."""
    cold(path)
    size = min(READ, path.stat().st_size)
    handle = os.open(path, os.O_RDONLY)
    try:
        began = time.perf_counter()
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            read = sum(pool.map(lambda at: len(os.pread(handle, BLOCK, at)), range(0, size, BLOCK)))
        return read / (time.perf_counter() - began)
    finally:
        os.close(handle)
