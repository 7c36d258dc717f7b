"""A second process compiles kernels: it never holds up this one for long, and is gone when it is not needed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from penstock.storage.base import kernel_cache
from penstock.storage.companion import process as companion
from penstock.storage.companion.process import Claims, before_compiling, end, offer

JOB = {"target": ["time", "sleep"], "processes": 1}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    yield tmp_path / "penstock/kernels"
    end()


def begin(monkeypatch: pytest.MonkeyPatch, code: str = "") -> Any:
    """A companion as at the first kernel that is missing, which runs `code`."""
    monkeypatch.setattr(companion, "_START", code)
    offer(JOB.copy, 0)
    kernel_cache.tell_missing()
    return companion._Present.companions


def test_each_kernel_is_taken_once(tmp_path: Path) -> None:
    one, other = Claims(tmp_path), Claims(tmp_path)
    assert one.take("a kernel")
    assert not other.take("a kernel")
    assert not other.ended("a kernel")
    one.end("a kernel")
    assert other.ended("a kernel")
    assert other.take("another kernel")


def test_one_that_fails_is_logged_and_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="penstock")
    made = begin(monkeypatch, "raise SystemExit('nothing works')")
    made._claims.take("taken and never ended")
    before_compiling("taken and never ended")
    end()
    assert "nothing works" in caplog.text
    assert not list(folder.glob(".*"))


def test_one_that_hangs_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(companion, "PATIENCE", 0.05)
    made = begin(monkeypatch, "import time; time.sleep(1000)")
    made._claims.take("taken and never ended")
    before_compiling("taken and never ended")
    assert made._processes[0].poll() is None
    end()
    assert made._processes[0].returncode == -9
    assert not list(folder.glob(".*"))


def test_it_ends_when_the_process_that_asked_has_ended(tmp_path: Path) -> None:
    claims = tmp_path / "claims"
    claims.mkdir()
    wait = "import time\ndef wait(job, claims):\n    while True:\n        time.sleep(0.01)\ntime.wait = wait\n"
    code = wait + companion._START
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    assert process.stdin is not None
    job = {"path": sys.path, "folder": str(claims), "target": ["time", "wait"]}
    process.stdin.write(json.dumps(job).encode() + b"\n")
    process.stdin.close()
    assert process.wait(60) == 0
    assert not claims.exists()


def test_it_ends_then_even_where_an_interrupt_is_lost(tmp_path: Path) -> None:
    sleep = "while True:\n        time.sleep(0.01)"
    lost = f"try:\n        {sleep}\n    except KeyboardInterrupt:\n        pass".replace(
        "\n        time", "\n            time"
    )
    wait = f"import time\ndef wait(job, claims):\n    {lost}\n    {sleep}\ntime.wait = wait\n"
    begun = "import penstock.storage.companion.process as it; it.AGAIN_SECONDS = 0.05; serve(job)"
    process = subprocess.Popen(
        [sys.executable, "-c", wait + companion._START.replace("serve(job)", begun)], stdin=subprocess.PIPE
    )
    assert process.stdin is not None
    job = {"path": sys.path, "folder": str(tmp_path), "target": ["time", "wait"]}
    process.stdin.write(json.dumps(job).encode() + b"\n")
    process.stdin.close()
    assert process.wait(60) == 0


def test_it_does_its_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import time; time.sleep = lambda job, claims: claims.end(job['kernel']); " + companion._START
    monkeypatch.setitem(JOB, "kernel", "a kernel")
    made = begin(monkeypatch, code)
    assert made._processes[0].wait(60) == 0
    assert made._claims.ended("a kernel")


@pytest.mark.parametrize("why", ["no memory", "no cache", "no Python", "no job"])
def test_without_what_it_needs_there_is_none(why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if why == "no memory":
        monkeypatch.setattr(companion, "available_memory", lambda: companion.COMPANION_BYTES - 1)
    elif why == "no cache":
        (tmp_path / "penstock").write_text("not a folder")
    elif why == "no Python":
        monkeypatch.setattr(sys, "executable", "/usr/bin/server")
    else:
        monkeypatch.setitem(JOB, "kernel", object())
    assert begin(monkeypatch) is None
    before_compiling("a kernel")


def test_a_run_that_misses_nothing_starts_none() -> None:
    offer(JOB.copy, 0)
    assert companion._Present.companions is None
    end()
    kernel_cache.tell_missing()
    assert companion._Present.companions is None


def test_several_share_a_job_and_end_together(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(companion, "_START", "import time; time.sleep(1000)")
    offer(lambda: {**JOB, "processes": 3}, 0)
    kernel_cache.tell_missing()
    made = companion._Present.companions
    assert made is not None
    assert [one.poll() for one in made._processes] == [None] * 3
    end()
    assert [one.returncode for one in made._processes] == [-9] * 3
