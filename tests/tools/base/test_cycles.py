"""The search for unused cycles is paused while a command is imported, and at no other time."""

from __future__ import annotations

import gc
import sys

import pytest
from penstock.tools.base import cycles
from support.faults import python


def test_a_process_in_which_it_was_not_paused_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "freeze", lambda: pytest.fail("the objects of this process are its own"))
    cycles.resume()
    assert gc.isenabled()


def test_what_was_there_when_it_resumes_is_not_searched() -> None:
    code = (
        "import gc; from penstock.tools.base import cycles; cycles.pause(); print(gc.isenabled()); "
        "cycles.resume(); print(gc.isenabled(), gc.get_freeze_count() > 0)"
    )
    assert python(code).stdout == "False\nTrue True\n"


def test_objects_of_duckdb_are_searched_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "freeze", lambda: pytest.fail("its library prints what is left of it"))
    monkeypatch.setitem(sys.modules, "duckdb", gc)
    cycles.leave_out()


@pytest.mark.parametrize("command", ["info", "verify", "report"])
def test_commands_run_with_it(command: str) -> None:
    code = (
        "import atexit, gc, sys; atexit.register(lambda: print(gc.isenabled())); "
        f"sys.argv = ['penstock', {command!r}, 'absent']; from penstock.tools.main import main; main()"
    )
    child = python(code)
    assert (child.returncode, child.stdout) == (2, "True\n"), child.stderr
