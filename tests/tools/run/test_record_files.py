"""A record takes the place of an earlier one wholly: wherever a process dies or a call fails, one of the two stands."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from penstock.storage.base.errors import RunError
from penstock.tools.run import record_files
from penstock.tools.run.record_files import JOB, LOG, MARK, METRICS, RATES, RUN, TRACE, RecordFiles, is_empty, status

OLD = {JOB: "old", RATES: "old", LOG: "old", TRACE: "old", METRICS: "old", RUN: json.dumps({MARK: 1, "status": "old"})}
NEW = {JOB: "new", LOG: "new", METRICS: "new", RUN: json.dumps({MARK: 1, "status": "new"})}


class Died(BaseException):
    """Stands for a process that is killed: nobody catches it."""


def record(folder: Path) -> dict[str, str]:
    return {name: (folder / name).read_text() for name in record_files.OWN if (folder / name).exists()}


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)


def replace(folder: Path, *, keep: bool) -> None:
    files = RecordFiles(folder, keep=keep)
    files.open()
    write(files.place, NEW)
    files.begin()


def replaced(files: RecordFiles) -> str | None:
    """Replace a record as a run does; what was told where that failed."""
    try:
        files.open()
        write(files.place, NEW)
        files.begin()
    except RunError as error:
        files.drop()
        return str(error)
    return None


def failing(
    monkeypatch: pytest.MonkeyPatch, number: int, error: BaseException, *, after: bool = False
) -> Callable[[], int]:
    """Let call `number` that changes names fail, or raise after it is done; returns how many there were."""
    counts = [0]

    def broken(owner: Any, name: str) -> None:
        whole = getattr(owner, name)

        def call(*given: Any, **more: Any) -> Any:
            counts[0] += 1
            now = counts[0] - 1 == number
            if now and not after:
                raise error
            found = whole(*given, **more)
            if now:
                raise error
            return found

        monkeypatch.setattr(owner, name, call)

    for owner, name in ((os, "rename"), (os, "replace"), (os, "mkdir"), (os, "rmdir"), (os, "unlink"), (os, "fsync")):
        broken(owner, name)
    return lambda: counts[0]


@pytest.mark.parametrize("keep", [False, True])
def test_wherever_a_process_dies_the_next_finds_the_old_or_the_new_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: bool
) -> None:
    seen = set()
    for number in range(100):
        folder = tmp_path / str(number)
        folder.mkdir()
        write(folder, OLD | {"wcc.csv": "mine"})
        with monkeypatch.context() as patch:
            calls = failing(patch, number, Died())
            with suppress(Died):
                replace(folder, keep=keep)
            done = calls() <= number
        found = status(folder)
        RecordFiles(folder).open()
        assert record(folder) == (OLD if found == "old" else NEW), number
        assert (folder / "wcc.csv").read_text() == "mine"
        if found == "new" and keep:
            assert record(folder / "earlier-1") == OLD
        seen.add(found)
        replace(folder, keep=False)
        assert record(folder) == NEW
        assert {path.name for path in folder.iterdir()} - {"earlier-1", "wcc.csv"} == NEW.keys()
        if done:
            break
    assert number > 10
    assert seen == {"old", "new"}


@pytest.mark.parametrize("keep", [False, True])
def test_whichever_call_fails_the_old_or_the_new_record_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: bool
) -> None:
    for number in range(100):
        folder = tmp_path / str(number)
        folder.mkdir()
        write(folder, OLD)
        with monkeypatch.context() as patch:
            calls = failing(patch, number, OSError(5, "Input/output error"))
            files = RecordFiles(folder, keep=keep)
            told = replaced(files)
            done = calls() <= number
        assert told is None or "Input/output error" in told
        found = status(folder)
        RecordFiles(folder).open()
        assert record(folder) == (OLD if found == "old" else NEW), number
        if done:
            break


@pytest.mark.parametrize("keep", [False, True])
def test_a_signal_leaves_the_old_record_or_the_new_one_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: bool
) -> None:
    seen = set()
    for number in range(100):
        folder = tmp_path / str(number)
        folder.mkdir()
        write(folder, OLD)
        files = RecordFiles(folder, keep=keep)
        files.open()
        write(files.place, NEW)
        with monkeypatch.context() as patch:
            calls = failing(patch, number, KeyboardInterrupt(), after=True)
            with suppress(KeyboardInterrupt):
                files.begin()
            done = calls() <= number
        seen.add(files.replacing)
        if files.replacing:
            files.drop()
        assert record(folder) == (OLD if files.replacing else NEW), number
        assert not list(folder.glob(".penstock-*")), number
        if done:
            break
    assert seen == {False, True}


def test_a_record_that_is_dropped_leaves_the_earlier_one(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    files = RecordFiles(tmp_path)
    files.open()
    write(files.place, NEW)
    assert record(tmp_path) == OLD
    files.drop()
    assert record(tmp_path) == OLD
    assert {path.name for path in tmp_path.iterdir()} == OLD.keys()


def test_what_a_killed_process_left_before_its_record_counts_as_nothing(tmp_path: Path) -> None:
    for name in (".penstock-run.lock", ".run.partial-12-abcdef01.json"):
        (tmp_path / name).touch()
    (tmp_path / ".penstock-next").mkdir()
    assert is_empty(tmp_path)
    (tmp_path / ".mine").touch()
    assert not is_empty(tmp_path)
