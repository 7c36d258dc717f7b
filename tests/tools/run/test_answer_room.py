"""Answers that a disk has no room for are refused before a run, with both numbers; what may not fit is said."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from penstock.engine import from_edges
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.collaborative import CollaborativeFiltering
from penstock.storage.base.atomic import check_room
from penstock.storage.base.errors import InputError
from penstock.tools import cli
from penstock.tools.run.answer_options import AnswerOptions
from penstock.tools.run.answer_room import answer_size, check_answer_room
from support.commands import refused


def disk(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    """Let every disk have so many bytes free."""
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_bavail=free, f_frsize=1))


def test_files_on_one_disk_count_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk(monkeypatch, 100)
    check_room({tmp_path / "a": 50, tmp_path / "b": 50})
    with pytest.raises(InputError, match=r"a and .*b will take 101 B at least, .* has 100 B free; free space, or name"):
        check_room({tmp_path / "a": 50, tmp_path / "b": 51})


def test_what_may_not_fit_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, notes = from_edges(range(99), range(1, 100)), list[str]()
    size = answer_size([BFS(source=0)], graph, "csv")
    for free, said in ((size.likely, 0), (size.least, 1)):
        disk(monkeypatch, free)
        check_answer_room([(AnswerOptions(path=tmp_path / "a.csv"), [BFS(source=0)])], graph, notes.append)
        assert len(notes) == said
    assert "may take" in notes[0]
    disk(monkeypatch, size.least - 1)
    with pytest.raises(InputError, match="at least"):
        check_answer_room([(AnswerOptions(path=tmp_path / "a.csv"), [BFS(source=0)])], graph, notes.append)
    check_answer_room([(AnswerOptions(path=Path("-")), [BFS(source=0)])], graph, notes.append)


def test_names_sides_and_vectors_count() -> None:
    names = from_edges(["anna", "bo"], ["carl", "anna"])
    assert answer_size([BFS(source=0)], names, "csv").least == len("annabocarl") + 3 * 3
    two: Any = from_edges([1, 2], [1, 2], [5, 6], bipartite=True, direction="both")
    ratings = answer_size([CollaborativeFiltering(rank=2).form(two, "auto")], two, "hdf5")
    assert ratings.least == 4 * (8 + 1 + 3 * 8)


def test_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from_edges(range(99), range(1, 100)).save(tmp_path / "g.h5")
    disk(monkeypatch, 10)
    for command in (["run", "bfs", "--source", "0", tmp_path / "g.h5", "-o"], ["export", tmp_path / "g.h5"]):
        assert "has 10 B free" in refused(capsys, *command, tmp_path / "a.csv", "--quiet")
    assert cli.run_command(["run", "bfs", "--source", "0", str(tmp_path / "g.h5"), "--quiet"]) == 0
