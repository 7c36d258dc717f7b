"""A second process that compiles kernels for this one, whose memory is then a run's and not a compiler's.

Numba's tables and LLVM's modules take some 100 MiB of a process that compiles, and none of one that loads what was
compiled. The companion is started when code is first missing (or before, `start`). It compiles what it is asked for,
puts it into the user's cache, and answers; this process loads it from there. Of a run that has said which kernels it
will need (`offer`), processes forked from the companion compile those meanwhile that are needed late: each takes a
kernel by making a file, so that none is compiled twice.

This process compiles itself what no companion can find (a program of a notebook or of a script), could not compile, or
where none can be started: without a cache that can be written, with too little free memory, or with a limit on address
space. All end with this process or with the run. Their memory, some 200 MiB, is not part of a run's budget.
"""

import atexit
import functools
import hashlib
import json
import logging
import os
import re
import select
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from penstock.storage.base.budget import address_limit, available_memory
from penstock.storage.base.errors import InputError
from penstock.storage.base.missing_code import Missing, Origin, when_missing
from penstock.storage.base.stage_clock import compiling
from penstock.storage.base.user_cache import kernel_places, make_place, shipped_places
from penstock.storage.companion.claims import Claims

COMPANION_BYTES = 256 << 20
"""Memory of each process: must be free beside what the run may take."""
PATIENCE = 120.0
"""Seconds that this process waits for an answer before it compiles for itself."""
_KNOWN = ".known"
_START = (
    "import json, sys; hello = json.loads(sys.stdin.readline()); sys.path[:] = hello['path']; "
    "from penstock.storage.companion.server import serve; serve(hello)"
)
_log = logging.getLogger("penstock.storage.companion.process")


def _kept_in() -> Path:
    """The folder where compiled kernels are kept. Raises InputError where there is none."""
    folders, trouble = kernel_places()
    if not folders:
        raise InputError(trouble or "")
    return folders[0]


class Companion:
    """The process that compiles what it is asked for, and leads those that compile a job.

    folder: where it has a folder for claims, which is where kernels are kept. environment: its own variables, if any.
    module: of the job that is expected, if one is, which it imports first.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None, module: str | None = None) -> None:
        import subprocess  # a run that finds all its kernels needs neither
        import tempfile

        make_place(folder)
        self.folder = Path(tempfile.mkdtemp(prefix=".companion-", dir=folder))
        self.claims = Claims(self.folder)
        self.has_job = False
        self._asking = threading.Lock()
        try:
            with (self.folder / "log").open("wb") as log:
                self.process = subprocess.Popen(
                    [sys.executable, "-P", "-c", _START], bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    stderr=log, process_group=0, env=environment,
                )  # fmt: skip
        except OSError:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        self._say({"folder": str(self.folder), "path": sys.path, "module": module})

    def give(self, job: dict[str, Any]) -> None:
        """Let ``job["processes"]`` further processes do a job."""
        with self._asking:
            self._say(job)
            self.has_job = True

    def end_jobs(self) -> None:
        """End the processes that do jobs; what they have taken is nobody's in those of the next run."""
        import tempfile

        if self.has_job:
            self.has_job = False
            with self._asking, suppress(OSError):  # the folder is gone: no kernel can be taken
                self.claims = Claims(Path(tempfile.mkdtemp(dir=self.folder)))
                self._say({"processes": 0, "folder": str(self.claims.folder)})

    def ask(self, request: dict[str, Any], patience: float) -> bool | None:
        """Return the answer to a request; None where there will be none, or none within so many seconds."""
        with self._asking:
            self._say(request)
            assert self.process.stdout is not None
            answer = select.poll()
            answer.register(self.process.stdout, select.POLLIN)
            if not answer.poll(1000 * patience):
                return None
            return {b"true\n": True, b"false\n": False}.get(self.process.stdout.readline())

    @property
    def is_idle(self) -> bool:
        """Whether it has ended since nobody asked it for long."""
        return self.process.poll() == -signal.SIGALRM

    def _say(self, told: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended: there will be no answer
            self.process.stdin.write(json.dumps(told).encode() + b"\n")

    def close(self) -> None:
        """End it, and those that it leads, and say what went wrong."""
        failed = self.process.poll() not in (None, 0) and not self.is_idle
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
        if failed:
            with suppress(OSError):
                _log.info(
                    "a companion that compiles kernels failed: %s",
                    (self.folder / "log").read_text(errors="replace")[-2000:],
                )
        shutil.rmtree(self.folder, ignore_errors=True)


class _Present:
    """The companion of this process, if it has one.

    inherited: that of the process from which this one was forked. refused: it has none until the end of the run.
    memory: bytes that this process may take besides. begin: begins the job of what runs now. marker: the file that says
    that what runs now has run before. kept: the companion goes on after a run. whole: describes the job of all runs.
    offered: is given what describes the job of each run, and there is no companion.
    """

    companion: Companion | None = None
    inherited: Companion | None = None
    refused = False
    memory = 0
    begin: Callable[[], None] | None = None
    marker: Path | None = None
    kept = False
    whole: Callable[[], dict[str, Any]] | None = None
    offered: Callable[[Callable[[], dict[str, Any]]], None] | None = None


_changing = threading.RLock()


@functools.cache
def install() -> None:
    """Let companions compile what this process misses from now on; called by what opens, makes, converts or runs."""
    when_missing(_missing)
    atexit.register(end, compiled=False)  # a run ends before, and what was expected has not run
    os.register_at_fork(after_in_child=_after_fork)


def start(module: str | None = None) -> Companion | None:
    """Start the companion, unless there is one, or cannot be; module: as in `Companion`."""
    with _changing:
        if _Present.companion is not None and _Present.companion.is_idle:
            _Present.companion.close()
            _Present.companion = None
        if _Present.companion is None and not (_Present.refused or _Present.offered) and is_possible(1):
            try:
                _Present.companion = Companion(_kept_in(), module=module)
            except (InputError, OSError) as error:
                _refuse(str(error))
        return _Present.companion


def expect(what: str, module: str | None = None, *, early: bool = True) -> bool:
    """Start the companion already now if nothing that is called `what` has run before, until whose end it is needed.

    module: what does the run's job, if that is known. early: whether it starts now, else where a kernel is missing.
    Returns whether its kernels will have to be compiled.

    So it is ready when the first kernel is missing. What has run before, or finds kernels that were compiled elsewhere,
    and misses one nevertheless waits longer.
    """
    with suppress(InputError, OSError):
        _Present.marker = _marker_of(what)
    new = is_new(what)
    if new and early:
        start(module)
    return new


def is_new(what: str) -> bool:
    """Whether nothing that is called `what` has run before, so that its kernels will have to be compiled."""
    with suppress(InputError, OSError):
        return _Present.offered is None and not _marker_of(what).exists() and not shipped_places()
    return False


def _marker_of(what: str) -> Path:
    facts = f"{what} {sys.implementation.cache_tag} {Path(__file__).stat().st_mtime_ns}"
    return _kept_in() / f"{hashlib.sha256(os.fsencode(facts)).hexdigest()}{_KNOWN}"


def is_possible(processes: int) -> bool:
    """Whether so many more processes can be started, and have memory."""
    return (
        Path(sys.executable or "").name.startswith("python")
        and address_limit() is None
        and available_memory() >= _Present.memory + COMPANION_BYTES * processes
    )


def _refuse(why: str) -> None:
    """Compile in this process until the end of the run."""
    _log.info("kernels are compiled by this process alone: %s", why)
    companion, _Present.companion, _Present.refused = _Present.companion, None, True
    if companion is not None:
        companion.close()


def offer(describe: Callable[[], dict[str, Any]] | None, memory: int, *, early: bool = False) -> None:
    """Say what a run will need: at the first kernel that is missing from now on, a job begins.

    Parameters
    ----------
    describe : callable or None
        Returns the job as JSON; ``job["target"]`` is the module and the name of a function that each of the
        ``job["processes"]`` processes, or of as many as find memory, calls with the job, in which ``job["number"]`` is
        its number from 0, and with `Claims`. Raises TypeError where there is no such job. None: there is none.
    memory : int
        Bytes that this process may take besides.
    early : bool
        Whether kernels are needed later than another process can compile them: where nothing like the run has run
        before, as `expect` has found, the job begins now.
    """

    def begin() -> None:
        try:
            job = describe() if describe is not None else None
            json.dumps(job)
        except TypeError as error:
            _log.info("no kernels are compiled ahead: %s", error)
            return
        companion = start()
        while job is not None and job["processes"] > 1 and not is_possible(job["processes"]):
            job["processes"] -= 1
        if companion is not None and job is not None and is_possible(job["processes"]):
            if job["processes"] == 1:  # for want of cores: what an earlier phase may need does not go first
                companion.end_jobs()
            companion.give(job)

    install()
    if _Present.offered is not None:
        if describe is not None:
            _Present.offered(describe)
        return
    if _Present.whole is not None:
        describe = None if _Present.companion is not None and _Present.companion.has_job else _Present.whole
    with _changing:
        _Present.memory = memory
        if _Present.companion is not None and not is_possible(0):
            _refuse("there is no memory for another")
    _Present.begin = begin
    if early and _Present.marker is not None and not _Present.marker.exists() and not shipped_places():
        _begin()


def replace(missing: Missing | None, offered: Callable[[Callable[[], dict[str, Any]]], None] | None) -> None:
    """Let this process have no companion, but two functions in its place; None, None: let it have one again.

    Parameters
    ----------
    missing : callable or None
        Is given what is missing, as in `missing_code.py`.
    offered : callable or None
        Is given what describes the job of each run, as in `offer`.
    """
    install()  # once, so that nothing that opens a graph later puts the companion back
    end()
    when_missing(missing or _missing)
    _Present.offered = offered


def planned_kernels() -> tuple[int, int] | None:
    """Return how many of the kernels that the run will need have been begun, of how many; None: not known."""
    companion = _Present.companion
    return None if companion is None or not companion.has_job else companion.claims.counts()


def _begin() -> None:
    begin, _Present.begin = _Present.begin, None
    if begin is not None:
        begin()


def _missing(name: str, entry: str, origin: Origin | None, signature: Any) -> bool:
    """Let code be compiled by another process, or wait for one that does; return whether it is kept now."""
    _begin()
    companion = _Present.companion
    if companion is not None and companion.has_job and not companion.is_idle and not companion.claims.take(entry):
        return _ask(companion, {"awaited": entry}, name) is True
    if origin is None:
        return False
    try:
        request = request_for(origin, signature)
    except TypeError as error:
        _log.info("a function is compiled by this process: %s", error)
        return False
    companion = start()
    return companion is not None and _ask(companion, request, name) is True


def request_for(origin: Origin, signature: Any) -> dict[str, Any]:
    """What a companion is asked for: a function for arguments of these types. Raises TypeError where none finds it."""
    from penstock.storage.base.kernel_loading import told_types

    return {**origin(), "types": told_types(signature)}


def name_in(request: dict[str, Any]) -> str:
    """What people call the kernel that is asked for: of `JitFunction` its function, else that of `name`."""
    name = str(request.get("name") or request.get("function", [""])[-1])
    found = re.search(r"(\w+)\.\d+$", name)
    return found[1] if found else name


def _ask(companion: Companion, request: dict[str, Any], name: str) -> bool | None:
    with compiling(name):
        answer = companion.ask(request, PATIENCE)
    if answer is None:
        with _changing:
            if _Present.companion is companion:
                _refuse("there was no answer")
    return answer


def end(*, compiled: bool = True) -> None:
    """Let no companion start a job from now on, and end what runs; within `keeping`, jobs of single runs alone.

    compiled: whether what was expected has run, and its kernels are kept.
    """
    _Present.begin = None
    with _changing:
        companion, _Present.companion = _Present.companion, _Present.companion if _Present.kept else None
        marker, _Present.marker, kept = _Present.marker, None, _Present.kept
        _Present.refused, _Present.memory = False, 0
    if companion is not None and not kept:
        companion.close()
    elif companion is not None and _Present.whole is None:
        companion.end_jobs()
    with suppress(OSError):  # of a cache that cannot be written
        if compiled and marker is not None and _Present.offered is None and not marker.exists():
            marker.touch()  # where there was no companion this process has compiled


@contextmanager
def keeping(describe: Callable[[], dict[str, Any]] | None = None) -> Iterator[None]:
    """Let one companion serve all runs within, whose imports and tables of the compiler are made once.

    describe: the job of all of them, as in `offer`, which goes on from one to the next in place of their own.
    """
    _Present.kept, _Present.whole = True, describe
    try:
        yield
    finally:
        _Present.kept, _Present.whole = False, None
        end()


def _after_fork() -> None:
    """Leave the companion to the process that began it."""
    global _changing
    _changing = threading.RLock()
    _Present.inherited, _Present.companion = _Present.companion, None


def compile_alone() -> None:
    """Let this process, which is a companion itself, have none."""
    install()  # once, so that no module that it imports does
    when_missing(None)
