"""A second process, or several, that compile some kernels while this one compiles others.

Numba compiles one function at a time in a process. Companions are started when a kernel is first missing, and put
what they compile into the user's cache, where this process finds it. Each takes a kernel by making a file, so that none
is compiled twice; this process waits for what a companion is compiling, and compiles itself whatever no companion
has begun, could not compile, or compiled for other types. They end with this process or with the run, and need
nothing but a cache that can be written: without, this process compiles alone. Their memory, about 200 MiB each, is not
part of a run's budget, but must be free beside it.
"""

import _thread
import atexit
import hashlib
import importlib
import json
import logging
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from penstock.storage.base.budget import address_limit, available_memory
from penstock.storage.base.errors import InputError
from penstock.storage.base.kernel_cache import when_missing
from penstock.storage.base.user_cache import kernel_folder
from penstock.storage.clocks.compile_times import compiling

COMPANION_BYTES = 256 << 20
"""Its memory: must be free beside what the run may take."""
PATIENCE = 120.0
"""Seconds that this process waits for one kernel before it compiles it itself."""
AGAIN_SECONDS = 1.0
"""Between two interrupts of a companion whose job is not wanted any more."""
_START = (
    "import json, sys; job = json.loads(sys.stdin.readline()); sys.path[:] = job['path']; "
    "from penstock.storage.companion.process import serve; serve(job)"
)
_log = logging.getLogger("penstock.storage.companion.process")


class Claims:
    """Which process compiles a kernel, as files of a folder that both know."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def take(self, name: str) -> bool:
        """Take a kernel; False if the other has it, or the folder is gone."""
        try:
            self._file(name, "taken").touch(exist_ok=False)
        except OSError:
            return False
        return True

    def end(self, name: str) -> None:
        """Say that a kernel that was taken is kept now, or never will be."""
        with suppress(OSError):  # the folder is gone, and whoever waited
            self._file(name, "ended").touch()

    def ended(self, name: str) -> bool:
        """Whether the process that took the kernel has ended it."""
        return self._file(name, "ended").exists()

    def _file(self, name: str, kind: str) -> Path:
        return self.folder / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.{kind}"


class _Companions:
    """The processes of a job, ``job["processes"]`` of them, and what they have taken."""

    def __init__(self, job: dict[str, Any]) -> None:
        import subprocess  # a run that finds all its kernels needs neither
        import tempfile

        folder = kernel_folder()
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = Path(tempfile.mkdtemp(prefix=".companion-", dir=folder))
        self._claims = Claims(self._folder)
        self._processes: list[subprocess.Popen[bytes]] = []
        try:
            with (self._folder / "log").open("wb") as log:
                for _ in range(job["processes"]):
                    self._processes.append(subprocess.Popen(
                        [sys.executable, "-c", _START],
                        bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=log,
                    ))  # fmt: skip
        except OSError:
            self.close()
            raise
        for number, process in enumerate(self._processes):
            told = {**job, "number": number, "folder": str(self._folder), "path": sys.path}
            assert process.stdin is not None
            with suppress(BrokenPipeError):  # it has ended: `close` says why
                process.stdin.write(json.dumps(told).encode() + b"\n")

    def wait(self, name: str) -> None:
        """Take a kernel for this process, or wait until the companion that has begun it has ended it."""
        if self._claims.take(name):
            return
        until = time.monotonic() + PATIENCE
        with compiling():
            while not self._claims.ended(name) and self._are_alive() and time.monotonic() < until:
                time.sleep(0.005)

    def _are_alive(self) -> bool:
        return any(process.poll() is None for process in self._processes)

    def close(self) -> None:
        """End the processes that have not ended, and say what went wrong in them."""
        failed = any(process.poll() not in (None, 0) for process in self._processes)
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
            assert process.stdin is not None
            process.stdin.close()
        if failed:
            with suppress(OSError):
                _log.info("a companion that compiles kernels failed: %s", (self._folder / "log").read_text()[-2000:])
        shutil.rmtree(self._folder, ignore_errors=True)


class _Present:
    """The companions of this process, if it has any."""

    companions: _Companions | None = None


def offer(describe: Callable[[], dict[str, Any]], memory: int) -> None:
    """Let companions be started when a kernel is first missing from now on.

    Parameters
    ----------
    describe : callable
        Returns the companions' job as JSON; ``job["target"]`` is the module and the name of a function that each of the
        ``job["processes"]`` companions calls with the job, in which ``job["number"]`` is its number from 0, and with
        `Claims`. Raises TypeError where there is no such job.
    memory : int
        Bytes that this process may take besides.
    """

    def begin() -> None:
        if address_limit() is not None:
            return
        try:
            job = describe()
            json.dumps(job)
            if available_memory() >= memory + COMPANION_BYTES * job["processes"]:
                _Present.companions = _Companions(job)
        except (InputError, OSError, TypeError) as error:
            _log.info("kernels are compiled by this process alone: %s", error)

    end()
    if Path(sys.executable or "").name.startswith("python"):
        when_missing(begin)


def before_compiling(name: str) -> None:
    """Take a kernel for this process, or wait for the companion, if there is one, that compiles it."""
    if _Present.companions is not None:
        _Present.companions.wait(name)


@atexit.register
def end() -> None:
    """Let no companion start from now on, and end those that run."""
    when_missing(None)
    companions, _Present.companions = _Present.companions, None
    if companions is not None:
        companions.close()


def serve(job: dict[str, Any]) -> None:
    """Do a job, in the companion; end early when the process that asked has ended."""
    folder, (module, name) = Path(job["folder"]), job["target"]
    done = threading.Event()

    def end_with_parent() -> None:
        sys.stdin.read()
        shutil.rmtree(folder, ignore_errors=True)
        while not done.is_set():  # an interrupt is lost where Python ignores exceptions, such as in a finalizer
            _thread.interrupt_main()
            done.wait(AGAIN_SECONDS)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a command in the background of a script ignores it
    threading.Thread(target=end_with_parent, daemon=True).start()
    with suppress(KeyboardInterrupt):
        try:
            getattr(importlib.import_module(module), name)(job, Claims(folder))
        finally:
            done.set()
