"""Which of several processes, none of them a child, ended first, and how.

The system tells when a process has ended (pidfd_open, Linux 5.3), and until its parent has taken note its exit code too
(/proc/PID/stat). What ends the other processes is the first one's end, some milliseconds later.
"""

from __future__ import annotations

import os
import select
import threading
from dataclasses import dataclass
from pathlib import Path

_EXIT_CODE = 52
"""Of the fields of /proc/PID/stat, counted from 1."""


@dataclass(frozen=True)
class Death:
    """A process that has ended; status: as `os.waitpid` has it, None where its parent was faster."""

    pid: int
    status: int | None

    @property
    def code(self) -> int | None:
        """The number of the signal that killed it, or its exit code; None where that is not known."""
        if self.status is None:
            return None
        return os.WTERMSIG(self.status) if os.WIFSIGNALED(self.status) else os.WEXITSTATUS(self.status)


class FirstDeath:
    """Watches processes of this host from `add` on; any thread may call its verbs."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._pids: dict[int, int] = {}
        self._ended: list[Death] = []
        self._thread: threading.Thread | None = None

    def add(self, pid: int) -> None:
        """Watch one process more."""
        try:
            file = os.pidfd_open(pid)
        except ProcessLookupError:
            self._ended = self._ended or [Death(pid, None)]
            return
        except OSError:
            return  # an older system
        self._pids[file] = pid
        self._poll.register(file, select.EPOLLIN)
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="first-death", daemon=True)
            self._thread.start()

    def _watch(self) -> None:
        found = [Death(self._pids[file], _status(self._pids[file])) for file, _ in self._poll.poll()]
        self._ended = self._ended or found

    def found(self) -> Death | None:
        """Return the first; None where several were found to have ended at once, or none."""
        if self._thread is not None:
            self._thread.join(timeout=1.0)
        return self._ended[0] if len(self._ended) == 1 else None


def _status(pid: int) -> int | None:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return int(text.rpartition(")")[2].split()[_EXIT_CODE - 3]) or None  # 0: also of a process that is not ours
