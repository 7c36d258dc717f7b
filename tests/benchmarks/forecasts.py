"""The suite `forecasts`: what `--dry-run` expects of a run's iterations, over what they take, case by case.

    penstock run PROGRAM GRAPH [--host-memory SIZE --direct-io | --device emulated ...] --dry-run, then the same run

A case is a program, a graph, a budget and a device; it is forecast and run in turn, as often as --repeats says. There
is a cache folder for all of them, empty but for compiled kernels, that the first run from disk calibrates. So the first
forecast of a case has learnt from other cases, the last one from runs of its own. --busy N: beside so many loops.
--folder NAME: where graphs and the cache are, and forecasts.svg, which draws what was expected against what was taken.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from statistics import median

from penstock.engine import Graph, Session
from penstock.storage.base.errors import BudgetError
from penstock.storage.base.user_cache import kernel_folder
from penstock.tools.base.find_program import find_program

from benchmarks import graphs
from benchmarks.busy import looping
from benchmarks.history import Figure
from benchmarks.plot import Pairs, draw_forecasts
from benchmarks.runner import Runner, penstock

SWEEPS = ("--tol", 0, "--max-iter", 20)
PROGRAMS: dict[str, tuple[object, ...]] = {
    "bfs": (),
    "sssp": (),
    "wcc": (),
    "pagerank": (*SWEEPS, "--no-weight"),
    "hits": SWEEPS,
    "coreness": (),
    "triangles": (),
    "cdlp": ("--max-iter", 10),
}
Case = tuple[str, tuple[object, ...]]


def forecasts(runner: Runner) -> None:
    """On R-MAT of two sizes, a grid and a web-like graph, or on the file that the user names."""
    choices = runner.choices
    pairs: Pairs = defaultdict(list)
    with tempfile.TemporaryDirectory(dir=choices.folder) as folder:
        cache = {"XDG_CACHE_HOME": folder, "NUMBA_CACHE_DIR": str(kernel_folder().parents[1])}
        with looping(choices.busy) if choices.busy else nullcontext():
            for name, words in _cases(runner, Path(folder)):
                runner.measure(f"forecast {name}", "ratio", lambda w=words: _ratios(w, cache, pairs), untimed=0)
    every = [one for one in runner.figures if one.suite == runner.suite]
    for part in ("", " job"):
        each = [one.values for one in every if one.name.endswith(" job") == bool(part)]
        for title, ratios in (("first", [one[0] for one in each]), ("last", [one[-1] for one in each])):
            off = [max(ratio, 1 / ratio) for ratio in ratios]
            found = (
                ("error", "share", median(abs(ratio - 1.0) for ratio in ratios)),
                ("worst", "ratio", max(off)),
                ("beyond 2", "cases", float(sum(one > 2 for one in off))),
            )
            for figure, unit, value in found:
                runner.figures.append(Figure(runner.suite, f"forecasts{part}, {title}: {figure}", unit, (value,)))
    if choices.folder is not None:
        draw_forecasts(pairs, Path(choices.folder) / "forecasts.svg")


def _graphs(runner: Runner, folder: Path) -> Iterator[Path]:
    """The files; those that are generated are made once."""
    if runner.choices.graph is not None:
        yield Path(runner.choices.graph)
        return
    largest = runner.choices.scale or 18
    made = {f"rmat{scale}": ("rmat", "--scale", scale, "--undirected") for scale in (largest - 2, largest)}
    made |= {"grid": ("grid", "--rows", 400, "--columns", 500), "web": ("web", "--vertices", 200_000, "--undirected")}
    for name, words in made.items():
        path = folder / f"{name}.h5"
        if not path.exists():
            weights = ("--weights", "1..63") if name.startswith("rmat") else ()
            penstock("generate", *words, *weights, "--output", path)
        yield path


def _cases(runner: Runner, folder: Path) -> Iterator[Case]:
    """Names and commands."""
    for path in _graphs(runner, folder):
        graph = Graph.open(path)
        source, edges = graphs.sources_of(graph)[0], 4 * graph.edges
        for program, words in PROGRAMS.items():
            if program == "sssp" and graph.weight_dtype is None:
                continue
            given: tuple[object, ...] = ("--source", source) if program in ("bfs", "sssp") else ()
            least = least_bytes(graph, program, source)
            kinds: dict[str, tuple[object, ...]] = {
                "memory": (),
                "half": ("--host-memory", least + edges // 2, "--direct-io"),
                "little": ("--host-memory", least + (1 << 20), "--direct-io"),
                "link": ("--device", "emulated", "--device-edge-memory", edges // 4),
            }
            for kind, more in kinds.items():
                name = f"{path.stem} {program} {kind}"
                if runner.wants(name):
                    yield name, ("run", program, path, *words, *given, *more)


def least_bytes(graph: Graph, program: str, source: int) -> int:
    """The least budget of a program."""
    kind = find_program(program)
    try:
        with Session(graph, device="cpu", host_memory=1 << 20) as session:
            session.forecast(kind(source) if program in ("bfs", "sssp") else kind())
    except BudgetError as error:
        return int(error.least_mib) << 20
    return 1 << 20


def _ratios(words: tuple[object, ...], cache: dict[str, str], pairs: Pairs) -> dict[str, tuple[float, str]]:
    """What a forecast expects over what the run then takes: of its iterations, and of the whole job."""
    told = None
    while told is None:  # of a program of which no run is known: one is made then
        told = penstock(*words, "--dry-run", variables=cache)["whole_job"]
        run = penstock(*words, "--top", 0, variables=cache)
    taken = {"": (told["iterations"], run["stages"]["iterations"]), "job": (told["seconds"], run["wall_seconds"])}
    for part, pair in taken.items():
        pairs[part or "iterations"].append(pair)
    return {part: (expected / seconds, "ratio") for part, (expected, seconds) in taken.items()}
