"""The injected faults do what they say; otherwise a test that survives them would prove nothing."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from support.faults import break_disk, memory_cgroup, python, small_disk


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(64)))
    return path


def read(path: Path, size: int, offset: int) -> bytes:
    buffer = bytearray(size)
    with path.open("rb") as opened:
        return bytes(buffer[: os.preadv(opened.fileno(), [buffer], offset)])


def test_disk_breaks_only_what_it_is_told_to(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = break_disk(monkeypatch, "eio", lambda number: number == 1)
    assert read(file, 2, 5) == b"\5\6"
    with pytest.raises(OSError, match="Input/output") as caught:
        read(file, 2, 5)
    assert caught.value.errno == errno.EIO
    assert read(file, 2, 6) == b"\6\7"
    assert (disk.reads, disk.broken) == (3, 1)


def test_a_hiccup_is_over_at_the_second_try(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = break_disk(monkeypatch, "hiccup")
    with file.open("rb") as opened:
        for place in (0, 8):
            with pytest.raises(OSError, match="Input/output"):
                os.preadv(opened.fileno(), [bytearray(4)], place)
            assert os.preadv(opened.fileno(), [bytearray(4)], place) == 4
    assert (disk.reads, disk.broken) == (4, 2)


@pytest.mark.parametrize(("kind", "size"), [("short", 4), ("end", 0), ("slow", 8)])
def test_disk_kinds(file: Path, monkeypatch: pytest.MonkeyPatch, kind: str, size: int) -> None:
    break_disk(monkeypatch, kind)
    assert read(file, 8, 0) == bytes(range(size))


def test_limits_bind(tmp_path: Path) -> None:
    write = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_bytes(bytes(5000))"
    assert python(write, str(tmp_path / "a"), file_bytes=10_000).returncode == 0
    assert "File too large" in python(write, str(tmp_path / "b"), file_bytes=4096).stderr
    assert "MemoryError" in python("bytes(1 << 30)", address_bytes=512 << 20).stderr
    assert "Too many open files" in python("x = [open('/dev/null') for _ in range(64)]", open_files=32).stderr


def test_small_disk_fills_up(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", 1 << 20) as folder:
        (folder / "fits").write_bytes(bytes(4096))
        with pytest.raises(OSError, match="No space left"):
            (folder / "not").write_bytes(bytes(2 << 20))


def test_memory_cgroup_binds() -> None:
    with memory_cgroup(64 << 20) as group:
        assert python("x = bytearray(8 << 20)", cgroup=group).returncode == 0
        assert python("x = bytearray(200 << 20)", cgroup=group).returncode != 0
