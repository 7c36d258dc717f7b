"""The suite `peers`: Penstock and other programs on one graph, in turn, with their answers compared.

The graph is undirected, without loops and parallel edges, best with whole weights (only SSSP uses them). In memory
against GAP: a figure is the median of a process's trials but the first, and of as many runs of a session. From disk
against ACGraph, Blaze and GridGraph: a process for each run. Sources change with every turn. Beside the seconds of each
stands `x`, how many times as fast Penstock is in the same turn, and the load that was found.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine import Graph, Program, Session
from penstock.engine.programs.betweenness import Betweenness
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.triangles import Triangles
from penstock.engine.programs.wcc import WCC

from benchmarks.peers import formats
from benchmarks.peers.answers import difference
from benchmarks.peers.process import Finished, busy, load, run
from benchmarks.peers.systems import ANSWERS, OUT_OF_CORE, SWEEPS, Gap, OutOfCore
from benchmarks.runner import COMMAND, Runner, penstock

SCALE = 22
SHORT, LONG = 0.02, 1.0
"""Seconds below which a turn has ten runs of each, and from which it has two; else four."""
DELTAS = (1, 4, 16, 64, 1024, 4096, 16384)
MEMORY = {"bfs": "128MiB", "cc": "128MiB", "pagerank10": "160MiB"}
"""Budgets of Penstock from disk, where `--set host_memory=` names no other."""
FIELDS = {"bfs": "level", "cc": "component", "pagerank10": "rank"}
"""What the command writes to `.npy`."""
MIB = 1 << 20


def peers(runner: Runner) -> None:
    """Every program on the user's graph, or on a generated R-MAT."""
    choices = runner.choices
    with tempfile.TemporaryDirectory(dir=choices.folder) as temporary, busy(choices.busy):
        folder = Path(choices.folder or temporary)
        path = Path(choices.graph) if choices.graph else folder / f"rmat{choices.scale or SCALE}.h5"
        if not path.exists():
            made = ("--scale", choices.scale or SCALE, "--weights", "1..255", "--dedupe", "min")
            kept = ("--no-renumber", "--output", path)  # the peers number vertices from 0 without gaps
            penstock("generate", "rmat", *made, "--symmetrize", "--drop-self-loops", *kept)
        graph = Graph.open(path)
        if graph.original_ids() is not None:
            raise SystemExit(f"{path} has ids with gaps, which the peers number anew; convert it with --no-renumber")
        sources = sources_of(graph, choices.repeats)
        stem = folder / path.stem
        if "gap" in choices.peers:
            in_memory(runner, graph, stem, sources)
        if any(name in choices.peers for name in OUT_OF_CORE):
            from_disk(runner, graph, path, stem, sources)


def sources_of(graph: Graph, count: int) -> list[int]:
    """Vertices of at least the mean degree, always the same ones: they are not in small components."""
    degrees = graph.out.index().degrees(0, graph.vertices)
    found = np.flatnonzero(degrees >= max(1.0, graph.out.edges / graph.vertices))
    return [int(vertex) for vertex in np.random.default_rng(1).choice(found, count)]


def in_memory(runner: Runner, graph: Graph, stem: Path, sources: list[int]) -> None:
    """Each algorithm in a session and in a process of GAP's, in turn."""
    plain, weighted = stem.with_suffix(".sg"), stem.with_suffix(".wsg")
    for path in (plain, weighted) if graph.weight_dtype else (plain,):
        if not path.exists():
            formats.write_gap(graph, path, weights=path == weighted)
    gap = Gap(Path(runner.choices.peers["gap"]), plain, weighted)
    programs: dict[str, Callable[[int], Program]] = {
        "bfs": BFS,
        "pagerank10": lambda source: PageRank(tol=0, max_iter=SWEEPS, weight=False),
        "pagerank": lambda source: PageRank(tol=1e-6, weight=False),
        "cc": lambda source: WCC(),
        "betweenness": lambda source: Betweenness(source, raw=True),
        "triangles": lambda source: Triangles(),
    }
    if graph.weight_dtype is not None:
        programs["sssp"] = SSSP
    for algorithm, program in programs.items():
        name = f"{_title(runner, stem)} memory {algorithm}"
        if not runner.wants(name):
            continue
        if algorithm == "sssp":
            gap = _best_delta(runner, gap, sources[0])
        with Session(graph, **{"device": "cpu"} | runner.choices.given) as session:
            _compare_gap(runner, name, gap, algorithm, session, program, sources)


def _compare_gap(
    runner: Runner,
    name: str,
    gap: Gap,
    algorithm: str,
    session: Session,
    program: Callable[[int], Program],
    sources: list[int],
) -> None:
    """The figures of one algorithm; the first turn, untimed, compares the answers."""
    turn, trials, note = iter([sources[0], *sources]), 1, ""

    def once() -> Mapping[str, tuple[float, str]]:
        nonlocal trials, note
        source, before = next(turn), load()
        answer, finished = _answer(gap.words(algorithm, source, 1 + trials), "" if note else gap.answers[algorithm])
        theirs = median(gap.seconds(finished.text)[1:])
        runs = [session.run(program(source)) for _ in range(1 + trials)]
        ours = median(result.seconds for result in runs[1:])
        if not note:
            if answer is None:
                note = "answers not compared"
            else:
                note = _verdict(runner, name, difference(algorithm, answer, runs[-1].fields, source))
            trials = 9 if max(ours, theirs) < SHORT else 3 if ours + theirs < LONG else 1
        return {
            "gap": (theirs, "s"),
            "penstock": (ours, "s"),
            "gap/penstock": (theirs / ours, "x"),
            "load": (before, "load"),
        }

    runner.measure(name, "s", once, note=lambda: note)


def from_disk(runner: Runner, graph: Graph, path: Path, stem: Path, sources: list[int]) -> None:
    """Each algorithm in a process of each system, in turn; direct reads."""
    threads = len(os.sched_getaffinity(0))
    systems: dict[str, OutOfCore] = {
        name: kind.prepared(Path(runner.choices.peers[name]), graph, stem, threads)
        for name, kind in OUT_OF_CORE.items()
        if name in runner.choices.peers
    }
    for algorithm, memory in MEMORY.items():
        name = f"{_title(runner, stem)} disk {algorithm}"
        if runner.wants(name):
            _compare_disk(runner, name, algorithm, path, systems, sources, memory)


def _compare_disk(
    runner: Runner,
    name: str,
    algorithm: str,
    path: Path,
    systems: Mapping[str, OutOfCore],
    sources: list[int],
    memory: str,
) -> None:
    """The figures of one algorithm; the first turn, untimed, compares the answers."""
    turn, notes, compared = iter([sources[0], *sources]), list[str](), list[str]()
    program, *options = {
        "bfs": ("bfs",),
        "cc": ("wcc",),
        "pagerank10": ("pagerank", "--tol", 0, "--max-iter", SWEEPS, "--no-weight"),
    }[algorithm]
    budget = runner.choices.given.get("host_memory", memory)

    def once() -> Mapping[str, tuple[float, str]]:
        source, told = next(turn), {"load": (load(), "load")}
        chosen = ["--source", source] if algorithm == "bfs" else []
        words = [*COMMAND, "run", program, path, *options, *chosen, "--device", "cpu"]
        words += ["--host-memory", budget, "--direct-io"]
        ours, values = _penstock(words, told, answer=not notes)
        for system, peer in systems.items():
            other = peer.words(algorithm, source)
            if other is None:
                continue
            answer, finished = _answer(other, "" if notes else peer.answers.get(algorithm, ""))
            if answer is not None and values is not None:
                differs = difference(algorithm, answer, {FIELDS[algorithm]: values}, source, parents=peer.parents)
                compared.append(_verdict(runner, f"{name} {system}", differs))
            told |= _told(system, peer.seconds(finished.text), finished.read_bytes, finished.peak_bytes)
            told[f"{system}/penstock"] = (told[f"{system}"][0] / ours, "x")
        notes[:] = [", ".join(compared) or "answers not compared"]
        return told

    runner.measure(name, "s", once, note=lambda: notes[0])


def _title(runner: Runner, stem: Path) -> str:
    """What the names of figures begin with: the graph, and how many busy loops there are."""
    return f"{stem.name} beside {runner.choices.busy}" if runner.choices.busy else stem.name


def _penstock(
    words: list[object], told: dict[str, tuple[float, str]], *, answer: bool
) -> tuple[float, NDArray[Any] | None]:
    """Run the command; its seconds, and the answer where it is wanted. Adds to `told`."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "answer.npy")
        finished = run([*words, "--json", "--quiet", *(("--output", table) if answer else ())])
        facts = json.loads(finished.text)
        told |= _told("penstock", facts["seconds"], finished.read_bytes, finished.peak_bytes)
        values = np.load(table) if answer else None
    return facts["seconds"], values


def _told(system: str, seconds: float, read_bytes: int, peak_bytes: int) -> dict[str, tuple[float, str]]:
    """The figures of one run from disk."""
    return {
        system: (seconds, "s"),
        f"{system} read": (read_bytes / MIB, "MiB"),
        f"{system} peak": (peak_bytes / MIB, "MiB"),
    }


def _answer(words: list[object], kind: str) -> tuple[NDArray[Any] | None, Finished]:
    """Run another program, and read what it answers as an array of this kind; None where it wrote nothing."""
    variables = {"OMP_NUM_THREADS": str(len(os.sched_getaffinity(0)))}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "answer")
        finished = run(words, variables | ({ANSWERS: str(path)} if kind else {}))
        return np.fromfile(path, dtype=np.dtype(kind)) if kind and path.exists() else None, finished


def _verdict(runner: Runner, name: str, differs: str) -> str:
    """Note a wrong answer."""
    if differs:
        runner.wrong.append(f"{name}: {differs}")
    return f"{name.split()[-1]} {differs or 'has the same answer'}"


def _best_delta(runner: Runner, gap: Gap, source: int) -> Gap:
    """GAP with the width of buckets that is best for it on this graph."""
    chosen = [
        (min(gap.seconds(_answer(tried.words("sssp", source, 2), "")[1].text)), tried)
        for tried in (replace(gap, delta=delta) for delta in DELTAS)
    ]
    seconds, best = min(chosen, key=lambda each: each[0])
    runner.say(f"GAP's best delta is {best.delta}: {seconds:.4g} s")
    return best
