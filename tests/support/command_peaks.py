"""How much memory each command of the command line takes at its peak, on graphs that strain memory in different ways.

A command is measured in two ways, at the least budget that it accepts; one without --host-memory is held to what its
help says. As a process of its own, whose peak the system tells, interpreter and libraries included; with half as much
again, too. And in a process that has run it on a small graph of the same kind, so that kernels are loaded and modules
imported: what it then takes more is the command's own. As a program it prints the table of
tests/campaigns/measurements.md, of all kinds and commands or of some; with --least of processes of their own alone:

    cd tests; python -m support.command_peaks FOLDER [--least] [KIND[:COMMAND,...] ...]
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
from numpy.typing import NDArray
from penstock.storage.base.budget import cores
from penstock.storage.base.errors import PROCESS_MIB
from penstock.storage.format.graph import Graph
from support.peak_memory import MIB, SMALL_CHANGE, Peak, least_of, load_for_good, told

SMALL = 1 << 12
"""Vertices of the graph on which a command runs first."""
PROPERTIES = 20
LISTED = 1 << 20
"""Most ids, pairs and values in the files that commands read beside a graph."""
KINDS = {
    "star": 1 << 21,
    "path": 1 << 21,
    "isolated": 5_000_000,
    "rmat": 1 << 20,
    "names": 5_000_000,
    "properties": 1 << 20,
}
"""By kind of graph, how many vertices the large one has: names and vertices with properties are on a path, too."""
PATIENCE_SECONDS = 300
STARTER = """
import os, sys
process = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
import signal
def end(*_):
    os.kill(process, signal.SIGALRM)
signal.signal(signal.SIGALRM, end)
signal.alarm(int(sys.argv[1]))
_, status, usage = os.wait4(process, 0)
print(f"\\n{os.waitstatus_to_exitcode(status)} {usage.ru_maxrss}", file=sys.stderr)
"""
"""Starts a process, ends it after so many seconds, and prints its exit code and its peak in KiB."""
NAME = "https://example.org/page/{}.html"


def ends_of(kind: str, count: int) -> NDArray[np.int64]:
    """The ends of the edges of a graph of so many vertices, shape (2, m)."""
    others = np.arange(1, count)
    if kind == "star":
        return np.stack([np.zeros_like(others), others])
    if kind == "isolated":
        return np.array([[0, 1], [1, 2]])
    return np.stack([others - 1, others])


def write_input(kind: str, count: int, folder: Path) -> list[str]:
    """Write the raw input of a graph; return the arguments of `convert` that read it."""
    text, label = folder / "edges.txt", NAME if kind == "names" else "{}"
    if kind == "rmat":
        scale = str(count.bit_length() - 1)
        told(["generate", "rmat", "--scale", scale, "--weights", "1..63", "--output", str(text), "--quiet"])
        return [str(text)]
    ends = ends_of(kind, count)
    if kind == "isolated":  # a matrix names all its rows
        lines = "".join(f"{source + 1} {target + 1} 5\n" for source, target in ends.T.tolist())
        text = text.with_suffix(".mtx")
        text.write_text(f"%%MatrixMarket matrix coordinate integer general\n{count} {count} 2\n{lines}")
        return [str(text)]
    if kind == "names":
        ends = np.random.default_rng(1).permutation(count)[ends]  # not in the order of the names
    with text.open("w") as file:
        for first in range(0, ends.shape[1], 1 << 16):
            part = ends[:, first : first + (1 << 16)].T.tolist()
            file.write("".join(f"{label.format(one)} {label.format(other)} {one % 60}\n" for one, other in part))
    if kind == "properties":
        return [str(text), "--renumber", "--vertices", str(write_people(count, folder))]
    return [str(text), *(["--renumber"] if kind == "names" else [])]


def write_people(count: int, folder: Path) -> Path:
    """Write a table of vertices: whole numbers, others, words and truth values."""
    people, random = folder / "people.parquet", np.random.default_rng(2)
    columns: dict[str, Any] = {"id": np.arange(count)}
    for number in range(PROPERTIES):
        drawn = random.integers(0, 1 << 20, count)
        words = [f"word-{value}" for value in drawn.tolist()] if number % 4 == 2 else None
        columns[f"p{number}"] = (drawn, drawn / 7, words, drawn % 2 == 0)[number % 4]
    pyarrow.parquet.write_table(pyarrow.table(columns), people)
    return people


COMMANDS = {
    "convert": "convert {input} {out}/made.h5 --force",
    "convert --direction both": "convert {input} {out}/made.h5 --force --direction both --weights",
    "convert --layout list": "convert {input} {out}/made.h5 --force --layout list",
    "convert --order degree": "convert {input} {out}/made.h5 --force --order degree --direction both",
    "convert --symmetrize": "convert {input} {out}/made.h5 --force --symmetrize --dedupe first",
    "append (rows)": "append {grown} {folder}/more.txt",
    "append (list)": "append {grown} {folder}/more.txt",
    "extract --largest-component": "extract {graph} {out}/part.h5 --force --largest-component",
    "extract --around": "extract {graph} {out}/part.h5 --force --around {source} --hops 2 --along both",
    "extract --core 2": "extract {graph} {out}/part.h5 --force --core 2",
    "extract --degrees": "extract {graph} {out}/part.h5 --force --degrees 1.. --drop-isolated",
    "extract --vertices": "extract {graph} {out}/part.h5 --force --vertices {folder}/some.txt",
    **{f"export .{form}": f"export {{graph}} {{out}}/edges.{form} --force" for form in ("csv", "csv.gz", "parquet")},
    **{f"export .{form}": f"export {{graph}} {{out}}/edges.{form} --force" for form in ("feather", "npz")},
    **{
        f"walk .{form}": f"walk {{graph}} --length 2 --walks-per-vertex 1 --output {{out}}/walks.{form} --force"
        for form in ("txt", "csv.gz", "parquet", "feather", "npy")
    },
    "walk --sources .txt": "walk {graph} --length 2 --sources {folder}/some.txt --output {out}/walks.txt --force",
    "similarity --pairs .csv": "similarity {graph} --pairs {folder}/pairs.txt --output {out}/pairs.csv --force",
    "similarity --k .parquet": "similarity {graph} --k 2 --output {out}/pairs.parquet --force",
    "similarity --k .h5": "similarity {graph} --k 2 --output {out}/pairs.h5 --force",
    "similarity --source .csv": "similarity {graph} --k 5 --source {source} --output {out}/pairs.csv --force",
    **{
        f"run wcc .{form}": f"run wcc {{graph}} --output {{out}}/answer.{form} --force"
        for form in ("csv", "csv.gz", "tsv", "parquet", "feather", "h5", "npy")
    },
    "run pagerank .csv": "run pagerank {graph} --max-iter 2 --top 10 --output {out}/answer.csv --force",
    "run pagerank --personalization": "run pagerank {graph} --max-iter 2 --personalization {folder}/values.txt",
    "run heat --initial": "run heat {graph} --max-iter 2 --initial {folder}/values.txt",
    "run bfs .parquet": "run bfs {graph} --source {source} --output {out}/answer.parquet --force",
    "run louvain .parquet": "run louvain {graph} --tol 0.1 --output {out}/answer.parquet --force",
    "run leiden .parquet": "run leiden {graph} --tol 0.1 --output {out}/answer.parquet --force",
    "run wcc --join .csv": "run wcc {graph} --join {properties} --output {out}/answer.csv --force",
    "run wcc --join .parquet": "run wcc {graph} --join {properties} --output {out}/answer.parquet --force",
    "verify": "verify {graph}",
    "verify (list)": "verify {list}",
    "info": "info {graph}",
    "info --degrees": "info {graph} --degrees",
    "info --assortativity": "info {graph} --assortativity degree",
}
"""By name, the command line."""
WITHOUT_BUDGET = ("export", "verify", "info")


def suited(kind: str) -> list[str]:
    """The commands for a kind: without properties that are not there, and an iteration for each vertex of a path."""
    left_out = [] if kind == "properties" else ["run wcc --join .csv", "run wcc --join .parquet"]
    left_out += ["append (rows)"] if kind == "properties" else []  # a table of vertices lists exactly those that exist
    left_out += ["extract --core 2"] if kind in ("path", "names", "properties") else []
    left_out += ["run bfs .parquet"] if kind == "names" else []
    return [name for name in COMMANDS if name not in left_out]


@dataclass(frozen=True)
class Prepared:
    """A graph in its folder, and the arguments with which `convert` reads its input."""

    kind: str
    count: int
    folder: Path
    input: list[str]

    def words(self, name: str, out: Path) -> list[str]:
        """The command line of a command; what append changes is copied first."""
        number = str(self.count - 3 if self.kind in ("path", "properties") else 1)  # near the end of a path
        fields = {
            "graph": str(self.folder / "graph.h5"),
            "list": str(self.folder / "list.h5"),
            "folder": str(self.folder),
            "source": NAME.format(number) if self.kind == "names" else number,
            "properties": ",".join(f"p{number}" for number in range(PROPERTIES)),
            "grown": str(out / "grown.h5"),
            "out": str(out),
        }
        if name.startswith("append"):
            for old in out.glob("grown*"):
                old.unlink()
            shutil.copy(self.folder / ("list.h5" if "list" in name else "graph.h5"), fields["grown"])
        found: list[str] = []
        for word in COMMANDS[name].split():
            found += self.input if word == "{input}" else [word.format(**fields)]
        return [*found, "--json", "--quiet", *(["--no-calibrate"] if found[0] == "run" else [])]

    def promised(self, name: str) -> int:
        """Bytes that the help, or the documentation, of a command without a budget allows."""
        graph = Graph.open(self.folder / "graph.h5")
        index = int(4.1 * graph.vertices)
        stored = getattr(graph.original, "arrays", ())
        ids = sum(frames.spec.items * frames.kind.itemsize for frames in stored) + 8 * graph.vertices * len(stored)
        if name.startswith("export"):
            return index + ids + 16 * MIB * (cores() + 1)
        if name.startswith("verify"):
            listed = 8 * graph.vertices if "list" in name else 0
            table = 16 * graph.vertices if self.kind in ("names", "properties") else 0
            return index + listed + ids + table + 16 * MIB * max(4, 2 * cores())
        return {"info": 0, "info --degrees": 2 * index, "info --assortativity": 24 * graph.vertices}[name]


def prepared(kind: str, count: int, folder: Path) -> Prepared:
    """Make a graph with what commands read beside it, unless an earlier call has."""
    place = folder / f"{kind}-{count}"
    done = place / "input.json"
    if not done.exists():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        given = write_input(kind, count, place)
        told(["convert", *given, str(place / "graph.h5"), "--direction", "both", "--weights", "--quiet"])
        told(["convert", *given, str(place / "list.h5"), "--layout", "list", "--weights", "--quiet"])
        ids = Graph.open(place / "graph.h5").original_ids()
        some = list(map(str, (np.arange(count) if ids is None else ids)[:LISTED].tolist()))
        few = some[:20_000]
        for name, lines in (
            ("some", some),
            ("values", [f"{one} {number % 9}" for number, one in enumerate(some)]),
            ("pairs", [f"{one} {other}" for one, other in pairwise(some)]),
            ("more", [f"{one} {other} 7" for one, other in zip(few, few[7:], strict=False)]),
        ):
            (place / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines))
        done.write_text(json.dumps(given))
    return Prepared(kind, count, place, json.loads(done.read_text()))


@dataclass(frozen=True)
class CommandPeak:
    """What a command took at its peak, in bytes, and its budget.

    growth: beside what was held before, in a process that has run it on a small graph. ended: False where it was ended,
    since it took longer than `PATIENCE_SECONDS`.
    """

    kind: str
    name: str
    budget: int
    peak: int
    growth: int | None
    ended: bool

    @property
    def promised(self) -> int:
        """The most that the process may take."""
        return self.budget + PROCESS_MIB * MIB

    @property
    def beyond(self) -> bool:
        """Whether it took more, or more than its budget and what allocators keep."""
        return self.peak > self.promised or (self.growth or 0) > self.budget + SMALL_CHANGE

    def __str__(self) -> str:
        numbers = [f"{number / MIB:.0f}" for number in (self.budget, self.promised, self.peak)]
        numbers.append("" if self.growth is None else f"{self.growth / MIB:.0f}")
        marks = ("" if self.ended else ", not ended") + (", **beyond**" if self.beyond else "")
        return f"| {self.kind} | {self.name} | {' | '.join(numbers)} | {self.peak / self.promised:.2f}{marks} |"


def peaks_of(kind: str, name: str, folder: Path, count: int | None = None) -> Iterator[CommandPeak]:
    """Peaks of a command on a kind of graph: with the least budget, and with half as much again."""
    size = KINDS[kind] if count is None else count
    line = [sys.executable, "-m", "support.command_peaks", "--growth", kind, str(size), str(folder), name]
    within = Peak(**json.loads(_run(line).out))
    large = prepared(kind, size, folder)
    yield replace(_peak(large, name, folder, within.budget), growth=within.growth)
    if name.split()[0] not in WITHOUT_BUDGET:
        yield _peak(large, name, folder, within.budget * 3 // 2)


def peak_at_least(kind: str, name: str, folder: Path) -> CommandPeak:
    """The peak of a command with the least budget that it accepts, as a process of its own alone."""
    large, budget = prepared(kind, KINDS[kind], folder), MIB
    if name.split()[0] in WITHOUT_BUDGET:
        return _peak(large, name, folder, large.promised(name))
    while True:
        try:
            return _peak(large, name, folder, budget)
        except RuntimeError as error:
            budget = _raised(str(error), budget, name)


def _peak(large: Prepared, name: str, folder: Path, budget: int) -> CommandPeak:
    """Run a command in a process of its own; once more where it took more: kernels may have been compiled."""
    limit = [] if name.split()[0] in WITHOUT_BUDGET else ["--host-memory", str(budget)]
    out = folder / f"out-{large.kind}"
    for _ in range(2):
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        ended = _run([sys.executable, "-P", "-m", "penstock.tools.main", *large.words(name, out), *limit])
        found = CommandPeak(large.kind, name, budget, ended.peak, None, ended.code == 0)
        if not found.beyond:
            break
    shutil.rmtree(out)
    return found


def _raised(refusal: str, budget: int, name: str) -> int:
    """The budget that a refusal asks for; an eighth more where it names none, since it comes before all ids are known.

    With a little more for the most similar vertices: for each part of these that memory holds all rows are read once.
    """
    wanted = re.search(r"(?:--host-memory|at least) (\d+)MiB", refusal.rpartition("too ")[2])
    if wanted is not None and int(wanted[1]) * MIB > budget:
        return (int(wanted[1]) + (32 if "--k" in name else 0)) * MIB
    if "raise --host-memory" not in refusal:
        raise RuntimeError(refusal)
    return (budget * 9 // 8 // MIB + 1) * MIB


@dataclass(frozen=True)
class _Ended:
    """How a process ended: its code, its peak in bytes, what it wrote to stdout."""

    code: int
    peak: int
    out: str


def _run(command: list[str]) -> _Ended:
    """Run a process. Raises RuntimeError where it fails.

    A small one starts it and asks for its peak: Linux counts to a new process what the one that starts it holds.
    """
    starter = [sys.executable, "-S", "-E", "-c", STARTER, str(PATIENCE_SECONDS)]
    tests = Path(__file__).parents[1]
    done = subprocess.run([*starter, *command], capture_output=True, text=True, check=True, cwd=tests)
    said, _, last = done.stderr.rstrip("\n").rpartition("\n")
    code, peak = map(int, last.split())
    if code not in (0, -signal.SIGALRM):
        raise RuntimeError(f"{command} ended with {code}: {said}")
    return _Ended(code, peak << 10, done.stdout)


def _measured(name: str, small: Prepared, large: Prepared, out: Path) -> Peak:
    """Measure one command in this process, at the least budget that it accepts."""
    from penstock.engine.kernels.host import launch
    from penstock.engine.kernels.host.whole_rows import launch_rows

    usual = launch.SMALL
    for each in (usual, 1):  # kernels of one thread, kernels of all
        launch.SMALL = launch_rows.SMALL = each
        told(small.words(name, out))
    launch.SMALL = launch_rows.SMALL = usual
    if name.split()[0] in WITHOUT_BUDGET:
        return least_of(name, large.words(name, out), large.promised(name))
    budget = MIB
    while True:
        try:
            return least_of(name, [*large.words(name, out), "--host-memory", str(budget)], budget)
        except RuntimeError as error:
            budget = _raised(str(error), budget, name)


def _growth(kind: str, size: str, folder: str, name: str) -> None:
    """Measure a command in this process, and print it."""
    load_for_good()
    place = Path(folder)
    small, large = prepared(kind, SMALL, place), prepared(kind, int(size), place)
    out = place / f"out-{kind}"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    print(json.dumps(vars(_measured(name, small, large, out))))


def _main(folder: str, *wanted: str) -> None:
    least = "--least" in wanted
    for one in [one for one in wanted if one != "--least"] or KINDS:
        kind, _, names = one.partition(":")
        for name in names.split(",") if names else suited(kind):
            place = Path(folder)
            try:
                for peak in [peak_at_least(kind, name, place)] if least else peaks_of(kind, name, place):
                    print(peak, flush=True)
            except (RuntimeError, ValueError) as error:  # the others are measured nevertheless
                print(f"| {kind} | {name} | {error}", flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "--growth":
        _growth(*sys.argv[2:])
    else:
        _main(*sys.argv[1:])
