"""A folder's lock refuses every second holder, names the first, and dies with it."""

from __future__ import annotations

import errno
import fcntl
import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.base.folder_lock import FolderLock

HOLD = """
import sys, time
from pathlib import Path
from penstock.storage.base.folder_lock import FolderLock
lock = FolderLock(Path(sys.argv[1]), ".lock", "--run-dir")
lock.acquire()
print("held", flush=True)
time.sleep(60)
"""


def lock_of(folder: Path) -> FolderLock:
    return FolderLock(folder, ".lock", "--run-dir")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_another_process_is_refused_until_the_holder_dies(tmp_path: Path, number: int) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        lock = lock_of(tmp_path)
        for refuse in (lock.acquire, lock.check):
            with pytest.raises(InputError, match=f"is in use by another run, process {holder.pid} on host .* since 2"):
                refuse()
        assert not lock.held
        holder.send_signal(number)
        holder.wait()
    assert (tmp_path / ".lock").exists(), "a killed holder leaves its file"
    lock.check()
    with lock.holding():
        assert lock.held
    assert list(tmp_path.iterdir()) == []


def test_two_holders_in_one_process_exclude_each_other(tmp_path: Path) -> None:
    first, second = lock_of(tmp_path), lock_of(tmp_path)
    first.acquire()
    first.acquire()
    first.check()
    with pytest.raises(InputError, match="wait until it ends, or name another --run-dir"):
        second.acquire()
    first.release()
    second.acquire()
    second.release()
    second.release()


def test_a_check_makes_nothing(tmp_path: Path) -> None:
    lock_of(tmp_path).check()
    lock_of(tmp_path / "absent").check()
    assert list(tmp_path.iterdir()) == []


def test_a_lock_that_is_forgotten_is_free(tmp_path: Path) -> None:
    lock = lock_of(tmp_path)
    lock.acquire()
    del lock
    gc.collect()
    with lock_of(tmp_path).holding():
        pass


def test_a_file_that_its_holder_removes_while_it_is_opened_is_not_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The holder ends between our opening the file and locking it: another may hold the file that has its name now."""
    flock, names = fcntl.flock, [tmp_path / ".lock"]

    def late(handle: int, kind: int) -> None:
        if names:
            names.pop().unlink()
        flock(handle, kind)

    monkeypatch.setattr(fcntl, "flock", late)
    with lock_of(tmp_path).holding():
        assert (tmp_path / ".lock").exists()
        with pytest.raises(InputError, match="in use"):
            lock_of(tmp_path).acquire()


def test_a_file_system_without_locks_is_used_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def none(handle: int, kind: int) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(fcntl, "flock", none)
    with lock_of(tmp_path).holding():
        assert "no two runs" in caplog.text


def test_a_folder_that_cannot_be_locked_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"absent cannot be locked: No such file .*; name another --run-dir"):
        lock_of(tmp_path / "absent").acquire()

    def broken(handle: int, kind: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fcntl, "flock", broken)
    with pytest.raises(RunError, match="cannot be locked: Input/output error"):
        lock_of(tmp_path).acquire()


@pytest.mark.parametrize("content", [b"", b"[]", b'{"process": []}', b"\xff\xfe", b"9" * 5000])
def test_a_file_that_does_not_tell_its_holder_locks_all_the_same(tmp_path: Path, content: bytes) -> None:
    first = lock_of(tmp_path)
    first.acquire()
    (tmp_path / ".lock").write_bytes(content)
    with pytest.raises(InputError, match="is in use by another run: wait"):
        lock_of(tmp_path).acquire()
    first.release()
