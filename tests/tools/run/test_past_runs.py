"""What runs took is kept in one file of the cache folder, and dry runs learn from it."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from penstock.engine.planning import known_runs
from penstock.engine.planning.known_runs import Expected, PastRun
from penstock.engine.programs.catalogue import CATALOGUE
from penstock.storage.base.errors import InputError
from penstock.tools import cli
from penstock.tools.run import dry_run, past_runs
from penstock.tools.run.past_runs import add_run, load_now, read_runs, reference_runs
from penstock.transfer.values.cost import Cost
from support.commands import answered
from support.graphs import on_disk, shape

RUN = PastRun(
    "pagerank", "7", stays=1.0, vertices=100, edges=1000, most=10, threads=2, load=0.0,
    iterations=10, sweeps=10.0, seconds=20.0,
)  # fmt: skip


def test_a_file_of_many_runs_keeps_the_newer_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(past_runs, "MOST_BYTES", 4000)
    place = tmp_path / "new" / "runs.jsonl"
    for number in range(100):
        add_run(place, replace(RUN, parameters=str(number)))
    kept = [int(run.parameters) for run in read_runs(place)]
    assert kept == list(range(kept[0], 100))
    assert 5 <= len(kept) < 25
    assert place.stat().st_size <= 4000


def test_runs_that_end_at_once_are_all_kept(tmp_path: Path) -> None:
    place = tmp_path / "runs.jsonl"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: add_run(place, replace(RUN, parameters=str(number))), range(100)))
    assert sorted(int(run.parameters) for run in read_runs(place)) == list(range(100))


@pytest.mark.parametrize(
    "line", [b"\xff\x00", b"{}", b"[" * 5000, b'{"program": 3}', b"null", b'{"seconds": NaN}', b"1e999"]
)
def test_damaged_lines_are_passed_over(tmp_path: Path, line: bytes) -> None:
    place = tmp_path / "runs.jsonl"
    add_run(place, RUN)
    with place.open("ab") as file:
        file.write(line + b"\n")
    add_run(place, replace(RUN, seconds=0.0))  # of which no factor follows
    add_run(place, RUN)
    assert read_runs(place) == [RUN, RUN]


def test_files_of_others_are_not_read(tmp_path: Path) -> None:
    place = tmp_path / "runs.jsonl"
    add_run(place, RUN)
    place.chmod(0o666)
    assert read_runs(place) == []
    assert read_runs(tmp_path / "none.jsonl") == []


@pytest.mark.parametrize("other", ["pipe", "pipe with a reader", "folder", "link", "of another user"])
def test_nothing_but_a_file_of_this_user_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    place, target = tmp_path / "runs.jsonl", tmp_path / "target"
    target.write_text("")
    if other.startswith("pipe"):
        os.mkfifo(place)
    elif other == "folder":
        place.mkdir()
    elif other == "link":
        place.symlink_to(target)
    else:
        place.write_text("")
        monkeypatch.setattr(os, "geteuid", lambda: place.stat().st_uid + 1)
    reader = os.open(place, os.O_RDONLY | os.O_NONBLOCK) if other == "pipe with a reader" else None
    with pytest.raises((OSError, InputError)):
        add_run(place, RUN)
    assert target.stat().st_size == 0
    assert place.is_dir() or place.stat().st_size == 0
    if reader is not None:
        os.close(reader)


def test_the_load_is_what_some_work_takes_longer_than_on_a_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_runs, "cores", lambda: 2)
    monkeypatch.setattr(past_runs, "_worked", lambda: (0.2, 0.05))
    assert [load_now(threads) for threads in (1, 2, 4)] == [7.0, 6.0, 12.0]


def test_work_has_a_core_no_longer_than_it_takes() -> None:
    passed, had = past_runs._worked()
    assert past_runs.PROBE_SECONDS <= had <= passed * 1.01


def test_a_run_waited_for_a_core_as_long_as_its_first_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_runs, "cores", lambda: 2)
    ahead, records = replace(RUN, seconds=0.0), [SimpleNamespace(edges=500)] * 4
    for had, load in ((11.0, 2.0), (10.0, 0.0)):  # nothing on a core tells nothing
        monkeypatch.setattr(past_runs, "core_seconds", lambda had=had: (had, 11.0))
        run: Any = past_runs.ended(ahead, records, 8.0, (10.0, 10.0))  # type: ignore[arg-type]
        assert (run.load, run.slowdown, run.iterations, run.sweeps) == (load, 1 + load / 2, 4, 2.0)
    alone: Any = past_runs.ended(ahead, [], 8.0, (10.0, 10.0))
    assert (alone.iterations, alone.sweeps) == (1, 1.0)


def test_runs_of_another_machine_are_there() -> None:
    found = reference_runs()
    assert {run.program for run in found} <= {info.name for info in CATALOGUE}
    assert {"bfs", "sssp", "wcc", "pagerank", "hits", "coreness", "triangles", "cdlp"} <= {run.program for run in found}
    assert all(run.seconds > 0 and run.sweeps > 0 and run.depth > 0 for run in found)
    assert any(run.besides > 0 for run in found)
    assert {run.stays < 1 for run in found if run.threads == 0} == {False, True}, "on a GPU"


@pytest.mark.parametrize("text", [None, "", "bfs,1,x\n", "bfs,1\n", f"{'bfs,' * 20}\n", "\xff\n"])
def test_without_a_whole_file_of_runs_of_another_machine_there_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    place = tmp_path / "runs.csv"
    if text is not None:
        whole = past_runs.REFERENCE.read_text(encoding="utf-8") if text else ""
        place.write_text(whole + text, encoding="latin-1")
    monkeypatch.setattr(past_runs, "REFERENCE", place)
    assert reference_runs.__wrapped__() == []


@pytest.mark.parametrize(("kind", "threads"), [("cpu", 2), ("cuda", 0)])
def test_a_first_run_is_told_by_runs_on_a_device_of_its_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, threads: int
) -> None:
    monkeypatch.setattr(past_runs, "place_of_runs", lambda _: tmp_path / "none")
    others = [replace(run, threads=2 - threads, seconds=1e6) for run in reference_runs() if run.threads == threads]
    of_kind = [run for run in reference_runs() if run.threads == threads]
    monkeypatch.setattr(past_runs, "reference_runs", lambda: [*of_kind, *others])
    sweep = SimpleNamespace(seconds=3.0, cost=Cost())
    found: Any = SimpleNamespace(
        first=sweep, later=sweep, most_iterations=10, everywhere=True, phases=False, compiles=True
    )
    device: Any = SimpleNamespace(kind=kind)
    will = past_runs.past_runs(device, None, 2).expected(replace(RUN, threads=threads), found)
    assert will is not None
    assert not will.by_rates
    assert 0 < will.alone_seconds < 1
    assert (dry_run._whole([will]) is None) == (will.besides == 0) == (kind == "cuda"), "where the rest is not known"


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A graph, and an empty cache."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    on_disk(shape("skewed"), tmp_path / "g.h5")
    return "g.h5"


def test_a_dry_run_learns_from_runs(capsys: pytest.CaptureFixture[str], graph: str) -> None:
    words = ("pagerank", graph, "--max-iter", 4, "--tol", 0)
    (before,) = answered(capsys, "run", *words, "--dry-run")["programs"]
    assert (before["expected"]["runs"], before["expected"]["error"]) == (0, None)
    taken = answered(capsys, "run", *words)["stages"]["iterations"]
    (after,) = answered(capsys, "run", *words, "--dry-run")["programs"]
    told = after["expected"]
    assert (told["runs"], told["errors"], round(told["sweeps"])) == (1, [], 4)
    assert told["alone_seconds"] <= taken * 1.01
    answered(capsys, "run", *words)
    assert cli.run_command(["run", *map(str, words), "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "from 2 past runs like it; forecasts were within" in shown
    assert "beside a load of" in shown


@pytest.mark.parametrize(("sweeps", "words"), [(1, "1 sweep"), (2.5, "2.5 sweeps"), (1000, "1,000 sweeps")])
def test_sweeps_are_numbers_that_people_write(sweeps: float, words: str) -> None:
    (_, told), (_, learnt) = dry_run._expected(Expected(2.0, 1.0, 1.0, sweeps, 0.5, 0.0, 3.0, 2, 0, True, [0.5]))
    assert str(told).startswith(f"about 2 s for edges of {words} in 1 iterations, beside")
    assert str(learnt).startswith("no past run is like it")


def test_a_cache_that_takes_nothing_ends_no_run(
    capsys: pytest.CaptureFixture[str], graph: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    assert answered(capsys, "run", "wcc", graph)["iterations"] > 0
    (told,) = answered(capsys, "run", "wcc", graph, "--dry-run")["programs"]
    assert told["expected"]["runs"] == 0
