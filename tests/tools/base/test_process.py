"""The search for unused cycles is paused while a command is imported, and at no other time."""

from __future__ import annotations

import gc
import subprocess
import sys
import time

import pytest
from penstock.tools.base import process
from support.faults import python


def test_a_process_in_which_it_was_not_paused_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "freeze", lambda: pytest.fail("the objects of this process are its own"))
    process.resume_search()
    assert gc.isenabled()


def test_what_was_there_when_it_resumes_is_not_searched() -> None:
    code = (
        "import gc; from penstock.tools.base import process; process.pause_search(); print(gc.isenabled()); "
        "process.resume_search(); print(gc.isenabled(), gc.get_freeze_count() > 0)"
    )
    assert python(code).stdout == "False\nTrue True\n"


def test_objects_of_duckdb_are_searched_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "freeze", lambda: pytest.fail("its library prints what is left of it"))
    monkeypatch.setitem(sys.modules, "duckdb", gc)
    process.leave_out()


def test_commands_run_with_it() -> None:
    code = (
        "import atexit, gc, sys; atexit.register(lambda: print(gc.isenabled())); "
        "sys.argv = ['penstock', 'info', 'absent']; from penstock.tools.main import main; main()"
    )
    child = python(code)
    assert (child.returncode, child.stdout) == (2, "True\n"), child.stderr


def test_a_process_began_between_its_parents_calls() -> None:
    program = "from penstock.tools.base.process import process_start; print(process_start())"
    before = time.perf_counter()
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    began, after = float(answer.stdout), time.perf_counter()
    assert before - 0.02 <= began < after  # told to 10 ms; perf_counter is one clock for all processes


def test_where_the_system_does_not_tell_it_is_as_long_ago_as_the_processor_was_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def absent(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(process, "open", absent, raising=False)
    used = time.process_time()
    began = process.process_start()
    assert time.perf_counter() - began >= used > 0
