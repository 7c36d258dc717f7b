"""`penstock compile`: kernels compiled ahead into a folder, where other processes find them.

What is needed is found out by running: small graphs are made and every program is run on them, in a temporary folder.
What these runs ask for is compiled for each kind of processor by processes that run nothing (`Builders`).

Each program is run in all its ways. A word of a line that begins with / is a file of the folder in which it is run.
"""

from __future__ import annotations

import importlib.util
import inspect
import logging
import os
import random
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from penstock.storage.base.atomic import scratch_folder
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import InputError, PenstockError, RunError, brief
from penstock.storage.base.user_cache import LEVELS, level_environment, own_place
from penstock.tools.base.find_program import completed
from penstock.tools.base.options import FOLDER, ParsedType, lasting_console_options
from penstock.tools.base.output import Console, answer_of, counted, seconds
from penstock.tools.base.progress import looked_at, progress

if TYPE_CHECKING:
    from penstock.engine.programs.catalogue import ProgramInfo


NATIVE = "native"
SUFFIXES = (".kernel", ".cubin")
KERNELS_ELSEWHERE = "PENSTOCK_KERNELS", "NUMBA_CACHE_DIR"
"""Variables that name other places of kernels."""
GPU = ["penstock.engine.kernels.ahead.compile_ahead_cuda", "compile_all"]
"""What compiles the kernels of a run for a GPU."""
_log = logging.getLogger("penstock.tools.commands.compile")


def _capabilities(text: str) -> dict[str, tuple[int, int]]:
    """The kinds of GPUs in a text, by name. Raises InputError for another name."""
    found = {name: re.fullmatch(r"sm_(\d+)(\d)", name.strip()) for name in text.split(",")}
    kinds = {name.strip(): (int(match[1]), int(match[2])) for name, match in found.items() if match}
    if len(kinds) < len(found):
        raise InputError(f"{brief(repr(text))} names no kinds of GPUs; write sm_90, or sm_80,sm_90")
    return kinds


@click.command(name="compile", short_help="Compile kernels ahead, into a folder that travels.")
@click.argument("programs", nargs=-1, metavar="[PROGRAM]...", shell_complete=completed)
@click.option("--all", "everything", is_flag=True, help="Every program.")
@click.option(
    "--level",
    "levels",
    multiple=True,
    default=[NATIVE],
    metavar="LEVEL",
    show_default=True,
    help="Kind of processor: x86-64-v3, x86-64-v4, or native, which is this one. Repeatable.",
)
@click.option(
    "--device",
    "devices",
    type=ParsedType("capabilities", _capabilities),
    default={},
    metavar="sm_90,...",
    help="Kinds of GPUs, by their compute capability, besides; none need be here, but numba-cuda must. Lists, walks "
    "and similarities compile at a GPU's first run.",
)
@click.option("--output", type=FOLDER, required=True, help="Folder of the kernels; what it has stays.")
@lasting_console_options
def command(
    programs: tuple[str, ...],
    everything: bool,
    levels: tuple[str, ...],
    devices: dict[str, tuple[int, int]],
    output: Path,
    console: Console,
) -> None:
    """Compile the kernels of programs ahead, and those that read and convert graphs, into a folder.

    \b
    Examples:
      penstock compile bfs pagerank --output kernels
      penstock compile --all --level x86-64-v3 --level x86-64-v4 --output kernels
      penstock compile bfs --device sm_90 --output kernels
    """
    from penstock.storage.companion.builders import Builders

    began = time.perf_counter()
    for level in levels:
        if level != NATIVE and level not in LEVELS:
            raise InputError(
                f"--level {brief(repr(level))} is no kind of processor; give {NATIVE}, {', '.join(LEVELS)}"
            )
    if devices and importlib.util.find_spec("numba_cuda") is None:
        raise InputError(
            f"--device {','.join(devices)}: kernels of GPUs are compiled by numba-cuda, which is not installed; "
            "pip install '.[cuda]' adds it"
        )
    chosen = _chosen(programs, everything=everything)
    place = _place(output)
    before = _entries(place)
    refused: list[str] = []
    kinds = list(dict.fromkeys(levels))
    own = next((kind for kind in kinds if _runs_here(kind)), NATIVE)
    with scratch_folder() as scratch, progress(console) as update:
        (scratch / "penstock").mkdir()
        (scratch / "penstock" / "kernels").symlink_to(place)
        environments = {kind: _environment(kind, scratch) for kind in (*kinds, *devices)}
        changes = {name: {"capability": one, "target": GPU} for name, one in devices.items()}
        write_inputs(scratch)
        with (
            _environment_as(environments.setdefault(own, dict(os.environ))),
            Builders(scratch, environments, own, kinds, changes) as builders,
            looked_at(update, lambda: update("compiling", *builders.counts, "kernels", builders.last)),
        ):
            for line in lines_of(chosen):
                _run(line, scratch, refused)
            builders.finish()
    after = _entries(place)
    facts: dict[str, Any] = {
        "command": "compile",
        "output": place,
        "levels": [*kinds, *devices],
        "kernels": len(after),
        "new_kernels": len(after.keys() - before.keys()),
        "bytes": sum(after.values()),
        "seconds": time.perf_counter() - began,
        "refused": refused,
        "compiled_by_each_process": sorted(builders.unknown),
        "failed": sorted(builders.failed),
    }
    console.answer(facts, _lines(facts))
    if builders.failed:
        raise RunError(f"{counted(len(builders.failed), 'kernel')} could not be compiled: {', '.join(facts['failed'])}")


def _chosen(names: tuple[str, ...], *, everything: bool) -> list[ProgramInfo]:
    """The records of the programs. Raises InputError for a name that is none, and where none is given."""
    from penstock.engine.programs.catalogue import CATALOGUE
    from penstock.engine.programs.table import info_of, named

    if everything == bool(names):
        raise InputError("name programs, as in 'penstock compile bfs pagerank', or give --all, not both")
    for name in names:
        named(name)
    return [info for info in CATALOGUE if everything or info in map(info_of, names)]


def _place(output: Path) -> Path:
    """The folder, made where it was missing. Raises InputError where it cannot be written, or would not be read."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        found = own_place(output, "name another folder")
    except OSError as error:
        raise InputError(f"--output {output} cannot be made: {error.strerror}; name another folder") from error
    except InputError as error:
        raise InputError(f"kernels in --output {output} would not be read: {error}") from error
    if not os.access(found, os.W_OK | os.X_OK):
        raise InputError(f"--output {output} cannot be written; name another folder")
    return found


def _runs_here(level: str) -> bool:
    """Whether this process can run code for a kind of processor: it has such a one, and has not chosen another yet."""
    if level == NATIVE:
        return True
    import llvmlite.binding

    has = {*llvmlite.binding.get_host_cpu_features().flatten().split(",")}
    return "numba" not in sys.modules and {*LEVELS[level].split(",")} <= has


def _environment(level: str, scratch: Path) -> dict[str, str]:
    """That of processes that compile for a kind of processor: what they keep and measure is below `scratch`."""
    inherited = {name: value for name, value in os.environ.items() if name not in KERNELS_ELSEWHERE}
    return {**inherited, "XDG_CACHE_HOME": str(scratch), **(level_environment(level) if level in LEVELS else {})}


@contextmanager
def _environment_as(wanted: dict[str, str]) -> Iterator[None]:
    """Give this process another environment within the block."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(wanted)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _entries(place: Path) -> dict[str, int]:
    """Bytes of the kernels in a folder, by name."""
    return {file.name: file.stat().st_size for file in place.iterdir() if file.suffix in SUFFIXES}


def _run(line: str, scratch: Path, refused: list[str]) -> None:
    """Run a command in a folder, or note why it cannot run so."""
    words = [f"{scratch}{word}" if word.startswith("/") else word for word in line.split()]
    try:
        answer_of(words)
    except (PenstockError, click.UsageError) as error:
        refused.append(f"{line}: {error}")
        _log.info("%s: %s", line, error)


def _lines(facts: dict[str, Any]) -> list[str]:
    levels = " and ".join(facts["levels"])
    made = f"{counted(facts['kernels'], 'kernel')} for {levels} in {facts['output']}, {format_bytes(facts['bytes'])}"
    lines = [f"{made}: {facts['new_kernels']:,} compiled now, {seconds(facts['seconds'])}"]
    each = facts["compiled_by_each_process"]
    return [*lines, *(f"{counted(len(each), 'kernel')} that each process compiles: {one}" for one in each)]


MAKING = """
generate rmat --scale 9 --edge-factor 8 --weights 1..9 --output /rmat.txt
generate grid --rows 20 --columns 20 --output /grid.h5
generate uniform --vertices 400 --edges 3000 --output /pairs.bin
generate web --vertices 400 --output /web.txt.gz
generate rmat --scale 14 --edge-factor 64 --direction both --output /disk.h5 --host-memory 64MiB
generate uniform --vertices 1048576 --edges 1048576 --direction both --output /many.h5
convert /pairs.bin /pairs.h5 --format binary64
convert /1.txt /plain.h5 --no-weights --direction both
convert /1.txt /both.h5 --no-weights --undirected
convert /1.txt /1.h5 --weights --direction both
convert /100.txt /100.h5 --weights --direction both
convert /1000.txt /1000.h5 --weights --direction both
convert /0.5.txt /0.5.h5 --weights --direction both
convert /0.1.txt /0.1.h5 --weights --direction both
convert /1.txt /list.h5 --layout list --no-weights
convert /1.txt /weighted-list.h5 --layout list --weights
append /list.h5 /pairs.bin --format binary64
append /plain.h5 /pairs.bin --format binary64
export /1.h5 /1.csv
export /0.1.h5 /0.1.parquet
export /list.h5 /list.tsv.gz
convert /1.csv /csv.h5 --weights --direction both
convert /0.1.parquet /parquet.h5 --direction both
convert /names.csv /names.h5 --renumber --direction both
convert /names.csv /sides.h5 --bipartite
convert /names.csv /listed.h5 --renumber --vertices /people.csv
convert /arcs.gr /dimacs.h5
convert /entries.mtx /matrix.h5
convert /mesh.graph /mesh.h5
convert /rows.adj /rows.h5
convert /1.txt /merged.h5 --weights --symmetrize --dedupe sum --drop-self-loops
convert /1.txt /numbered.h5 --weights --renumber
convert /1.txt /degree.h5 --no-weights --order degree
convert /1.txt /hubs.h5 --no-weights --order hubs
convert /1.txt /paths.h5 --no-weights --order paths
convert /list.h5 /sorted.h5
info /plain.h5 --degrees
verify /1.h5
verify /list.h5
verify /names.h5
extract /plain.h5 /around.h5 --around 1 --hops 2
extract /1.h5 /light.h5 --weights ..5 --drop-isolated
extract /plain.h5 /core.h5 --core 2
extract /plain.h5 /largest.h5 --largest-component
walk /plain.h5 --length 8 --walks-per-vertex 2 --output /walks.txt
walk /1.h5 --length 8 --walks-per-vertex 2 --p 0.5 --q 2 --output /walks.npy
walk /disk.h5 --threads 2 --length 4 --walks-per-vertex 1 --host-memory 16MiB --output /walks.csv
similarity /both.h5 --k 5 --output /similar.csv
similarity /plain.h5 --pairs /pairs.csv --output /pairs-similar.csv
calibrate --device cpu --file /disk.h5
demo
"""
GRAPHS = "/plain.h5", "/both.h5", "/list.h5"
WEIGHTED = "/1.h5", "/100.h5", "/1000.h5", "/0.5.h5", "/0.1.h5", "/weighted-list.h5"
"""With weights of each type."""
NEEDED = {"source": "--source 1", "k": "--k 2", "fixed": "--fixed /held.csv", "inputs": "--inputs /held.csv"}
"""How parameters are given that a program cannot do without; a word that begins with / is a file."""
BESIDES = {"katz": ("--alpha 0.0001",), "heat": ("--fixed /held.csv",)}
"""What some programs get besides: no graph fits their defaults."""
MORE = {"parents": "--parents", "target": "--target 2", "cutoff": "--cutoff 5", "k": "--k 2", "source": "--source 1"}
"""Parameters that make further runs."""
FEW = {"k": "--k 2", "max_iter": "--max-iter 3"}
"""What makes a run on a graph that does not fit short."""
WAYS = "--threads 1", "--direction push", "--direction pull", "--mode async"
"""Of runs on the first graph, and on the first with weights."""
ON_DISK, LEAST = "/disk.h5 --threads 2 --host-memory", "12MiB"
"""A graph that does not fit into so much memory, which more threads' buffers would exceed."""
BUDGETS = {"cdlp": "20MiB", "hyperball": "20MiB", "fastrp": "22MiB", "trussness": "54MiB"}
BUDGETS |= dict.fromkeys(("triangles", "lcc"), "42MiB") | dict.fromkeys(("louvain", "leiden"), "67MiB")
"""Of programs that take more."""
NARROW = {"bfs": ("25MiB", "21MiB --no-parents"), "reachability": ("21MiB",)}
"""Of programs with a form for short memory, on a graph of many vertices: 1 MiB above the least."""
FITTING = "degrees", "cf"
"""Programs that do not read that graph from disk: one takes so much that it fits, and it has no ratings."""
PHASES_OF_ROWS = "louvain", "leiden"
"""Programs with phases on whole rows, which a list does not have."""
FORMED = "pagerank", "personalized_pagerank"
"""Programs with `vertex` that have a form without it for `--mode async`; others refuse that."""


def write_inputs(folder: Path) -> None:
    """Write the edges and values that `MAKING` and the programs read."""
    draw = random.Random(1)
    ends = [(v, v + 1) for v in range(1, 100)]
    ends += [(int(300 * draw.random() ** 2) + 1, draw.randrange(1, 300)) for _ in range(3000)]
    edges = [(u, v, draw.randrange(1, 250)) for u, v in ends]
    for unit in ("0.1", "0.5", "1", "100", "1000"):
        text = "".join(f"{u} {v} {w * float(unit):g}\n" for u, v, w in edges)
        (folder / f"{unit}.txt").write_text(text, encoding="ascii")
    arcs = "".join(f"a {u} {v} {w}\n" for u, v, w in edges)
    entries = "".join(f"{u} {v} {w}\n" for u, v, w in edges)
    texts = {
        "names.csv": "from,to\n" + "".join(f"a{u},b{v}\n" for u, v, _ in edges),
        "people.csv": "id,age\n" + "".join(f"{side}{v},{v}\n" for side in "ab" for v in range(302)),
        "pairs.csv": "1,2\n3,4\n",
        "held.csv": "1,1.0\n7,0.5\n",
        "arcs.gr": f"p sp 301 {len(edges)}\n{arcs}",
        "entries.mtx": f"%%MatrixMarket matrix coordinate integer general\n301 301 {len(edges)}\n{entries}",
        "mesh.graph": "3 2\n2 3\n1\n1\n",
        "rows.adj": "1 2 3\n2 3\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="ascii")


def runs_of(info: ProgramInfo) -> Iterator[str]:
    """Command lines that run a program in all ways that have kernels of their own."""
    from penstock.engine.program.program import needs_rows
    from penstock.engine.programs.table import PROGRAMS

    kind = PROGRAMS[info.name]
    of_rows = info.name in PHASES_OF_ROWS or needs_rows(kind)
    synchronous = of_rows or (kind.vertex is not None and info.name not in FORMED)
    parameters = inspect.signature(kind).parameters
    needed = [NEEDED[name] for name, one in parameters.items() if one.default is one.empty]
    line = " ".join(["run", info.name, "--no-calibrate --device cpu", *needed, *BESIDES.get(info.name, ())])
    groups = [
        graphs
        for graphs, serves in ((GRAPHS, not info.needs_weights), (WEIGHTED, info.weighted or info.needs_weights))
        if serves
    ]
    more = [words for name, words in MORE.items() if name in parameters and words not in needed]
    ways = [way for way in WAYS if not (way == "--mode async" and synchronous)]
    for graphs in groups:
        for graph in graphs:
            if not ("list" in graph and of_rows):
                yield f"{line} {graph} --threads 2"
        for words in (*ways, *more):
            yield f"{line} {graphs[0]} {words}"
    if info.name not in FITTING:
        few = [short for name, short in FEW.items() if name in parameters and short not in needed]
        yield " ".join([line, ON_DISK, BUDGETS.get(info.name, LEAST), *few])
    yield from (f"{line} /many.h5 --threads 2 --host-memory {budget}" for budget in NARROW.get(info.name, ()))


def lines_of(programs: list[ProgramInfo]) -> Iterator[str]:
    """Command lines that make the graphs, and run the programs on them."""
    yield from MAKING.strip().splitlines()
    for info in programs:
        yield from runs_of(info)
