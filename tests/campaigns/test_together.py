"""Commands that begin together and write the same files: each does its work or is refused, and what is left is whole.

By default one round of each; PENSTOCK_CAMPAIGN=all makes twenty, and starts eight jobs where else three start.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from campaigns.conftest import Workshop
from penstock.storage.format.graph import Graph
from support.stories import STORIES, content

ALL = os.environ.get("PENSTOCK_CAMPAIGN") == "all"
ROUNDS, JOBS = (20, 8) if ALL else (1, 3)

pytestmark = pytest.mark.timeout(3600 if ALL else 300)


def together(workshop: Workshop, *commands: str, apart: float = 0.0, **variables: str) -> list[tuple[int, str]]:
    """Start commands so many seconds apart, and wait for all; their codes and messages."""
    begun = []
    for command in commands:
        begun.append(
            subprocess.Popen(
                [sys.executable, "-P", "-m", "penstock.tools.main", *command.split(), "--quiet"],
                cwd=workshop.place.folder,
                env=os.environ | workshop.place.environment | variables,
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            )
        )  # fmt: skip
        time.sleep(apart)
    ended = []
    for process in begun:
        err = process.communicate(timeout=600)[1]
        assert "Traceback" not in err, err
        assert process.returncode in (0, 1, 2), err
        assert err.count("\n") == (process.returncode != 0), err
        ended.append((process.returncode, err))
    return ended


def edges(workshop: Workshop, name: str) -> int:
    """How many edges a graph has, all of which can be read."""
    content(workshop.place.folder / name)
    return Graph.open(workshop.place.folder / name).input_edges


def debris(workshop: Workshop) -> set[str]:
    """What is left besides results."""
    return set(workshop.left(STORIES[0]).debris) - set(workshop.before.debris)


@pytest.mark.parametrize("name", ["l.h5", "g.h5", "s.h5"])
def test_two_appends(workshop: Workshop, name: str) -> None:
    """Both add their edges, or one is refused."""
    tally: Counter[int] = Counter()
    for number in range(ROUNDS):
        workshop.place.restore()
        before = edges(workshop, name)
        ended = together(workshop, f"append {name} more.txt", f"append {name} more.txt", apart=number * 0.03)
        done = [code for code, _ in ended].count(0)
        assert done, ended
        assert all(code == 0 or "is in use by another run" in err for code, err in ended), ended
        assert edges(workshop, name) == before + done * 350
        assert debris(workshop) == set()
        tally[done] += 1
    print(f"{name}: appends that were done of two: {dict(tally)}")


CHANGES = ["convert more.txt g.h5 --force", "append g.h5 more.txt", "append s.h5 more.txt"]


@pytest.mark.parametrize("change", CHANGES if ALL else CHANGES[:1])
def test_a_graph_changes_while_it_is_read(workshop: Workshop, change: str) -> None:
    """The answer is that of the old graph or of the new one."""
    name = change.split()[1 if change.startswith("append") else 2]
    read = f"run wcc {name} --output new.csv --no-calibrate"
    workshop.place.restore()
    answers = []
    for _ in range(2):
        assert workshop.run([*read.split(), "--force", "--quiet"]).code == 0
        answers.append(content(workshop.place.folder / "new.csv"))
        assert workshop.run([*change.split(), "--quiet"]).code == 0
    tally: Counter[int] = Counter()
    for number in range(ROUNDS):
        workshop.place.restore()
        first, second = (read, change) if number % 2 else (change, read)
        ended = together(workshop, first, second, apart=number // 2 * 0.06)
        assert [code for code, _ in ended] == [0, 0], ended
        tally[answers.index(content(workshop.place.folder / "new.csv"))] += 1
        assert debris(workshop) == set()
    print(f"{change}: answers of the old graph (0) and the new one (1): {dict(tally)}")


def test_two_conversions_of_one_name(workshop: Workshop) -> None:
    """One graph is there, whole, of the one input or of the other."""
    tally: Counter[int] = Counter()
    for number in range(ROUNDS):
        workshop.place.restore()
        stripes = "--stripe a --stripe b --force"
        commands = (f"convert edges.txt s.h5 {stripes}", f"convert more.txt s.h5 {stripes}")
        ended = together(workshop, *commands, apart=number * 0.03)
        assert 0 in [code for code, _ in ended], ended
        assert all(code == 0 or "is in use by another run" in err for code, err in ended), ended
        tally[edges(workshop, "s.h5")] += 1
        assert debris(workshop) == set(), ended
    print(f"edges of the graph that is there: {dict(tally)}")


def test_an_append_and_a_conversion_of_one_name(workshop: Workshop) -> None:
    """What is there is whole: the new graph, with or without the edges that were added, or the one is refused."""
    tally: Counter[tuple[int, ...]] = Counter()
    for number in range(ROUNDS):
        workshop.place.restore()
        commands = ["convert more.txt s.h5 --layout list --stripe a --stripe b --force", "append s.h5 more.txt"]
        before = edges(workshop, "s.h5")
        ended = together(workshop, *commands[:: 1 if number % 2 else -1], apart=number // 2 * 0.03)
        codes = tuple(code for code, _ in ended)
        assert 0 in codes, ended
        assert all(code == 0 or "is in use by another run" in err for code, err in ended), ended
        assert edges(workshop, "s.h5") in (350, 700, before + 350), ended
        assert debris(workshop) == set(), ended
        tally[codes] += 1
    print(f"codes: {dict(tally)}")


OPTIONS = ["--checkpoint state --checkpoint-every 1", "--checkpoint state --resume", ""]


@pytest.mark.parametrize("more", OPTIONS if ALL else OPTIONS[:1])
def test_jobs_in_one_run_directory(workshop: Workshop, more: str) -> None:
    """One runs at a time; the others are refused, and the directory holds one whole record."""
    tally: Counter[int] = Counter()
    for number in range(min(ROUNDS, 5)):
        workshop.place.restore()
        command = f"run pagerank g.h5 --run-dir runs {more} --no-calibrate"
        ended = together(workshop, *[command] * JOBS, apart=number * 0.05)
        done = [code for code, _ in ended].count(0)
        words = ("is in use by another run", "holds a run already", "exists already", "is done")
        assert done, ended
        assert all(code == 0 or any(word in err for word in words) for code, err in ended), ended
        record = json.loads((workshop.place.folder / "runs" / "run.json").read_text())
        assert record["status"] == "done", record
        assert debris(workshop) <= {"runs/state/.penstock-ended"}
        tally[done] += 1
    print(f"jobs that ran of {JOBS} {more}: {dict(tally)}")


@pytest.mark.skipif(not ALL, reason="every job compiles")
def test_jobs_with_one_empty_cache(workshop: Workshop) -> None:
    """All compile, each keeps what the others may load, and all give the same answer."""
    for number in range(2):
        workshop.place.restore()
        cache = workshop.place.folder / f"empty{number}"
        commands = [f"export g.h5 new{job}.csv" for job in range(JOBS)]
        ended = together(workshop, *commands, NUMBA_CACHE_DIR=str(cache))
        assert ended == [(0, "")] * JOBS
        assert len({content(workshop.place.folder / f"new{job}.csv") for job in range(JOBS)}) == 1
        kept = [path for path in cache.rglob("*") if path.is_file()]
        assert kept
        assert not [path for path in kept if path.name.startswith(".")]
        again = together(workshop, "export g.h5 again.csv", NUMBA_CACHE_DIR=str(cache))
        assert again == [(0, "")]
        assert {path for path in cache.rglob("*") if path.is_file()} == set(kept), "was compiled once more"


def test_a_look_at_a_graph_counts_edges(workshop: Workshop) -> None:
    workshop.place.restore()
    assert Path(workshop.place.folder, "l.h5").is_file()
    assert edges(workshop, "l.h5") == 2502
