"""A process that runs compiles nothing, whoever wrote the program, if another process can import it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.faults import python

PROGRAM = """
import numpy as np
from penstock.engine import Field, Program, Start

class Marked(Program):
    mark = Field(np.uint32, fill=0)
    combine = "max"
    self_combining = True

    def start(self, graph, state):
        state["mark"][0] = 1
        return Start(active=np.zeros(1, np.int64))

    def edge(mark):
        return mark
"""
RUN = """
import sys, numpy as np
from numba.core import event
from penstock.engine import from_edges, run
from penstock.storage.companion import process

class Compiled(event.Listener):
    names = []
    def on_start(self, event):
        self.names.append(event.data["dispatcher"].py_func.__qualname__)
    def on_end(self, event):
        pass
event.register("numba:compile", Compiled())

graph = from_edges(np.array([[0, 1], [1, 2]], np.uint32), vertices=4)
result = run(Marked(), graph, device="cpu", threads=1)
print(result.fields["mark"].tolist(), Compiled.names, process._Present.companion)
"""


def test_the_process_that_runs_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "marking.py").write_text(PROGRAM)
    child = python(f"from marking import Marked\n{RUN}")
    assert (child.stdout, child.stderr) == ("[1, 1, 1, 0] [] None\n", "")
    assert not list((tmp_path / "penstock/kernels").glob(".companion*"))
