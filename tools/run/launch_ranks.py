"""`--devices`: start this command once more in several ranks on this host, and end as they do.

    mpiexec -n N python -m penstock.tools.main ARGUMENTS -> what rank 0 prints, its progress -> exit code

mpiexec notices a rank that was killed, and ends the others; its report of several lines becomes one message here.

Which rank ended first, and how: the system tells when a process has ended (pidfd_open, Linux 5.3), and until its parent
has taken note its exit code too (/proc/PID/stat). What ends the others is the first one's end, milliseconds later.
"""

from __future__ import annotations

import ctypes
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import InputError
from penstock.tools.base.joined_ranks import INSTALL, LAUNCHED, MARK, installed_mpiexec
from penstock.tools.base.log import write_line
from penstock.tools.base.process import stat_field
from penstock.tools.base.progress import bars, on_terminal
from penstock.tools.base.sent_progress import WANTED, ReceivedBars
from penstock.tools.base.signals import pass_signals

REPORT = re.compile(
    rb"={80,}\s*$|=   |\[mpiexec@.*Ctrl-C|YOUR APPLICATION TERMINATED|This typically refers to a problem|"
    rb"Please see the FAQ page for deb"
)
"""How the lines of mpiexec's report (MPICH's, Hydra) begin."""
DEAD = re.compile(rb"=   PID (\d+) RUNNING AT")
CODE = re.compile(rb"=   EXIT CODE: (\d+)")


PR_SET_PDEATHSIG = 1
SHARED = Path("/dev/shm")
RANK_BYTES, FREE_BYTES = 6 << 20, 16 << 20
"""What MPI takes of it for a rank (measured: 5.3 MiB), and what must be free beside that: MPICH's UCX uses the folder
only where it finds so much. Where there is less, ranks find different room, and one ends by SIGBUS or SIGSEGV."""


def launch(devices: Sequence[str], *, quiet: bool = False) -> int:
    """Run this process' command in a rank for each device; return the exit code.

    quiet: whether no progress is shown here, on a terminal. Raises InputError where there is no MPI, or too little
    memory that its ranks share.
    """
    shown = {WANTED: "1"} if on_terminal(quiet=quiet) else {}
    check_shared_memory(len(devices))
    command = [find_mpiexec(), "-n", str(len(devices)), sys.executable, "-P", "-m", "penstock.tools.main"]
    started = subprocess.Popen(
        command + sys.argv[1:],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {LAUNCHED: ",".join(devices)} | shown,
        start_new_session=True,
        # SIGTERM when this process ends, though it be by SIGKILL (Linux: prctl(2))
        preexec_fn=partial(ctypes.CDLL(None).prctl, PR_SET_PDEATHSIG, signal.SIGTERM),
    )
    with started:
        _pass_signals_to(started)
        report = Report(len(devices))
        threads = [
            threading.Thread(target=report.pass_on, args=(source, to), name="ranks")
            for source, to in ((started.stdout, sys.stdout), (started.stderr, sys.stderr))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        report.bars.end()
        code = started.wait()
    message = report.message()
    if message is not None:
        write_line(f"penstock: {message}")
        return 1
    return code if code >= 0 else 128 - code


def check_shared_memory(ranks: int, folder: Path = SHARED) -> None:
    """Raise InputError where a folder has no room for what so many ranks share."""
    wanted = ranks * RANK_BYTES + FREE_BYTES
    try:
        handle = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(handle, 0, wanted)
        finally:
            os.close(handle)
    except OSError as error:
        raise InputError(
            f"{ranks} ranks need {format_bytes(wanted)} of memory in {folder}: {error.strerror}; enlarge it "
            f"(mount -o remount,size=1G {folder}; docker run --shm-size=1g)"
        ) from error


def find_mpiexec() -> str:
    """The mpiexec that is installed. Raises InputError where there is none."""
    found = installed_mpiexec()
    if found is None:
        raise InputError(f"--devices starts ranks with mpiexec, which is not installed: {INSTALL}")
    return found


def _pass_signals_to(started: subprocess.Popen[bytes]) -> None:
    """Let mpiexec have the signals that come here; it passes them on, and rank 0 ends the run."""

    def pass_on(number: int, frame: Any) -> None:
        started.send_signal(number)

    pass_signals()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, pass_on)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda number, frame: started.send_signal(signal.SIGTERM))


class Report:
    """What mpiexec prints: the ranks' lines, which processes they are, and which one was killed."""

    def __init__(self, ranks: int) -> None:
        self._ranks = ranks
        self._rank_of: dict[int, int] = {}
        self._dead: tuple[int, int] | None = None
        self._pid = 0
        self._first = FirstDeath()
        self.bars = ReceivedBars(bars)

    def pass_on(self, source: IO[bytes], to: Any) -> None:
        """Write every line on, but for mpiexec's own report and the ranks' names; read on where nobody reads them."""
        blank = b""  # held back: the report begins with one
        with suppress(BrokenPipeError):
            for line in source:
                if self._takes(line):
                    blank = b""
                    continue
                with self.bars.aside():
                    to.buffer.write(blank)
                    blank = line if line == b"\n" else b""
                    if not blank:
                        to.buffer.write(line)
                        to.buffer.flush()
            to.buffer.write(blank)
            to.buffer.flush()
        for line in source:
            self._takes(line)

    def message(self) -> str | None:
        """Which rank was killed; None where none was. One of them, where not all had said their numbers yet.

        What the system tells comes first, and behind it what mpiexec does, which may be one that it has ended itself: a
        rank that holds much may end later than those that are ended for it.
        """
        if self._dead is None:
            return None
        first, (reported, code) = self._first.found(), self._dead
        known = len(self._rank_of) == self._ranks and (first is not None or not self._first.watches)
        host, pid = socket.gethostname(), reported
        cause: int | None = code
        if known and first is not None:
            pid, cause = first[0], first[1] or (code if first[0] == reported else None)
        name = f"one of {self._ranks} ranks on {host}"
        if known and pid in self._rank_of:
            name = f"rank {self._rank_of[pid]} of {self._ranks} on {host} (process {pid})"
            if reported != pid and reported in self._rank_of:
                name += f", or rank {self._rank_of[reported]} (process {reported}),"
        hint = "; perhaps the host has no memory left: try a smaller --host-memory"
        hint = hint if cause in (None, signal.SIGKILL) else ""
        return f"{name} {_cause(cause)}{hint}; the others were ended"

    def _takes(self, line: bytes) -> bool:
        """Whether a line is for this process alone."""
        if self.bars.take(line):
            return True
        at = line.find(MARK.encode())
        if at >= 0:
            _, rank, pid = line[at:].split()[:3]
            self._rank_of[int(pid)] = int(rank)
            self._first.add(int(pid))
            return True
        found, code = DEAD.match(line), CODE.match(line)
        if found:
            self._pid = int(found[1])
        if code and self._pid:
            self._dead = self._pid, int(code[1])
        return REPORT.match(line) is not None


def _cause(code: int | None) -> str:
    """How a process ended, by the number of a signal, or its exit code; None: not known."""
    if code is None:
        return "was killed, or crashed"
    known = code in {one.value for one in signal.Signals}
    return f"was killed by {signal.Signals(code).name}" if known else f"ended with code {code}"


_EXIT_CODE = 52
"""Among the fields of `stat_field`."""
Death = tuple[int, int | None]
"""A process that has ended, and the number of the signal that killed it, or its exit code; None: not known."""


class FirstDeath:
    """Watches processes of this host from `add` on; any thread may call its verbs."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._pids: dict[int, int] = {}
        self._ended: list[Death] = []
        self._unsure = False
        self._thread: threading.Thread | None = None

    def add(self, pid: int) -> None:
        """Watch one process more; one that has ended already ended first, if no other has."""
        try:
            file = os.pidfd_open(pid)
        except ProcessLookupError:
            self._note([(pid, None)])
            return
        except OSError:
            return  # an older system
        if select.select([file], [], [], 0)[0]:
            self._note([(pid, _code(pid))])
            return
        self._pids[file] = pid
        self._poll.register(file, select.EPOLLIN)
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="first-death", daemon=True)
            self._thread.start()

    @property
    def watches(self) -> bool:
        """Whether this system lets processes be watched, and there were any."""
        return bool(self._pids or self._ended)

    def _watch(self) -> None:
        found = [(self._pids[file], _code(self._pids[file])) for file, _ in self._poll.poll()]
        if not self._ended:  # else one had ended before it could be watched
            self._note(found)

    def _note(self, ended: list[Death]) -> None:
        self._unsure = self._unsure or bool(self._ended) or len(ended) > 1
        self._ended = self._ended or ended

    def found(self) -> Death | None:
        """Return the first; None where none has ended, or one of several that were found to have."""
        if self._thread is not None:
            self._thread.join(timeout=1.0)
        return None if self._unsure or not self._ended else self._ended[0]


def _code(pid: int) -> int | None:
    """How a process has ended, as `Death` has it; None where its parent was faster."""
    try:
        status = stat_field(_EXIT_CODE, pid)
    except OSError:
        return None
    return abs(os.waitstatus_to_exitcode(status)) if status else None  # 0: also of a process that is not ours
