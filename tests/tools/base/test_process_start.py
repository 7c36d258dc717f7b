"""The start of this process, by the clock of time.perf_counter."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
from penstock.tools.base import process_start


def test_a_process_began_between_its_parents_calls() -> None:
    program = "from penstock.tools.base.process_start import process_start; print(process_start())"
    before = time.perf_counter()
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    began, after = float(answer.stdout), time.perf_counter()
    assert before - 0.02 <= began < after  # told to 10 ms; perf_counter is one clock for all processes


def test_where_the_system_does_not_tell_it_is_as_long_ago_as_the_processor_was_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def absent(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(process_start, "open", absent, raising=False)
    used = time.process_time()
    assert time.perf_counter() - process_start.process_start() >= used > 0
