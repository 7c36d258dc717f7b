"""A program that is told in JSON is the same in another process; one that cannot be found there is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from penstock.engine.program.precision import single_form
from penstock.engine.program.program import Program
from penstock.engine.program.program_description import describe_program, described_program, source_of
from penstock.engine.programs.bfs import BFS, BFSLevels, _in_rounds
from penstock.engine.programs.from_each import _kind
from penstock.engine.programs.heat import Heat
from penstock.engine.programs.pagerank import PageRank
from penstock.engine.programs.path_tree import TightEdges, _tight
from penstock.tools.base.find_program import find_program

OWN = "from penstock.engine import Program\nclass Own(Program):\n    pass\n"


def test_a_program_of_penstock_is_the_same() -> None:
    program = PageRank(damping=0.5, tol=0.25)
    again = described_program(json.loads(json.dumps(describe_program(program))))
    assert type(again) is PageRank
    assert vars(again) == vars(program)


@pytest.mark.parametrize(
    "made", [single_form(Heat), _tight(BFSLevels, TightEdges), _kind(BFS, ("level_1",)), _in_rounds(BFS)]
)
def test_a_program_whose_class_a_function_makes_is_made_again(made: Any) -> None:
    program = made.__new__(made)
    assert type(described_program(json.loads(json.dumps(describe_program(program))))) is made


def test_a_program_of_a_file_is_imported_from_it(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN)
    program = find_program(f"{file}:Own")()
    told = describe_program(program)
    assert source_of(program).startswith("penstock_user_own.Own ")
    loaded = sys.modules.pop(told[0])
    try:
        again = described_program(told)
        assert type(again) is not type(program)
        assert Path(sys.modules[told[0]].__file__ or "") == file
    finally:
        sys.modules[told[0]] = loaded


def test_what_no_other_process_finds_is_refused() -> None:
    class Inner(Program):
        pass

    program = PageRank()
    program.file = object()  # type: ignore[attr-defined]
    for unknown in (Inner(), program):
        with pytest.raises(TypeError):
            describe_program(unknown)
    with pytest.raises(TypeError, match="Inner"):
        source_of(Inner())
