"""A run directory: an answer together with everything that repeats the run and says what it was.

    job.toml        the job with all options that took effect: `penstock run DIR/job.toml --run-dir OTHER` repeats it
    run.json        command line, versions, machine, graph, how it ended; "running" until then
    metrics.jsonl   a line for every iteration
    rates.json      the machine's rates that were used, where any were measured
    log.txt         what was logged
    and the answers, and trace.json where it was asked for

What it names in itself it names relative to itself, so that a copy is a run directory of its own, and may be moved.
The directory is locked. Input that is refused before an iteration has run leaves nothing; a run that failed or was
stopped leaves its directory. With --force or --resume the earlier record stays until the first iteration is over.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.storage.base.atomic import write_text
from penstock.storage.base.budget import available_memory
from penstock.storage.base.errors import InputError, refusal
from penstock.storage.base.folder_lock import FolderLock
from penstock.tools.base.log import to_file
from penstock.tools.base.output import plain
from penstock.tools.base.signals import NOTHING, Stopped
from penstock.tools.run import job_file
from penstock.tools.run.job import Job
from penstock.tools.run.rates import UsedRates
from penstock.tools.run.record_files import JOB, LOCK, LOG, MARK, METRICS, RATES, RUN, RecordFiles, is_empty, status

if TYPE_CHECKING:
    from penstock.engine.session import Session

FORMAT = 1
SOFTWARE = ("penstock", "numpy", "numba", "llvmlite", "h5py", "zstandard", "pyarrow", "cupy-cuda13x", "numba-cuda")


def check_folder(job: Job) -> None:
    """Refuse a run directory that holds something already, or that another run uses. Raises InputError."""
    folder = job.run_dir
    if folder is not None and folder.exists():
        _lock(folder).check()
        _check_content(job, folder)


def _check_content(job: Job, folder: Path) -> None:
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; name another --run-dir")
    if is_empty(folder):
        return
    ended = status(folder)
    if ended is None:
        raise InputError(f"{folder} is not empty, and no run directory; name another --run-dir")
    if job.checkpointing.resume and ended == "done" and not job.kept().checkpointing.has_last_state:
        raise InputError(f"{folder} holds a run that is done, there is nothing to resume; name another --run-dir")
    if not (job.force or job.checkpointing.resume):
        raise InputError(f"{folder} holds a run already; --force replaces it, or name another --run-dir")


def _lock(folder: Path) -> FolderLock:
    return FolderLock(folder, LOCK, "--run-dir")


@dataclass
class Record:
    """What a run leaves in its directory; without one (files None) every verb does nothing.

    begun: whether an iteration has run, so that there is something to keep whatever comes.
    """

    files: RecordFiles | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    begun: bool = False

    def describe(self, job: Job, session: Session, used: UsedRates) -> None:
        """Write the job as it takes effect, and what it runs on."""
        if self.files is None:
            return
        if used.calibration is not None:
            self._write(RATES, _json(used.calibration.facts()))
        effective = _effective(job, session, used)
        if any("\ud800" <= letter <= "\udfff" for letter in effective):  # bytes of names, which TOML cannot hold
            raise InputError(
                f"a file of this job has a name that is not UTF-8, and {JOB} is; rename it, or omit --run-dir"
            )
        self._write(JOB, effective)
        self.tell(**_facts_of(session), rates=used.facts(), status="running")

    def begin(self) -> None:
        """Note that the run has begun, unless that is noted: what it replaces goes now."""
        if not self.begun and self.files is not None:
            self.files.begin()
        self.begun = True

    def tell(self, **facts: Any) -> None:
        """Note how things stand."""
        if self.files is not None:
            self.facts |= facts
            self._write(RUN, _json(self.facts))

    def placed(self, metrics: Path | None) -> Path | None:
        """Where to write metrics: those of the record where the record is written now."""
        return metrics if self.files is None or metrics != self.files.folder / METRICS else self.files.place / METRICS

    def _write(self, name: str, text: str) -> None:
        assert self.files is not None
        write_text(self.files.place / name, text, force=True)


@contextmanager
def open_record(job: Job) -> Iterator[Record]:
    """Make and lock the run directory that a job names, and keep its record until the block ends, however that is.

    Raises InputError for a directory that cannot be used.
    """
    folder = job.run_dir
    if folder is None:
        yield Record()
        return
    made: list[Path] = []
    try:
        try:
            _make(folder, made)
        except OSError as error:
            raise refusal(error, f"{folder} cannot be made: {error.strerror}; name another --run-dir") from error
        with _lock(folder).holding():
            _check_content(job, folder)
            for inner in job.kept().folders():
                _make(inner, made)
            with _recorded(RecordFiles(folder, keep=job.checkpointing.resume)) as record:
                yield record
    except BaseException:
        for path in reversed(made):
            with suppress(OSError):  # not empty
                path.rmdir()
        raise


def _make(folder: Path, made: list[Path]) -> None:
    """Make a folder and those above it; add them to those made, which go again if the input is refused."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    made += reversed(missing)
    folder.mkdir(parents=True, exist_ok=True)


@contextmanager
def _recorded(files: RecordFiles) -> Iterator[Record]:
    """Keep the record of a run whose folder is locked."""
    files.open()
    facts = {MARK: FORMAT, "command_line": sys.argv, "folder": Path.cwd(), "process": os.getpid()}
    record = Record(files, facts)
    try:
        record.tell(started=_now(), status="starting")
        with to_file(files.place / LOG) as log:
            yield record
        record.tell(status="done", ended=_now(), **log.trouble())
    except BaseException as error:
        if not record.begun and (files.replacing or isinstance(error, InputError)):
            files.drop()
            left = f"the earlier run in {files.folder} is as it was" if files.replacing else NOTHING
        else:
            ended = "stopped" if isinstance(error, KeyboardInterrupt) else "failed"
            record.tell(status=ended, error=str(error) or type(error).__name__, ended=_now())
            left = f"{files.folder / RUN} says how far it came"
        if isinstance(error, Stopped) and error.left == NOTHING:
            error.left = left
        raise


def _effective(job: Job, session: Session, used: UsedRates) -> str:
    """The text of a job file with every option as it took effect, and every output by its name in the run directory."""
    portable = job.portable()
    found = dict(portable.given)
    found |= {"host_memory": session.config.memory_bytes, "threads": session.config.thread_count, "run_dir": "."}
    found["stripes"] = [job.recorded(path) for path in job.execution.stripes]
    if session.device.reads_host:
        found["device"] = "cpu"
    if used.calibration is not None:
        found["rates"] = RATES
    return job_file.text_of(portable, found)


def _facts_of(session: Session) -> dict[str, Any]:
    """What a run was made with, and on."""
    from penstock.engine.calibration.material import machine_facts
    from penstock.storage.format.fingerprint import fingerprint

    graph, config, device = session.graph, session.config, session.device
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
        "options": config.facts(),
    }


def _versions() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version  # with parsers of e-mail; only for a record

    found = {"python": platform.python_version()}
    for name in SOFTWARE:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _json(facts: Mapping[str, Any]) -> str:
    return json.dumps(plain(facts), indent=1, allow_nan=False) + "\n"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
