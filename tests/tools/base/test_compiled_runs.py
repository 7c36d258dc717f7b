"""What `penstock compile` runs can run: each program, on each graph, in each way."""

from __future__ import annotations

from pathlib import Path

import pytest
from penstock.engine.programs.catalogue import CATALOGUE
from penstock.tools.base import compiled_runs
from penstock.tools.base.output import answer_of


def run(line: str, folder: Path, *more: str) -> None:
    answer_of([f"{folder}{word}" if word.startswith("/") else word for word in line.split()] + [*more])


@pytest.mark.slow
def test_no_run_of_a_program_is_refused(tmp_path: Path) -> None:
    """Dry runs check all that runs do before they start, and compile nothing."""
    compiled_runs.write_inputs(tmp_path)
    lines = [line for info in CATALOGUE for line in compiled_runs.runs_of(info)]
    assert len(lines) == len(set(lines))
    graphs = {word for line in lines for word in line.split() if word.endswith(".h5")}
    for line in compiled_runs.MAKING.strip().splitlines():
        if line.startswith(("generate", "convert")) and graphs & {*line.split()[2:]}:
            run(line, tmp_path)
    for line in lines:
        run(line, tmp_path, "--dry-run")
