"""Commands whose system calls fail, one after the other: the shim `failing_calls.c` and a process that forks for each.

A test says which command, and which call of it fails with which errno (-N: the call succeeds, and signal N comes behind
it), or after how many seconds a signal comes; it gets how the command ended, and looks itself at what stands on the
disk. Every attempt is a process of its own, forked from one in which everything is imported and compiled, so that it
takes a twentieth of a second. An attempt that does not end is ended by SIGALRM. That every operation has to fail once
is LAGraph's idea (LG_brutal_malloc.c).
"""

from __future__ import annotations

import atexit
import ctypes
import faulthandler
import gc
import importlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from penstock.storage.base.atomic import sweep_debris
from penstock.storage.base.errors import PenstockError
from penstock.tools import cli
from penstock.tools.base.signals import Stopped, deafen, hear

SOURCE = Path(__file__).parent / "failing_calls.c"
SECONDS = 120
"""After which an attempt counts as hanging."""


@dataclass(frozen=True)
class Fault:
    """The call of this number (0: none) fails with this errno (-N: signal N follows it); lasting: those behind it too.

    seconds: instead signal N comes from outside, so long after the start.
    reads: calls that read count, too, not only those that change a file.
    """

    number: int
    errno: int = -signal.SIGTERM
    lasting: bool = False
    seconds: float | None = None
    reads: bool = False


NO_FAULT = Fault(0)


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code (negative: the signal that ended it), how many calls there were to fail, the
    name of the one that failed (empty: none did), and what was told."""

    code: int
    calls: int
    failed: str
    out: str
    err: str


class Attempts:
    """The process that forks a command for every line it reads."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(
        self,
        arguments: list[str],
        watched: Path,
        fault: Fault = NO_FAULT,
        environment: Mapping[str, str] | None = None,
        limits: Mapping[str, int] | None = None,
    ) -> Ended:
        """Run a command, or the function `module:name`, with a fault in the calls that concern files in `watched`.

        environment: run it in the folder `watched`, with these variables. limits: as `_limit` takes them.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"arguments": arguments, "watched": str(watched), "fault": vars(fault)}
        order |= {"environment": environment, "limits": limits or {}}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return Ended(**json.loads(self._process.stdout.readline()))


@contextmanager
def attempts(place: Path) -> Iterator[Attempts]:
    """Compile the shim in `place`, and start a process under it; skips where there is no C compiler."""
    library, environment = _compiled(place), os.environ | {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    places = [str(SOURCE.parent.parent), *filter(None, [environment.get("PYTHONPATH")])]
    environment |= {"LD_PRELOAD": str(library), "PYTHONPATH": os.pathsep.join(places)}
    command = [
        sys.executable,
        "-c",
        "from support import failing_calls; failing_calls.serve()",
        str(library),
        str(place),
    ]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            yield Attempts(process)
        finally:
            process.kill()


def _compiled(place: Path) -> Path:
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("there is no C compiler for the shim, or this is not Linux")
    library = place / "failing_calls.so"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"], check=True)
    return library


def serve() -> None:
    """The process's own work: read an order, fork, tell how the child ended."""
    shim = ctypes.CDLL(sys.argv[1])
    shim.failing_calls_seen.restype = ctypes.c_long
    shim.failing_calls_name.restype = ctypes.c_char_p
    shim.failing_calls_arm.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.c_int, ctypes.c_int]
    told = Path(sys.argv[2])
    _warm_up(told)
    while line := sys.stdin.readline():
        order = json.loads(line)
        for name in ("out", "err", "calls", "modules"):
            (told / name).write_text("")
        child = os.fork()
        if child == 0:
            _attempt(shim, told, order)
        if order["fault"]["seconds"] is not None:
            time.sleep(order["fault"]["seconds"])
            os.kill(child, -order["fault"]["errno"])  # until it is waited for it has its number to itself
        status = _waited(child)
        calls, _, failed = (told / "calls").read_text().partition(" ")
        ended = Ended(
            code=os.waitstatus_to_exitcode(status),
            calls=int(calls or -1),
            failed=failed,
            out=(told / "out").read_text(errors="replace"),
            err=(told / "err").read_text(errors="replace"),
        )
        _import((told / "modules").read_text().split())
        print(json.dumps(vars(ended)), flush=True)


def _waited(child: int) -> int:
    """Wait for a child; one that does not end is ended."""
    limit = time.monotonic() + SECONDS
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        if time.monotonic() > limit:
            os.kill(child, signal.SIGUSR1)  # what its threads do
            time.sleep(1)
            os.kill(child, signal.SIGALRM)
            limit = time.monotonic() + 1
        time.sleep(0.002)


def _import(names: list[str]) -> None:
    """Import what a child did, so that the next ones need not."""
    for name in names:
        with suppress(ImportError):
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


def _warm_up(place: Path) -> None:
    """Import, compile and load what the commands need, so that children need not.

    A conversion runs no kernel on several threads: OpenMP allows no fork once one did. Collecting garbage in a child
    then leaves alone what was here before.
    """
    import penstock.engine.session
    import penstock.tools.commands.run  # noqa: F401

    (place / "edges.txt").write_text("0 1\n")
    assert cli.run_command(["convert", str(place / "edges.txt"), str(place / "graph.h5"), "--quiet"]) == 0
    gc.collect()
    gc.freeze()


def _attempt(shim: Any, told: Path, order: dict[str, Any]) -> None:
    """In the child: run the command, and end as a process ends, with what the libraries do at their end."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # as `tools/main.py` does
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(told / name, os.O_WRONLY), number)
    faulthandler.register(signal.SIGUSR1)
    fault = order["fault"]
    if order["environment"] is not None:
        os.chdir(order["watched"])
        os.environ.update(order["environment"])
        tempfile.tempdir = None
    before = set(sys.modules)
    shim.failing_calls_arm(order["watched"].encode(), fault["number"], fault["errno"], fault["lasting"], fault["reads"])
    for name, value in order["limits"].items():
        _limit(getattr(resource, name), value)
    code = _code_of(lambda: _run(order["arguments"]))
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)  # for what follows
    sys.stdout.flush()
    sys.stderr.flush()
    (told / "calls").write_text(f"{shim.failing_calls_seen()} {shim.failing_calls_name().decode()}")
    (told / "modules").write_text("\n".join(sys.modules.keys() - before) if fault["number"] == 0 else "")
    _exit(code)


def _limit(number: int, value: int) -> None:
    """Limit this process; address space and open files to what it has and so much more."""
    if number == resource.RLIMIT_AS:
        value += int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    elif number == resource.RLIMIT_NOFILE:
        value += len(os.listdir("/proc/self/fd")) - 1
    resource.setrlimit(number, (value, resource.getrlimit(number)[1]))


def _run(arguments: list[str]) -> None:
    module, colon, name = arguments[0].partition(":")
    if colon:
        _as_a_command(getattr(importlib.import_module(module), name), arguments[1:])
        return
    sys.argv = ["penstock", *arguments]
    cli.main(arguments)


def _as_a_command(work: Callable[..., None], arguments: list[str]) -> None:
    """Call a function as the command line calls its commands: signals raise, and debris is swept."""
    hear()
    try:
        work(*arguments)
    except Stopped as stop:
        print("stopped", file=sys.stderr)
        sys.exit(128 + stop.number)
    finally:
        deafen()
        sweep_debris()


def _code_of(work: Callable[[], None]) -> int:
    try:
        work()
    except SystemExit as leave:
        return int(leave.code or 0)
    except PenstockError as error:
        print(error, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 70  # no command has this code
    return 0


def _exit(code: int) -> None:
    """End with all that Python's and C's libraries do at the end, but without taking Python down, which takes long."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()
    ctypes.CDLL(None).exit(code)
