"""2,000 runs in one session, 200 jobs one after another: memory, descriptors, threads and temporary files do not grow.

The runs are of all programs in turn. Of four runs one is closed before its end, and one is refused, on a damaged graph,
or in a session of its own. Each campaign is a process of its own, whose temporary files go to a folder of their own;
what it holds after the first half is compared with what it holds at the end.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from support.launched_ranks import needs_mpi

ALL = os.environ.get("PENSTOCK_CAMPAIGN") == "all"
RUNS, JOBS = (2000, 200) if ALL else (32, 32)
SOME = ("bfs", "pagerank", "scc", "triangles")
"""Programs of the runs by default; in full all of them."""
STARTED = 20 if ALL else 1
"""How often commands run that are processes of their own."""
GROWTH = 4 << 20
"""Bytes that a process may hold more at the end than after the first half: caches of Python, and of the heap."""
pytestmark = pytest.mark.timeout(3600 if ALL else 240)


def held() -> dict[str, int]:
    """What this process holds now, when what is free has been given back."""
    from penstock.storage.base.freed_memory import give_back_freed_memory

    gc.collect()
    give_back_freed_memory()
    return {
        "memory": int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "python threads": threading.active_count(),
        "temporary files": sum(len(files) for _, _, files in os.walk(os.environ["TMPDIR"])),
        "children": len(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()),
    }


def session_of_runs(folder: Path, count: int, note: Callable[[], None]) -> None:
    """Runs in one session, with others beside it; `note` is called after half of them, and at the end."""
    from penstock.engine import Graph, Session
    from penstock.engine.programs.bfs import BFS
    from penstock.storage.base.errors import PenstockError
    from support.faults import flip_chunk
    from support.graphs import on_disk
    from support.program_cases import CASES, tangle

    edges = tangle(directed=True)
    graph = on_disk(edges, folder / "g.h5")
    on_disk(tangle(directed=False), folder / "undirected.h5")
    bad = on_disk(edges, folder / "bad.h5")
    flip_chunk(bad, 0)
    programs = list(CASES) if ALL else SOME
    leak: list[bytes] = []
    with Session(graph) as session:
        for number in range(count):
            program = CASES[programs[number // 2 % len(programs)]][0]()
            if number % 4 == 1:  # closed before its end
                steps = session.steps(program)
                with suppress(StopIteration):
                    next(steps)
                steps.close()
            elif number % 8 == 3:
                with suppress(PenstockError):
                    session.run(BFS(source=1 << 40))
                with suppress(PenstockError), Session(Graph.open(folder / "bad.h5")) as other:
                    other.run(program)
            elif number % 8 == 7:
                place = folder / ("undirected.h5" if number % 16 == 7 else "g.h5")
                with Session(Graph.open(place), host_memory="40MiB") as other:
                    other.run(BFS(source=0))
            else:
                session.run(program)
            if "PENSTOCK_LEAK" in os.environ:
                leak.append(bytes(1 << 19))
            if number + 1 in (count // 2, count):
                note()


def many_jobs(folder: Path, count: int, note: Callable[[], None]) -> None:
    """Jobs one after another on the command line of one process, one in four of which is refused or fails."""
    from penstock.tools import cli
    from support.graphs import on_disk
    from support.program_cases import tangle

    on_disk(tangle(directed=True), folder / "g.h5")
    (folder / "bad.h5").write_bytes((folder / "g.h5").read_bytes()[:5000])
    (folder / "more.txt").write_text("0 1 3\n1 2 4\n")
    (folder / "job.toml").write_text(
        'graph = "g.h5"\nno-calibrate = true\n'
        '[[programs]]\nname = "wcc"\noutput = "wcc.csv"\n[[programs]]\nname = "pagerank"\noutput = "ranks.parquet"\n'
    )
    lines = [
        ["run", "job.toml", "--run-dir", "kept", "--force"],
        ["run", "bfs", "bad.h5", "--source", "0"],
        ["run", "louvain", "g.h5", "--output", "groups.h5", "--force", "--no-calibrate"],
        ["walk", "g.h5", "--length", "5", "--output", "walks.parquet", "--force"],
        ["convert", "more.txt", "made.h5", "--force"],
        ["run", "sssp", "g.h5", "--source", "99999999", "--no-calibrate"],
        ["similarity", "g.h5", "--k", "2", "--output", "pairs.csv", "--force"],
        ["export", "g.h5", "edges.feather", "--force"],
    ]
    os.chdir(folder)
    with open(os.devnull, "w") as nothing:
        sys.stdout = sys.stderr = nothing
        for number in range(count):
            code = cli.run_command([*lines[number % len(lines)], "-q"])
            assert code == (2 if number % 8 in (1, 5) else 0), (lines[number % len(lines)], code)
            if number + 1 in (count // 2, count):
                note()
    sys.stdout = sys.stderr = sys.__stdout__


def measured(name: str, count: int, folder: Path, **environment: str) -> tuple[dict[str, int], dict[str, int]]:
    """What a campaign holds after its first half, and at its end."""
    temporary = folder / "temporary"
    temporary.mkdir()
    given = os.environ | {"TMPDIR": str(temporary), "PYTHONPATH": str(Path(__file__).parents[1])} | environment
    command = [sys.executable, __file__, name, str(count), str(folder)]
    done = subprocess.run(command, env=given, capture_output=True, text=True, check=False, timeout=3000)
    assert done.returncode == 0, done.stderr
    first, last = map(json.loads, done.stdout.splitlines())
    assert not list(temporary.rglob("*")), "temporary files are left at the end"
    return first, last


def growth(first: dict[str, int], last: dict[str, int]) -> dict[str, int]:
    """What has become more, of memory by more than `GROWTH`."""
    return {
        name: last[name] - first[name]
        for name in first
        if last[name] - first[name] > (GROWTH if name == "memory" else 0)
    }


def test_many_runs_in_one_session_grow_nothing(tmp_path: Path) -> None:
    first, last = measured("session", RUNS, tmp_path)
    print(f"{RUNS} runs: {first} then {last}")
    assert not growth(first, last), (first, last)


def test_many_jobs_in_one_process_grow_nothing(tmp_path: Path) -> None:
    first, last = measured("jobs", JOBS, tmp_path)
    print(f"{JOBS} jobs: {first} then {last}")
    assert not growth(first, last), (first, last)


def test_what_a_session_keeps_would_be_found(tmp_path: Path) -> None:
    first, last = measured("session", 32, tmp_path, PENSTOCK_LEAK="1")
    assert set(growth(first, last)) == {"memory"}, (first, last)


@pytest.mark.parametrize("ranks", ["", pytest.param(" --devices cpu,cpu", marks=needs_mpi)])
def test_processes_leave_nothing(ranks: str, tmp_path: Path) -> None:
    """In a /dev/shm of their own, and among temporary files."""
    (tmp_path / "temporary").mkdir()
    (tmp_path / "e.txt").write_text("0 1\n1 2\n2 0\n")
    penstock = f"{sys.executable} -P -m penstock.tools.main"
    commands = [
        "convert e.txt g.h5 --force --direction both",
        f"run pagerank g.h5 --output r.parquet --force --no-calibrate{ranks}",
    ]
    once = " && ".join(f"{penstock} {command} -q" for command in commands)
    script = f"mount -t tmpfs none /dev/shm && for i in $(seq {STARTED}); do {once} || exit 1; done; ls -A /dev/shm"
    ended = subprocess.run(
        ["unshare", "--mount", "bash", "-c", script], env=os.environ | {"TMPDIR": str(tmp_path / "temporary")},
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=1200,
    )  # fmt: skip
    if "unshare:" in ended.stderr or "mount:" in ended.stderr:
        pytest.skip("this machine lets us mount no tmpfs")
    assert (ended.returncode, ended.stdout) == (0, ""), ended
    assert not list((tmp_path / "temporary").rglob("*"))


if __name__ == "__main__":
    _, campaign, runs, where = sys.argv
    out = sys.stdout
    work = {"session": session_of_runs, "jobs": many_jobs}[campaign]
    work(Path(where), int(runs), lambda: print(json.dumps(held()), file=out, flush=True))
