"""Faults, injected on purpose: damaged files, disks that fail, lie or crawl, too little of a thing; what stays open.

Owns the making of trouble; what must come of it is each test's business. Faults that need a right
of this machine (a mount, a cgroup) skip the test where the machine refuses.

The idea of making each operation fail in turn is LAGraph's (LG_brutal_malloc.c).
"""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from penstock.storage.format.graph import Graph

Preadv = Callable[..., int]


def flip_bit(path: Path, offset: int, bit: int = 0) -> None:
    """Invert one bit of the byte at `offset` (negative: from the end)."""
    with path.open("r+b") as file:
        file.seek(offset, os.SEEK_SET if offset >= 0 else os.SEEK_END)
        position = file.tell()
        value = file.read(1)[0]
        file.seek(position)
        file.write(bytes([value ^ (1 << bit)]))


def flip_chunk(graph: Graph, chunk: int) -> None:
    """Invert one bit in the middle of a chunk of a graph's neighbors on disk; once more puts it right."""
    frames = graph.out.neighbors
    assert frames is not None
    assert graph.path is not None
    flip_bit(graph.path, int(frames.offsets[chunk]) + int(frames.lengths[chunk]) // 2)


def cut_short(path: Path, size: int) -> None:
    """Keep the first `size` bytes (negative: all but the last -size)."""
    os.truncate(path, size if size >= 0 else path.stat().st_size + size)


def open_files(place: Path) -> list[str]:
    """The files at or below `place` that this process has open, with those whose name is gone; once for each handle."""
    found = []
    for handle in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the listing's own
            found.append(os.readlink(f"/proc/self/fd/{handle}"))
    return sorted(name for name in found if name.startswith(str(place)))


class FaultyDisk:
    """Stands in for os.preadv: counts reads and breaks those that `breaks` picks.

    kind: "eio" raises EIO, "hiccup" raises it but never twice at one place (so that a second try is well), "short"
    reads half of what was asked (at least one byte), "end" returns nothing as at the end of a file, "slow" waits
    `seconds` and then reads well.
    breaks: from the number of a read (0, 1, …) to whether it breaks; None breaks all.
    """

    def __init__(
        self,
        kind: str,
        breaks: Callable[[int], bool] | None = None,
        seconds: float = 0.01,
    ) -> None:
        assert kind in ("eio", "hiccup", "short", "end", "slow"), kind
        self.kind = kind
        self.breaks = breaks or (lambda number: True)
        self.seconds = seconds
        self.reads = 0
        self.broken = 0
        self._preadv: Preadv = os.preadv
        self._failed: set[tuple[int, int]] = set()

    def __call__(self, file: int, buffers: Sequence[Any], offset: int, flags: int = 0) -> int:
        number, self.reads = self.reads, self.reads + 1
        if not self.breaks(number) or (self.kind == "hiccup" and (file, offset) in self._failed):
            return self._preadv(file, buffers, offset, flags)
        self._failed.add((file, offset))
        self.broken += 1
        if self.kind in ("eio", "hiccup"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if self.kind == "end":
            return 0
        if self.kind == "slow":
            time.sleep(self.seconds)
            return self._preadv(file, buffers, offset, flags)
        first = memoryview(buffers[0]).cast("B")
        return self._preadv(file, [first[: max(1, len(first) // 2)]], offset, flags)


def break_disk(monkeypatch: pytest.MonkeyPatch, kind: str, breaks: Callable[[int], bool] | None = None) -> FaultyDisk:
    """Put a `FaultyDisk` in the place of os.preadv until the test ends."""
    disk = FaultyDisk(kind, breaks)
    monkeypatch.setattr(os, "preadv", disk)
    return disk


def python(
    code: str,
    *arguments: str,
    file_bytes: int | None = None,
    address_bytes: int | None = None,
    open_files: int | None = None,
    cgroup: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run Python `code` in a child under limits; returns it with stdout and stderr as text.

    file_bytes: RLIMIT_FSIZE (a write beyond fails with EFBIG, as a full disk does with ENOSPC).
    address_bytes: RLIMIT_AS. open_files: RLIMIT_NOFILE. cgroup: one that `memory_cgroup` made.
    """
    limits = {
        resource.RLIMIT_FSIZE: file_bytes,
        resource.RLIMIT_AS: address_bytes,
        resource.RLIMIT_NOFILE: open_files,
    }

    def enter() -> None:
        if cgroup is not None:
            (cgroup / "cgroup.procs").write_text(str(os.getpid()))
        for name, value in limits.items():
            if value is not None:
                resource.setrlimit(name, (value, value))

    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        preexec_fn=enter,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """`folder`, created if need be, holding a file system of `size` bytes; skips where mounting is refused."""
    folder.mkdir(exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("this machine lets us mount no tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def memory_cgroup(limit: int) -> Iterator[Path]:
    """A cgroup below our own that may hold `limit` bytes; skips where none can be made."""
    folder = _own_memory_cgroup() / f"penstock-test-{os.getpid()}-{time.monotonic_ns()}"
    try:
        folder.mkdir()
        name = "memory.max" if (folder / "memory.max").exists() else "memory.limit_in_bytes"
        (folder / name).write_text(str(limit))
    except OSError as error:
        if folder.exists():
            folder.rmdir()
        pytest.skip(f"this machine lets us make no memory cgroup: {error}")
    try:
        yield folder
    finally:
        folder.rmdir()


def _own_memory_cgroup() -> Path:
    """Where this process's memory is accounted (v1 or v2)."""
    base = Path("/sys/fs/cgroup")
    unified = None
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if "memory" in names.split(","):
            return base / "memory" / path.strip("/")
        if names == "":
            unified = base / path.strip("/")
    if unified is None:
        pytest.skip("this machine shows no memory cgroup")
    return unified
