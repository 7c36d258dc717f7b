"""A program of its own: its output, seconds, bytes from disks and peak memory; and busy loops beside it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

BLOCK = 512
"""Bytes of the blocks that the system counts."""
INTERVAL = 0.01
"""Seconds between two looks at the peak memory."""
MESSAGE = 2000
"""Characters of a failed program's output that an error repeats."""


@dataclass(frozen=True)
class Finished:
    """What a program wrote and took; `read_bytes` come from disks, not from the page cache."""

    text: str
    wall_seconds: float
    cpu_seconds: float
    read_bytes: int
    peak_bytes: int


def run(words: Sequence[object], variables: Mapping[str, str] | None = None, *, limit: float = 600.0) -> Finished:
    """Run a program to its end. Raises RuntimeError where it fails or takes more than `limit` seconds."""
    with tempfile.TemporaryFile() as output:
        began = time.perf_counter()
        child = subprocess.Popen(
            [*map(str, words)], stdout=output, stderr=subprocess.STDOUT, env=os.environ | (variables or {})
        )
        peak = 0
        while True:
            peak = max(peak, _peak_bytes(child.pid))
            ended, status, used = os.wait4(child.pid, os.WNOHANG)
            if ended:
                break
            if time.perf_counter() - began > limit:
                child.kill()
                child.wait()
                raise RuntimeError(f"{words[0]} was stopped after {limit:g} s")
            time.sleep(INTERVAL)
        wall = time.perf_counter() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode(errors="replace")
    if child.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: exit code {child.returncode}\n{text[-MESSAGE:]}")
    return Finished(text, wall, used.ru_utime + used.ru_stime, used.ru_inblock * BLOCK, peak)


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep so many cores busy with loops."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.send_signal(signal.SIGKILL)
            loop.wait()


def load() -> float:
    """Processes that ran or waited to run in the last minute, on average."""
    return os.getloadavg()[0]


def _peak_bytes(pid: int) -> int:
    """The most memory that a process had so far; 0 once it has ended."""
    with suppress(OSError, StopIteration):
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
        return 1024 * int(next(line for line in lines if line.startswith("VmHWM:")).split()[1])
    return 0
