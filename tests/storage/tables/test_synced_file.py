"""A file on whose bytes the disk works early: what is written is there, and no error of the disk is lost."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from penstock.storage.tables import synced_file
from penstock.storage.tables.synced_file import SyncedFile, write_all


def test_pieces_are_appended_and_counted(tmp_path: Path) -> None:
    seen: list[int] = []
    with SyncedFile(tmp_path / "x", seen.append) as file:
        assert file.write(b"abc") == 3
        write_all(file, (piece for piece in (b"d", memoryview(b"ef"))))
        assert file.tell() == 6
    assert (tmp_path / "x").read_bytes() == b"abcdef"
    assert seen == [3, 4, 6]
    assert file.closed


def test_the_disk_begins_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(synced_file, "SYNC_BYTES", 4)
    monkeypatch.setattr(os, "fdatasync", calls.append)
    with SyncedFile(tmp_path / "x") as file:
        file.write(b"abc")
        assert calls == []
        file.write(b"def")
    assert len(calls) == 1


@pytest.mark.parametrize("pieces", [1, 3])
def test_an_error_of_the_disk_is_raised(pieces: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(handle: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(synced_file, "SYNC_BYTES", 1)
    monkeypatch.setattr(os, "fdatasync", fail)
    with pytest.raises(OSError, match="Input/output error"), SyncedFile(tmp_path / "x") as file:
        write_all(file, (b"abc" for _ in range(pieces)))
    assert file.closed


def test_pieces_are_closed_when_the_disk_fails(tmp_path: Path) -> None:
    closed: list[bool] = []

    def pieces() -> Generator[Any, None, None]:
        try:
            yield b"abc"
            yield 7  # no bytes
        finally:
            closed.append(True)

    with pytest.raises(TypeError), SyncedFile(tmp_path / "x") as file:
        write_all(file, pieces())
    assert closed == [True]
