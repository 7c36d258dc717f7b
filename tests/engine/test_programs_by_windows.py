"""Every program whose values of vertices come by windows answers what it does with all in memory, wherever it runs.

One product of programs, places, windows, directions, graphs and files. All values of the other programs are in memory.
"""

from __future__ import annotations

import errno
import gc
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from penstock.engine import Graph
from penstock.engine.checkpoint.checkpoint import Checkpoints
from penstock.engine.planning.requirements import has_value_pages, wants_rows_in_order
from penstock.engine.programs.table import PROGRAMS
from penstock.storage.base.errors import RunError
from penstock.storage.checkpoint.state_pages import Unit
from support.covering import covering
from support.paged_graphs import answer, assert_equal, forgotten, no_edges_kept, unnamed
from support.paged_places import PLACES
from support.paged_programs import ALIKE, ALL
from support.program_cases import Fields

__all__ = ["forgotten"]
pytestmark = pytest.mark.usefixtures("unfused")

WHOLE = "articulation", "bridges", "cdlp", "lcc", "leiden", "louvain", "msf", "triangles", "trussness"
"""Programs on whole rows, and those that join trees between sweeps."""
Graphs = Callable[[str, int, bool], Graph]
Answers = Callable[[str, str, bool], Fields]


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Graphs:
    """By place, windows in the file, and whether it is directed."""
    folder = tmp_path_factory.mktemp("windows")
    return cache(
        lambda place, count, directed: PLACES[place].graph(
            folder / f"{PLACES[place].page}-{count}-{directed}.h5", count, directed=directed
        )
    )


@pytest.fixture(scope="module")
def in_memory(graphs: Graphs) -> Answers:
    """What programs answer on the cores with all values in memory, by name, place and graph; each once."""
    return cache(lambda name, place, directed: answer(graphs(place, 1, directed), ALL[name](), threads=1))


@pytest.mark.filterwarnings("ignore:overflow encountered in scalar add")  # of the simulator, in 32 bits for 64
@covering(
    "name, place, count, way, directed, cut",
    sorted(ALL), PLACES, (1, 2, 5), ("auto", "push", "pull"), (True, False), (True, False), rare=ALIKE,
    where=lambda _, place, count, way, directed, cut: count > 1 if cut else place != "device" or count == 1,
)  # fmt: skip
def test_answers_are_those_of_all_values_in_memory(
    name: str, place: str, count: int, way: str, directed: bool, cut: bool, graphs: Graphs, in_memory: Answers,
    forgotten: list[Unit],
) -> None:  # fmt: skip
    """cut: whether the file has these windows, and no edges are kept; else some are, and windows are cut on the way."""
    there, size = PLACES[place], "device" if place == "device" else "cores"
    with there.pages():
        graph, wanted = graphs(size, count if cut else 1, directed), in_memory(name, size, directed)
        with no_edges_kept() if cut and place != "device" else nullcontext():
            for found in there.run(ALL[name], graph, count, kept=not cut, direction=way):
                assert_equal(found, wanted)
    assert forgotten or count < 5


def failing(call: str, then: Callable[[], None], after: Callable[[], bool]) -> Callable[..., Any]:
    """A system call that does something else to the file of values, which has no name, once `after` says so."""
    done = getattr(os, call)

    def move(handle: int, *given: Any) -> Any:
        if "(deleted)" in os.readlink(f"/dev/fd/{handle}") and after():
            then()
        return done(handle, *given)

    return move


def full() -> None:
    """Fail as a full disk does."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def run_in_file(place: str, graph: Graph, folder: Path, *, resume: bool) -> list[Fields]:
    """What shortest paths are, by windows, with values in a file and a checkpoint after each iteration."""

    def keeps(rank: int) -> Checkpoints:
        return Checkpoints(folder, 1, resume=resume, follows=rank > 0)

    with PLACES[place].in_file():
        return PLACES[place].run(ALL["sssp"], graph, 5, kept=True, checkpoints=keeps)


def left_by_run(graph: Graph, before: set[str]) -> set[str]:
    """Files of values that are still open: a thread that writes a page when a run fails ends with that page."""
    for _ in range(100):
        gc.collect()
        if not (left := set(unnamed(graph.files[0].parent)) - before):
            break
        time.sleep(0.05)
    return left


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("call", ["posix_fallocate", "pwritev", "preadv"])
def test_a_disk_that_is_full_or_fails_ends_the_run_which_then_goes_on(
    call: str, place: str, graphs: Graphs, in_memory: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From its checkpoint; a disk that is too small has none yet. Nothing of the file is left."""
    size, kept = "device" if place == "device" else "cores", tmp_path / "kept"
    with PLACES[place].pages():
        graph, wanted = graphs(size, 5, False), in_memory("sssp", size, False)
        before = set(unnamed(graph.files[0].parent))  # of runs of earlier tests of this process
        with monkeypatch.context() as patch:
            begun = call == "posix_fallocate"
            patch.setattr(os, call, failing(call, full, lambda: begun or any(kept.glob("checkpoint-*"))))
            with pytest.raises(RunError, match=r"the file for vertex state.*No space left"):
                run_in_file(place, graph, kept, resume=False)
        assert not left_by_run(graph, before)
        assert any(kept.glob("checkpoint-*")) != begun
        for found in run_in_file(place, graph, kept, resume=True):
            assert_equal(found, wanted)


KILLED = """
import os, signal, sys
from pathlib import Path
from unittest import mock
sys.path[:0] = sys.argv[1:3]
from penstock.engine import Graph
from support.paged_places import PLACES
from test_programs_by_windows import failing, run_in_file
place, graph, folder, left = sys.argv[3], Path(sys.argv[4]), Path(sys.argv[5]), [int(sys.argv[6])]
def due():
    left[0] -= any(folder.glob("checkpoint-*"))
    return left[0] < 0
kill = failing("pwritev", lambda: os.kill(os.getpid(), signal.SIGKILL), due)
with PLACES[place].pages(), mock.patch.object(os, "pwritev", kill):
    run_in_file(place, Graph.open(graph), folder, resume=folder.exists())
"""


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kills", [1, pytest.param(5, marks=pytest.mark.full)])
def test_killed_while_it_writes_values_a_run_goes_on_to_the_same_answer(
    place: str, kills: int, graphs: Graphs, in_memory: Answers, tmp_path: Path
) -> None:
    size, kept, tests = "device" if place == "device" else "cores", tmp_path / "kept", Path(__file__).parents[1]
    choose = random.Random(place)
    with PLACES[place].pages():
        graph, wanted = graphs(size, 5, False), in_memory("sssp", size, False)
        before = sorted(graph.files[0].parent.iterdir())
        for _ in range(kills):
            given = tests, tests / "engine", place, graph.files[0], kept, choose.randrange(4)
            ended = subprocess.run([sys.executable, "-c", KILLED, *map(str, given)], capture_output=True, check=False)
            assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
            assert any(kept.glob("checkpoint-*"))
        assert sorted(graph.files[0].parent.iterdir()) == before
        for found in run_in_file(place, graph, kept, resume=True):
            assert_equal(found, wanted)


def test_every_program_is_in_the_product_or_has_all_values_in_memory(graphs: Graphs) -> None:
    """The least budget that its refusal names is then that of all values: `resources/test_least_budget.py`."""
    assert sorted(PROGRAMS.keys() - {name.partition(" ")[0] for name in ALL}) == sorted(WHOLE)
    graph = graphs("cores", 1, False)
    for name in WHOLE:
        program = PROGRAMS[name]()
        assert not (has_value_pages(program) and wants_rows_in_order(graph, program, {"push": 0, "pull": 0}))
