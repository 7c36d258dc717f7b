"""The budget is a ceiling: what a run takes at its peak, summary and output included, at the least budget it accepts.

On a star, and on many vertices without edges: there the arrays of a program's own functions, of summaries and of tables
would be large, and edges are few. By default programs that answer in different ways, each in one kind of ids; all with
`-m full`. What every program allocates itself is counted by engine/resources/test_least_budget.py.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from penstock.storage.base.errors import PROCESS_MIB
from support.peak_memory import ARGUMENTS, MIB, SMALL_CHANGE, graphs, peaks

VERTICES = 2_400_000
"""So many that an array of four bytes for each is more than `SMALL_CHANGE`."""
FEWER = 400_000
BY_GROUP = ("wcc", "scc", "cdlp", "louvain", "leiden", "coloring", "mis", "msf", "bridges", "coreness")
"""Programs whose own functions and tables grow with the groups that they find: without edges, as many as vertices.

All others touch no more of vertices without edges than of the star's, which has as many.
"""
WIDE = ("cf",)
"""Programs of so many bytes a vertex that fewer vertices will do."""
BY_ID = ("sssp", "bfs", "wcc", "cdlp", "mis")
"""Programs that take ids each in another way: none, parents, components, labels that are sorted, ranks by hashes."""
WASTEFUL = """
import numpy as np
from penstock.engine.programs.wcc import WCC


class Wasteful(WCC):
    '''WCC that copies its answer.'''

    def finish(self, graph, state):
        found = super().finish(graph, state)
        np.repeat(found["component"], 4).astype(np.int64)
        return found
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("peaks")


@pytest.mark.parametrize(
    ("shape", "programs", "vertices"),
    [
        ("isolated", ("louvain",), VERTICES),
        ("star", ("betweenness",), VERTICES),
        pytest.param("isolated", BY_GROUP, VERTICES, marks=pytest.mark.full),
        pytest.param("star", [name for name in ARGUMENTS if name not in WIDE], VERTICES, marks=pytest.mark.full),
        pytest.param("star", WIDE, FEWER, marks=pytest.mark.full),
    ],
)
def test_programs_stay_within_their_least_budgets(
    shape: str, programs: tuple[str, ...], vertices: int, folder: Path
) -> None:
    found = peaks(*graphs(shape, vertices, folder), programs, str(folder / "answer.parquet"))
    assert [peak.program for peak in found] == [*programs]
    beyond = {peak.program: (peak.budget // MIB, peak.growth / MIB) for peak in found if peak.beyond}
    assert not beyond, f"least budget and growth in MiB: {beyond}"


@pytest.mark.parametrize(
    ("ids", "programs"),
    [
        ("ids", ("bfs",)),
        ("hubs-first", ("mis",)),
        ("names", ("cdlp",)),
        pytest.param("ids", BY_ID, marks=pytest.mark.full),
        pytest.param("hubs-first", BY_ID, marks=pytest.mark.full),
        pytest.param("names", BY_ID[2:], marks=pytest.mark.full),
    ],
)
def test_answers_in_ids_of_the_input_stay_within_the_least_budget(
    ids: str, programs: tuple[str, ...], folder: Path
) -> None:
    """Ids are read as they are written; only where values are vertices, or ids have another order, they are held."""
    found = peaks(*graphs("isolated", VERTICES, folder, ids), programs, str(folder / "answer.parquet"))
    beyond = {peak.program: (peak.budget // MIB, peak.growth / MIB) for peak in found if peak.beyond}
    assert not beyond, f"least budget and growth in MiB: {beyond}"


def test_a_program_that_takes_more_is_found(folder: Path) -> None:
    source = folder / "wasteful.py"
    source.write_text(WASTEFUL)
    (found,) = peaks(*graphs("isolated", VERTICES, folder), [f"{source}:Wasteful"], str(folder / "answer.npy"))
    assert found.beyond
    assert found.growth > found.budget + 8 * VERTICES > found.budget + SMALL_CHANGE


def run_command(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    command = [sys.executable, "-m", "penstock.tools.main", *arguments, "--json"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "bfs", "GRAPH", "--source", "0", "--output", "OUT.csv"],
        pytest.param(
            ["run", "pagerank", "GRAPH", "--output", "OUT.parquet", "--max-iter", "3"], marks=pytest.mark.full
        ),
        pytest.param(["run", "wcc", "GRAPH", "--output", "OUT.h5"], marks=pytest.mark.full),
        ["walk", "GRAPH", "--length", "2", "--walks-per-vertex", "1", "--output", "OUT.csv"],
    ],
)
def test_a_refusal_names_the_peak_of_the_process(arguments: list[str], folder: Path) -> None:
    """It is not exceeded, and is not far off: the interpreter and its libraries take most of it."""
    graph = graphs("star", VERTICES, folder)[-1]
    given = [str(graph) if one == "GRAPH" else one.replace("OUT", str(folder / "out")) for one in arguments]
    given += ["--force", "--threads", "2"]
    ran = run_command([*given, "--host-memory", "1MiB"])
    pattern, least, expected = r"--host-memory (\d+)MiB or more; expect a peak of (\d+)MiB", 1, 0
    while found := re.search(pattern, ran.stderr):
        least, expected = int(found[1]), int(found[2])
        assert expected == least + PROCESS_MIB
        ran = run_command([*given, "--host-memory", f"{least}MiB"])
    assert (ran.returncode, bool(expected)) == (0, True), ran.stderr
    if peak_of(ran) > expected:  # the first one may compile
        ran = run_command([*given, "--host-memory", f"{least}MiB"])
    assert expected / 3 < peak_of(ran) <= expected, (peak_of(ran), expected)


def peak_of(ran: subprocess.CompletedProcess[str]) -> float:
    """What a command says of its peak, in MiB."""
    return float(json.loads(ran.stdout)["peak_memory_bytes"]) / MIB
