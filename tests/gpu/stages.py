"""Starts what `two_gpus.py` runs, each within its part of the time, and keeps the table that is printed last."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]


class Stages:
    """Starts stages, and says what has gone wrong. `table`: lines to print last."""

    def __init__(self, folder: Path, seconds: float) -> None:
        self._folder, self._end = folder, time.monotonic() + seconds
        self._began = time.monotonic()
        self._count = 0
        self.table: list[str] = []
        self.wrong = 0

    @property
    def left(self) -> float:
        """Seconds until the script has to end."""
        return self._end - time.monotonic()

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:6.1f}s {text}", flush=True)

    def tell(self, line: str, *, good: bool = True) -> None:
        """A line of the table."""
        self.table.append(f"{line}{'' if good else '   WRONG'}")
        self.wrong += not good
        self.say(self.table[-1])

    def start(self, *command: object) -> subprocess.Popen[str]:
        """Start a process in a group of its own."""
        path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
        return subprocess.Popen(
            [str(word) for word in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ | {"PYTHONPATH": path},
            start_new_session=True,
        )

    def stage(self, name: str, devices: str, *more: object) -> tuple[subprocess.Popen[str], Path]:
        """Start a stage of `rank_stages.py` in a rank for each device: the process, and the file of what it finds."""
        self._count += 1
        file = self._folder / f"{self._count}.jsonl"
        file.touch()
        ranks = len(devices.split(","))
        words = [sys.executable, TESTS / "gpu" / "rank_stages.py", name, devices, file, *more]
        return self.start(*([] if ranks == 1 else ["mpiexec", "-n", ranks]), *words), file

    def ended(self, process: subprocess.Popen[str], seconds: float) -> tuple[int, str]:
        """Its exit code and what it printed; it is killed with all that it started where it takes longer."""
        try:
            text, _ = process.communicate(timeout=max(1.0, min(seconds, self.left)))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            text, _ = process.communicate()
            text += "\nended: it took too long"
        return process.returncode, text


def found_in(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def last_of(text: str) -> str:
    """The last line that says something."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
