"""Owns a run directory: an answer together with everything that repeats the run and says what it was.

    job.toml        the job with all options that took effect: `penstock run DIR/job.toml --run-dir OTHER` repeats it
    run.json        command line, versions, machine, graph, how it ended; "running" until then
    metrics.jsonl   a line for every iteration (tools/metrics.py)
    rates.json      the machine's rates that were used, where any were measured
    log.txt         what was logged
    and the answers, and trace.json where it was asked for

Each file appears whole, or grows by whole lines. Input that is refused before an iteration has run leaves nothing; a
run that failed or was stopped leaves its directory, which says so. Refuses a directory that is not empty, unless told
to replace the run in it.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.storage.atomic import write_text
from penstock.storage.budget import available_memory
from penstock.storage.errors import InputError
from penstock.tools import job_file
from penstock.tools.job import Job
from penstock.tools.metrics import METRICS
from penstock.tools.output import plain
from penstock.tools.rates import Used
from penstock.tools.stop import NOTHING, Stopped

if TYPE_CHECKING:
    from penstock.engine.session import Session

FORMAT = 1
MARK = "penstock_run"
JOB, RUN, RATES, LOG, TRACE = "job.toml", "run.json", "rates.json", "log.txt", "trace.json"
OWN = (JOB, RUN, RATES, LOG, TRACE, METRICS)
"""What a run replaces that is told to replace the run in its directory, besides outputs of the same names."""
SOFTWARE = ("penstock", "numpy", "numba", "llvmlite", "h5py", "zstandard", "pyarrow", "cupy-cuda13x", "numba-cuda")


def check_folder(job: Job) -> None:
    """Refuse a run directory that holds something already. Raises InputError."""
    folder = job.keeping.run_dir
    if folder is None or not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; name another --run-dir")
    if not any(folder.iterdir()):
        return
    status = _status(folder)
    if status is None:
        raise InputError(f"{folder} is not empty, and no run directory; name another --run-dir")
    if job.checkpointing.resume and status == "done":
        raise InputError(f"{folder} holds a run that is done, there is nothing to resume; name another --run-dir")
    if not (job.force or job.checkpointing.resume):
        raise InputError(f"{folder} holds a run already; --force replaces it, or name another --run-dir")


def _status(folder: Path) -> str | None:
    """How the run in a directory stands; None where it is no run directory, so that nothing in it may be replaced."""
    try:
        facts = json.loads((folder / RUN).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return str(facts.get("status")) if isinstance(facts, dict) and MARK in facts else None


@dataclass
class Record:
    """What a run leaves in its directory; without one (folder None) every verb does nothing.

    iterated: whether an iteration has run, so that there is something to keep whatever comes.
    """

    folder: Path | None
    facts: dict[str, Any] = field(default_factory=dict)
    iterated: bool = False

    def begin(self, job: Job, session: Session, used: Used) -> None:
        """Write the job as it takes effect, and what it runs on."""
        if self.folder is None:
            return
        if used.calibration is not None:
            self._write(RATES, _json(used.calibration.facts()))
        self._write(JOB, job_file.text_of(job, _effective(job, session, used)))
        self.tell(**_facts(session), rates=used.facts(), status="running")

    def tell(self, **facts: Any) -> None:
        """Note how things stand."""
        if self.folder is not None:
            self.facts |= facts
            self._write(RUN, _json(self.facts))

    def _write(self, name: str, text: str) -> None:
        assert self.folder is not None
        write_text(self.folder / name, text, force=True)


@contextmanager
def recording(job: Job) -> Iterator[Record]:
    """Make the run directory that a job names, and keep its record until the block ends, however that is.

    Raises InputError for a directory that cannot be used.
    """
    folder = job.keeping.run_dir
    if folder is None:
        yield Record(None)
        return
    check_folder(job)
    made = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made: {error.strerror}; name another --run-dir") from error
    aside = _put_aside(folder) if job.checkpointing.resume else None
    _clear(folder)
    record = Record(folder, {MARK: FORMAT, "command_line": sys.argv, "folder": Path.cwd(), "process": os.getpid()})
    record.tell(started=_now(), status="starting")
    try:
        with _logging_to(folder / LOG):
            yield record
    except BaseException as error:
        if isinstance(error, InputError) and not (record.iterated or record.facts.get("programs")):
            _clear(folder)
            _put_back(aside, folder)
            if made:
                folder.rmdir()
        else:
            if isinstance(error, Stopped) and error.left == NOTHING:
                error.left = f"{folder / RUN} says how far it came"
            status = "stopped" if isinstance(error, KeyboardInterrupt) else "failed"
            record.tell(status=status, error=str(error) or type(error).__name__, ended=_now())
        raise
    record.tell(status="done", ended=_now())


def _put_aside(folder: Path) -> Path | None:
    """Move the record of a run that is to be resumed into a folder `earlier-N`, whole; None where there is none."""
    there = [folder / name for name in OWN if (folder / name).exists()]
    if not there:
        return None
    number = next(n for n in itertools.count(1) if not (folder / f"earlier-{n}").exists())
    aside = folder / f"earlier-{number}"
    aside.mkdir()
    for path in there:
        path.rename(aside / path.name)
    return aside


def _put_back(aside: Path | None, folder: Path) -> None:
    """Undo `_put_aside`."""
    if aside is not None:
        for path in list(aside.iterdir()):
            path.rename(folder / path.name)
        aside.rmdir()


def _clear(folder: Path) -> None:
    """Remove an earlier run's record, so that what is there afterwards is of one run."""
    for name in OWN:
        (folder / name).unlink(missing_ok=True)


@contextmanager
def _logging_to(path: Path) -> Iterator[None]:
    """Let everything that `penstock.*` logs go to a file too, from INFO upwards."""
    logger = logging.getLogger("penstock")
    keeper = logging.FileHandler(path, encoding="utf-8")
    keeper.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    level = logger.level
    logger.setLevel(min(logger.getEffectiveLevel(), logging.INFO))
    logger.addHandler(keeper)
    try:
        yield
    finally:
        logger.removeHandler(keeper)
        logger.setLevel(level)
        keeper.close()


def _effective(job: Job, session: Session, used: Used) -> dict[str, Any]:
    """The job's options by name as they took effect; its outputs lie where the file itself lies."""
    found = dict(job.given)
    found |= {"host_memory": session.config.memory_bytes, "threads": session.config.thread_count, "run_dir": "."}
    found["stripes"] = [path.absolute() for path in job.execution.stripes]
    if session.device is None:
        found["device"] = "cpu"
    if used.calibration is not None:
        found["rates"] = RATES
    return found


def _facts(session: Session) -> dict[str, Any]:
    """What the run was made with, and on."""
    from penstock.engine.calibrate import machine_facts
    from penstock.storage.fingerprint import fingerprint
    from penstock.transfer.host import HostDevice

    graph, config = session.graph, session.config
    device = session.device or HostDevice("cpu", config.thread_count)
    return {
        "versions": _versions(),
        "machine": machine_facts(device) | {"host": platform.node(), "system": platform.platform()},
        "device": device.name,
        "available_memory": available_memory(),
        "graph": {
            "path": graph.path and graph.path.absolute(),
            "id": graph.graph_id,
            **fingerprint(graph),
            "bytes": graph.file_bytes,
        },
        "options": {entry.name: getattr(config, entry.name) for entry in fields(config) if entry.name != "rates"},
    }


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in SOFTWARE:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _json(facts: Mapping[str, Any]) -> str:
    return json.dumps(plain(facts), indent=1, allow_nan=False) + "\n"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
