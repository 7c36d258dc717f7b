"""The file for pages of vertex state: what comes back, and what is said where a disk fails."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.base.slot_pool import aligned_empty
from penstock.storage.checkpoint import page_file
from penstock.storage.checkpoint.page_file import SLOT, PageFile, check_folders, slot_bytes

SIZES = (SLOT, 3 * SLOT, 2 * SLOT)


def page(value: int, size: int = SLOT) -> memoryview:
    found = aligned_empty(size, np.uint8)
    found[:] = np.arange(size) + value
    return memoryview(found)


def test_pages_come_back_from_several_folders_and_no_name_is_left(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    file = PageFile(folders, sum(SIZES))
    for key, size in enumerate(SIZES):
        assert key not in file
        file.write(key, page(key, size))
    file.write(0, page(9))
    for key, size in enumerate(SIZES):
        found = page(100, size)
        file.read(key, found)
        assert bytes(found) == bytes(page(key or 9, size))
    assert (file.bytes_written, file.bytes_read) == (sum(SIZES) + SLOT, sum(SIZES))
    assert sorted(tmp_path.rglob("*")) == folders
    assert slot_bytes(1) == slot_bytes(SLOT) == SLOT


def test_places_of_forgotten_pages_are_those_of_others_that_are_no_longer(tmp_path: Path) -> None:
    file = PageFile([tmp_path], 4 * SLOT)
    file.write("long", page(1, 3 * SLOT))
    file.write("short", page(2))
    file.forget(["long", "none"])
    for number in range(3):
        file.write(number, page(number))
    file.write("short", page(4))
    assert file._ends == [4 * SLOT]
    for key, value in {"short": 4, 0: 0, 1: 1, 2: 2}.items():
        found = page(9)
        file.read(key, found)
        assert bytes(found) == bytes(page(value))
    assert "long" not in file
    file.write("short", page(5, 2 * SLOT))
    assert file._ends == [6 * SLOT]


def test_its_room_is_free_when_nothing_refers_to_it(tmp_path: Path) -> None:
    before = len(os.listdir("/dev/fd"))
    file = PageFile([tmp_path], SLOT)
    assert len(os.listdir("/dev/fd")) == before + 1
    del file
    assert len(os.listdir("/dev/fd")) == before


def test_a_disk_that_is_too_small_is_found_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = len(os.listdir("/dev/fd"))

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(RunError, match=r"vertex state needs 1\.0 MiB here: No space left.*more memory"):
        PageFile([tmp_path], 1 << 20)
    assert len(os.listdir("/dev/fd")) == before


def test_a_folder_that_takes_no_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing.*No such file"):
        PageFile([tmp_path / "missing"], SLOT)


def test_folders_are_checked_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [tmp_path, tmp_path / "b"]
    with pytest.raises(InputError, match=r"b: the file .* needs 1\.0 MiB, and no file can be made here; .*--scratch"):
        check_folders(folders, 1 << 20)
    folders[1].mkdir()
    check_folders(folders, 1 << 20)
    monkeypatch.setattr(page_file, "free_bytes", lambda _: 1 << 20)
    check_folders(folders[:1], (1 << 20) - SLOT)
    with pytest.raises(InputError, match=r"needs 2\.0 MiB, and 1\.0 MiB are free; free some room, name another folder"):
        check_folders(folders, 2 << 20)  # both are on one disk


@pytest.mark.parametrize("call", ["preadv", "pwritev"])
@pytest.mark.parametrize("failure", [OSError(errno.EIO, "Input/output error"), 0])
def test_what_cannot_be_moved_is_said(
    call: str, failure: OSError | int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = PageFile([tmp_path], 2 * SLOT)
    file.write("kept", page(1))

    def fail(*_: Any) -> int:
        if isinstance(failure, OSError):
            raise failure
        return failure

    monkeypatch.setattr(os, call, fail)
    done, move = ("read", file.read) if call == "preadv" else ("written", file.write)
    with pytest.raises(RunError, match=f"{tmp_path}: the file for vertex state cannot be {done}: Input/output error"):
        move("kept", page(2))


def test_some_bytes_at_a_time_are_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("preadv", "pwritev"):
        move = getattr(os, name)
        monkeypatch.setattr(os, name, lambda handle, parts, at, move=move: move(handle, [parts[0][:SLOT]], at))
    file = PageFile([tmp_path], 3 * SLOT)
    file.write("long", page(5, 3 * SLOT))
    found = page(0, 3 * SLOT)
    file.read("long", found)
    assert bytes(found) == bytes(page(5, 3 * SLOT))


def test_other_bytes_than_were_written_are_refused(tmp_path: Path) -> None:
    file = PageFile([tmp_path], SLOT)
    file.write("kept", page(1))
    os.pwritev(file._handles[0], [page(2)], 0)
    with pytest.raises(RunError, match="holds other bytes than were written, at offset 0"):
        file.read("kept", page(0))


def test_a_file_system_without_direct_io_is_used_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_flags = fcntl.fcntl

    def plain(handle: int, asked: int, flags: int = 0) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        return set_flags(handle, asked, flags)

    monkeypatch.setattr(fcntl, "fcntl", plain)
    file = PageFile([tmp_path], SLOT)
    file.write("kept", page(1))
    found = page(0)
    file.read("kept", found)
    assert bytes(found) == bytes(page(1))
