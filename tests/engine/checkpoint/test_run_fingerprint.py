"""What makes two programs the same: what their authors wrote, not how."""

from __future__ import annotations

import gc
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from penstock.engine import Program
from penstock.engine.checkpoint import run_fingerprint
from penstock.engine.checkpoint.run_fingerprint import text_digest
from penstock.engine.programs.table import PROGRAMS
from penstock.tools.base.find_program import find_program
from support.faults import python

TEXT = '''
import numpy as np
from penstock.engine import Field, Global, Program, Start

STEP = 1


def further(value):
    return value + STEP


class Mine(Program):
    """Hops."""

    hops = Field(np.uint32)
    combine = "min"
    shares = (1, 2)

    def start(self, graph, state):
        return Start(everything=True)  # everybody

    def edge(hops):
        return further(hops)

    def vertex(incoming):
        return incoming

    @Global(np.float64)
    def total(hops):
        return hops
'''


def digest(tmp_path: Path, text: str) -> str:
    file = tmp_path / f"mine{len(list(tmp_path.iterdir()))}.py"
    file.write_text(text)
    return text_digest(find_program(f"{file}:Mine"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("value + STEP", "value + 2 * STEP"),
        ("STEP = 1", "STEP = 2"),
        ("Field(np.uint32)", "Field(np.uint64)"),
        ("Field(np.uint32)", "Field(np.uint32, fill=3)"),
        ('combine = "min"', 'combine = "max"'),
        ("(1, 2)", "(1, 3)"),
        ("return hops", "return hops * 2"),
        ("@Global(np.float64)", "@Global(np.float64, combine='max')"),
        ("return Start(everything=True)", "return Start()"),
        ("    def vertex", "    everywhere = True\n\n    def vertex"),
    ],
)
def test_what_is_written_otherwise_is_another_program(tmp_path: Path, old: str, new: str) -> None:
    assert old in TEXT
    assert digest(tmp_path, TEXT) != digest(tmp_path, TEXT.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  # everybody", ""),
        ('    """Hops."""\n', ""),
        ("value + STEP", "(value\n        + STEP)"),
        ("\n\n\n", "\n\n\n\n"),
    ],
)
def test_comments_and_layout_do_not_count(tmp_path: Path, old: str, new: str) -> None:
    assert old in TEXT
    assert digest(tmp_path, TEXT) == digest(tmp_path, TEXT.replace(old, new))


def test_a_phase_counts_as_part_of_its_program(tmp_path: Path) -> None:
    text = TEXT.replace("class Mine", "class Inner") + (
        "\n\nclass Mine(Program):\n    hops = Field(np.uint32)\n\n"
        "    def phases(self, graph, state, first=0):\n        yield Inner()\n"
    )
    assert digest(tmp_path, text) != digest(tmp_path, text.replace("value + STEP", "value - STEP"))


def test_lambdas_on_one_line_are_told_apart() -> None:
    one, other = (type("Mine", (Program,), {"edge": f}) for f in (lambda hops: hops + 1, lambda hops: hops + 2))
    assert text_digest(one) != text_digest(other)


def test_runs_of_several_threads_take_digests_at_once() -> None:
    def switch(*args: object) -> None:
        time.sleep(1e-5)

    program = find_program("hits")
    before = gc.get_threshold()
    gc.callbacks.append(switch)
    gc.set_threshold(50)
    try:
        with ThreadPoolExecutor(3) as threads:
            found = set(threads.map(run_fingerprint._digest_of.__wrapped__, [program] * 12))
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(switch)
    assert found == {text_digest(program)}


def test_digests_are_the_same_in_every_process() -> None:
    code = (
        "from penstock.engine.checkpoint.run_fingerprint import text_digest\n"
        "from penstock.engine.programs.table import PROGRAMS\n"
        "print({name: text_digest(kind) for name, kind in PROGRAMS.items()})"
    )
    run_fingerprint._digest_of.cache_clear()  # one may be of a program whose numbers another test had changed
    ours: dict[str, Any] = {name: text_digest(kind) for name, kind in PROGRAMS.items()}
    assert len(set(ours.values())) == len(ours)
    assert python(code).stdout.strip() == str(ours)
    assert sys.flags.hash_randomization
