"""A second process compiles kernels: it never holds up this one for long, and is gone when it is not needed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from inspect import unwrap
from pathlib import Path
from typing import Any

import pytest
from numba import types
from penstock.storage.base import missing_code
from penstock.storage.companion import process as companion
from penstock.storage.companion.process import end, expect, is_new, keeping, offer, start

JOB = {"target": ["time", "sleep"], "processes": 1}
SLEEP = "import time; time.sleep(1000)"
ANSWER = "import sys; sys.stdin.readline(); sys.stdin.readline(); print('true', flush=True); sys.stdin.read()"
POSSIBLE = unwrap(companion.is_possible)
"""That of users: pytest's own processes have no companion."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(companion, "is_possible", POSSIBLE)
    companion.install()
    end()
    yield tmp_path / "penstock/kernels"
    end()


def begin(monkeypatch: pytest.MonkeyPatch, code: str = SLEEP) -> Any:
    """A companion as at the first kernel of a job that is missing, which runs `code`."""
    monkeypatch.setattr(companion, "_START", code)
    offer(JOB.copy, 0)
    miss("begin")
    return companion._Present.companion


def miss(entry: str) -> bool:
    """Miss code that no other process finds."""
    return missing_code.tell_missing(entry, entry)


def ask(**origin: Any) -> bool:
    """Miss a function of the name that its origin has."""
    return missing_code.tell_missing("a function", f"{origin}", lambda: origin, (types.int64,))


def test_it_is_asked_for_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(companion, "_START", ANSWER)
    assert ask(name="a kernel")
    made = companion._Present.companion
    assert made is not None
    end()
    assert made.process.returncode == -9


def test_what_is_waited_for_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(companion, "_START", ANSWER)
    monkeypatch.setattr(companion, "compiling", lambda name: (told.append(name), nullcontext())[1])
    assert ask(name="a kernel")
    assert told == ["a function"]


def test_it_imports_nothing_from_the_working_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('foreign code')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(companion, "_START", f"import json; {ANSWER}")
    assert ask(name="a kernel")


def test_what_cannot_be_told_starts_none() -> None:
    assert not missing_code.tell_missing("sum", "entry", dict, (types.literal(3),))
    assert companion._Present.companion is None


def test_one_that_fails_is_logged_and_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="penstock")
    made = begin(monkeypatch, "import os; os.write(2, b'\\xff'); raise SystemExit('nothing works')")
    made.process.wait()
    assert not ask(name="a kernel")
    assert "nothing works" in caplog.text
    assert not list(folder.glob(".*"))
    assert start() is None
    end()
    assert start() is not None


def test_one_that_hangs_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(companion, "PATIENCE", 0.05)
    made = begin(monkeypatch)
    made.claims.take("taken and never ended")
    miss("a kernel that nobody takes")
    assert made.process.poll() is None
    miss("taken and never ended")
    assert made.process.returncode == -9
    assert not list(folder.glob(".*"))


def test_it_is_there_before_what_has_not_run_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(companion, "_START", SLEEP)
    for compiled in (False, True):
        assert expect("a program")
        made = companion._Present.companion
        assert made is not None
        end(compiled=compiled)
    assert not expect("a program")
    assert companion._Present.companion is None
    assert expect("another program")
    assert companion._Present.companion is not None
    end()
    with monkeypatch.context() as patch:  # this process compiles itself
        patch.setattr(companion, "is_possible", lambda processes: False)
        expect("a program that runs alone")
        end()
    expect("a program that runs alone")
    assert companion._Present.companion is None
    monkeypatch.setattr(companion, "shipped_places", lambda: (Path("kernels"),))
    assert not expect("a program whose kernels may be there")
    assert companion._Present.companion is None


def test_an_early_job_begins_at_once_where_nothing_like_the_run_has_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(companion, "_START", SLEEP)
    for known in (False, True):
        expect("a program", "a_module")
        offer(JOB.copy, 0, early=True)
        made = companion._Present.companion
        assert (made is not None and made.has_job) is not known
        end()


@pytest.mark.parametrize("why", ["no memory", "no cache", "no Python", "no job"])
def test_without_what_it_needs_there_is_none(why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if why == "no memory":
        monkeypatch.setattr(companion, "available_memory", lambda: companion.COMPANION_BYTES - 1)
    elif why == "no cache":
        (tmp_path / "penstock").write_text("not a folder")
        monkeypatch.setenv("TMPDIR", str(tmp_path / "penstock"))
    elif why == "no Python":
        monkeypatch.setattr(sys, "executable", "/usr/bin/server")
    else:
        monkeypatch.setitem(JOB, "kernel", object())
    assert begin(monkeypatch) is None
    assert not miss("a kernel")
    if why != "no job":
        assert not ask(name="a kernel")


def test_it_ends_where_a_run_leaves_it_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    made = begin(monkeypatch)
    monkeypatch.setattr(companion, "available_memory", lambda: 1 << 30)
    offer(None, 2 << 30)
    assert made.process.returncode == -9
    assert start() is None


def test_a_run_that_misses_nothing_starts_none() -> None:
    offer(JOB.copy, 0)
    assert companion._Present.companion is None
    end()
    miss("a kernel")
    assert companion._Present.companion is None


def test_one_that_nobody_asked_for_long_is_replaced(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="penstock")
    made = begin(monkeypatch, "import signal, time; signal.setitimer(signal.ITIMER_REAL, 0.01); time.sleep(1000)")
    made.process.wait()
    made.claims.take("taken and never ended")
    miss("taken and never ended")
    monkeypatch.setattr(companion, "_START", ANSWER)
    assert ask(name="a kernel")
    assert companion._Present.companion is not made
    assert not [record for record in caplog.records if "companion" in record.name]


def test_a_process_that_is_forked_leaves_it_to_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    made = begin(monkeypatch)
    monkeypatch.setattr(companion, "_changing", companion._changing)
    companion._after_fork()
    end()
    assert made.process.poll() is None
    made.close()


def test_one_serves_several_runs_whose_jobs_end(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    with keeping():
        made = begin(monkeypatch)
        made.claims.take("taken and never ended")
        end()
        assert begin(monkeypatch) is made
        assert made.claims.take("taken and never ended")
    assert made.process.returncode == -9
    assert not list(folder.glob(".*"))


def test_a_job_of_all_runs_goes_on_in_place_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def give(one: Any, job: Any) -> None:
        given.append(job)
        one.has_job = True

    monkeypatch.setattr(companion.Companion, "give", give)
    with keeping(lambda: {**JOB, "whole": True}):
        made = begin(monkeypatch)
        made.claims.take("taken and never ended")
        end()
        offer(JOB.copy, 0)
        assert not miss("another")
        assert companion._Present.companion is made
        assert not made.claims.take("taken and never ended")
    assert [job["whole"] for job in given] == [True]
    assert made.process.returncode == -9
    begin(monkeypatch)
    assert given[1:] == [JOB]


def test_all_that_it_leads_end_with_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told = tmp_path / "told"
    code = (
        f"import os, time\nif os.fork() == 0:\n    open({str(told)!r}, 'w').write(str(os.getpid()))\ntime.sleep(1000)"
    )
    made = begin(monkeypatch, code)
    while not (told.exists() and told.read_text()):
        assert made.process.poll() is None
    end()
    state = Path(f"/proc/{told.read_text()}/stat")
    while state.exists() and " Z " not in state.read_text():
        os.sched_yield()


def test_whether_something_is_new_is_known_without_a_companion(folder: Path) -> None:
    folder.mkdir(parents=True)
    assert is_new("a run")
    assert companion._Present.companion is companion._Present.marker is None
    expect("a run", early=False)
    end()
    assert not is_new("a run")


def test_what_was_expected_and_has_not_run_is_new_after_the_process(folder: Path) -> None:
    folder.mkdir(parents=True)
    code = "from penstock.storage.companion import process; process.install(); process.expect('a run', early=False)"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert is_new("a run")
