"""What `penstock compile` runs can run: each program, on each graph, in each way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from penstock.engine import Graph
from penstock.engine.api import make
from penstock.engine.planning.requirements import RunSetting, planned
from penstock.engine.program.program import fields_of
from penstock.engine.programs.catalogue import CATALOGUE
from penstock.engine.programs.table import PROGRAMS
from penstock.engine.resources.config import Config
from penstock.storage.base.budget import parse_bytes
from penstock.tools.base.output import answer_of
from penstock.tools.commands import compile


def run(line: str, folder: Path, *more: str) -> None:
    answer_of([f"{folder}{word}" if word.startswith("/") else word for word in line.split()] + [*more])


@pytest.mark.slow
@pytest.mark.parametrize("each", [5, pytest.param(1, marks=pytest.mark.full)])
def test_no_run_of_a_program_is_refused(each: int, tmp_path: Path) -> None:
    """Dry runs check all that runs do before they start, and compile nothing.

    By default those with a budget, and of others one in five: programs have different numbers, so that all ways occur.
    """
    compile.write_inputs(tmp_path)
    lines = [line for info in CATALOGUE for line in compile.runs_of(info)]
    assert len(lines) == len(set(lines))
    graphs = {word for line in lines for word in line.split() if word.endswith(".h5")}
    for line in compile.MAKING.strip().splitlines():
        if line.startswith(("generate", "convert")) and graphs & {*line.split()[2:]}:
            run(line, tmp_path)
    for line in [line for at, line in enumerate(lines) if at % each == 0 or "--host-memory" in line]:
        run(line, tmp_path, "--dry-run")


@pytest.mark.slow
def test_forms_for_short_memory_run(tmp_path: Path) -> None:
    run(next(line for line in compile.MAKING.splitlines() if "/many.h5" in line), tmp_path)
    lines = [line for info in CATALOGUE for line in compile.runs_of(info) if "/many.h5" in line]
    chosen = []
    for line in lines:
        words, graph = line.split(), Graph.open(tmp_path / "many.h5")
        budget = parse_bytes(words[words.index("--host-memory") + 1])
        given = {"parents": False} if "--no-parents" in words else {}
        setting = RunSetting(Config(host_memory=budget, threads=2))
        chosen.append(planned(graph, make(PROGRAMS[words[1]], {"source": 1, **given}), setting)[0])
    assert [np.dtype(next(iter(fields_of(one).values())).dtype).itemsize for one in chosen] == [1, 1, 1]
