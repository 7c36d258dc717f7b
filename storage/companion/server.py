"""What a companion is: it compiles what it is asked for, one request after another, until nobody can ask any more.

Each line that it reads is a request. It answers true or false with a line, but for jobs, which processes that are
forked from it do while it answers others: they have its imports and Numba's tables, which take a second to make.
"""

import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from penstock.storage.companion.claims import Claims
from penstock.storage.companion.process import compile_alone

PATIENCE = 120.0
"""Seconds for which it waits for a process that compiles a kernel that is asked for."""
IDLE_SECONDS = 30
"""After which it ends by SIGALRM: who misses another kernel then starts another."""


def serve(hello: dict[str, Any]) -> None:
    """Answer requests until there are no more.

    ``hello["folder"]`` is that of `Claims`, which is removed then; ``hello["module"]``, if any, will do a job.
    """
    from penstock.storage.base.compiler import look_up_once  # Numba, which who only asks does without

    server = _Server(Path(hello["folder"]))
    compile_alone()
    look_up_once()
    with _without_blas():
        import_module("numba.np.arraymath")  # here, whatever imports it first otherwise
        if hello.get("module"):
            _import(hello["module"])
        else:
            prepare()
    while line := server.next_line():
        request = json.loads(line)
        if "processes" in request:
            if server.fork(request):
                return
        elif not server.answer(request):
            break
    server.close()


@contextmanager
def _without_blas() -> Iterator[None]:
    """Let Numba find no linear algebra of SciPy: a third of its imports, made to know whether `np.convolve` works."""
    sys.modules["scipy.linalg"] = None  # type: ignore[assignment]  # so its import fails
    try:
        yield
    finally:
        del sys.modules["scipy.linalg"]


def prepare() -> None:
    """Import the compiler and fill its tables for the cores, for this process and those that are forked from it."""
    from numba.core.registry import cpu_target

    import_module("penstock.storage.base.kernel_cache")
    cpu_target.target_context.refresh()
    cpu_target.typing_context.refresh()


def _import(module: str) -> None:
    """Import what does a job, and call its `prepare`, if it has one, once in this process and all that are forked."""
    try:
        getattr(import_module(module), "prepare", bool)()
    except Exception:  # each of the processes fails, too, and says it
        os.write(2, traceback.format_exc().encode())


class _Server:
    """What answers requests. What functions print, or modules of the user's, goes where errors go."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._claims = folder, Claims(folder)
        self._answers = os.dup(1)
        os.dup2(2, 1)
        self._processes: list[int] = []

    def next_line(self) -> str:
        """Return the next request, empty when there are no more; end where none comes for long."""
        signal.alarm(int(PATIENCE) if self._are_alive() else IDLE_SECONDS)
        line = sys.stdin.readline()
        signal.alarm(0)
        return line

    def answer(self, request: dict[str, Any]) -> bool:
        """Do what is asked, and answer; False if nobody reads it."""
        done = self._await(request["awaited"]) if "awaited" in request else _called(request)
        try:
            os.write(self._answers, json.dumps(done).encode() + b"\n")
        except BrokenPipeError:
            return False
        return True

    def _await(self, name: str) -> bool:
        """Wait until a kernel that was taken is kept; False if it is not, or not soon."""
        until = time.monotonic() + PATIENCE
        while not self._claims.ended(name):
            if time.monotonic() > until or not self._are_alive():
                return self._claims.ended(name)
            time.sleep(0.005)
        return True

    def _are_alive(self) -> bool:
        self._processes = [one for one in self._processes if os.waitpid(one, os.WNOHANG) == (0, 0)]
        return bool(self._processes)

    def fork(self, job: dict[str, Any]) -> bool:
        """Let processes do a job; return True in each of them, once it has been done. No processes: all jobs end."""
        if not job["processes"]:
            self._kill()
            self._claims = Claims(Path(job["folder"]))
        else:
            for part in job.get("jobs", [job]):
                _import(part["target"][0])
        for number in range(job["processes"]):
            forked = os.fork()
            if forked == 0:
                with Path(os.devnull).open("rb") as nothing:
                    os.dup2(nothing.fileno(), 0)
                os.close(self._answers)
                _called({**job, "number": number}, self._claims)
                return True
            self._processes.append(forked)
        return False

    def close(self) -> None:
        """End the processes, and remove the folder."""
        self._kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _kill(self) -> None:
        for process in self._processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def do_alone(request: dict[str, Any]) -> None:
    """Do the whole job that is asked for, in this process."""
    job = {**request["job"], "number": 0, "processes": 1}
    module, name = job["target"]
    _import(module)
    with tempfile.TemporaryDirectory(prefix=".companion-") as folder:
        getattr(import_module(module), name)(job, Claims(Path(folder)))


def _called(request: dict[str, Any], *given: Any) -> bool:
    """Call the function that is the target of a request; False if it fails, for whatever reason."""
    module, name = request["target"]
    try:
        getattr(import_module(module), name)(request, *given)
    except Exception:  # of the compiler's, or of a user's module: the process that asked compiles itself, and says why
        os.write(2, f"{request}\n{traceback.format_exc()}".encode())
        return False
    return True
