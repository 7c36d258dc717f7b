"""`--metrics FILE`: JSON lines that a run writes as it goes.

The first line of a program (`"kind": "job"`) says what runs where, with which options, rates and budgets; one follows
for every iteration; the last one is the result's, written with the answer, or says how the run failed. Several programs
of one job follow each other, and a last line (`"kind": "end"`) accounts for the wall time of all of them. A killed run
leaves whole lines, a full disk ends the run. A line is an iteration late, because the clock of a device is read only
then. Of several ranks iterations are those of the first one; the line of the result has those of all, by column.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.storage.base.atomic import check_target, debris, partial_name
from penstock.storage.base.budget import resident_bytes
from penstock.storage.base.errors import InputError, PenstockError, RunError
from penstock.storage.base.stage_clock import StageTimes
from penstock.tools.base.json_record import to_json
from penstock.tools.base.log import LineFile
from penstock.tools.base.output import plain
from penstock.tools.run.account import Account, JobClock
from penstock.tools.run.metric_lines import FailedLine, IterationLine, JobLine, MemoryReading, RankLine, ResultLine

if TYPE_CHECKING:
    from penstock.engine.session import Session
    from penstock.engine.state.records import IterationRecord, RankReport

SAMPLED = 0.05
"""Seconds for which a reading of the process's memory serves: asking takes as long as a small iteration."""
ACCOUNTED = 1.0
"""Seconds after which an iteration's line tells again where the wall time went."""


@contextmanager
def open_metrics(path: Path, *, force: bool = False, clock: JobClock | None = None) -> Iterator[Metrics]:
    """Yield the metrics of a job. A failure inside becomes its program's last line. Raises InputError or RunError.

    clock: of the job, for the stages; without it lines do not tell of them.
    With `force` an existing file stays until the first iteration is over: until then lines are written beside it.
    Input that is refused before leaves no file.
    """
    target = check_target(path, force=force)
    place = partial_name(target) if force and target.exists() else target
    with debris(place) if place != target else nullcontext(), closing(LineFile(place)) as file:
        metrics = Metrics(file, target, place, clock)
        try:
            yield metrics
        except BaseException as error:
            metrics.fail(error)
            metrics.close()
            if isinstance(error, InputError) and not metrics.begun:
                place.unlink(missing_ok=True)
            raise
        metrics.close()
        metrics.place_file()


class Metrics:
    """Lines of a job's programs, one after another: `begin`, `note` every iteration, `end`.

    file: where they are written, at `place` until it has its name, `path`. clock: of the job.
    """

    def __init__(self, file: LineFile, path: Path, place: Path, clock: JobClock | None = None) -> None:
        self._file, self._path, self._place, self._clock = file, path, place, clock
        self._session: Session | None = None
        self._late: tuple[IterationRecord, dict[str, Any], Account | None] | None = None
        self._began = self._sampled = self._accounted = 0.0
        self._compiled = self._taken = 0.0
        self._any = False
        self._resident = 0
        self.begun = False
        """Whether an iteration is over, or a program."""

    def begin(self, session: Session, facts: Mapping[str, Any]) -> None:
        """Begin a program; facts: its name and parameters, and what the caller knows beside what the session tells."""
        self._session, self._began = session, time.perf_counter()
        self._write("job", to_json(JobLine.of(session, facts)), self._account())
        self._any = True

    def note(self, record: IterationRecord) -> None:
        """Take an iteration that is over; the line of the one before is written."""
        self.place_file()
        self._flush()
        compiled = None if self._clock is None else self._compiling(record.seconds, self._clock.times())
        due = self._clock is not None and time.perf_counter() - self._accounted > ACCOUNTED
        elapsed = time.perf_counter() - self._began
        late = {"elapsed": elapsed, "memory": self._memory(), "compile_seconds": compiled}
        self._late = record, late, self._account() if due else None

    def end(self, facts: Mapping[str, Any], ranks: Sequence[RankReport] = ()) -> None:
        """End a program whose answer is written; facts: what is said of its result. ranks: what each of them did."""
        self.place_file()
        self._flush()
        each = [RankLine(**one.facts(), by_iteration=one.by_iteration()) for one in ranks]
        self._write("result", {**facts, **to_json(ResultLine(ranks=each or None))}, self._account())
        self._session = None

    def fail(self, error: BaseException) -> None:
        """End a program that did not reach its end; nothing to do between two programs."""
        if self._session is not None:
            self._flush()
            told = str(error) if isinstance(error, PenstockError | KeyboardInterrupt) else ""
            said = told or f"{type(error).__name__}: {error}"
            self._write("failed", to_json(FailedLine(error=said)), self._account())
        self._session = None

    def close(self) -> None:
        """End the job: account for its wall time."""
        if self._clock is not None and self._any:
            self._write("end", {}, self._clock.account())

    def _account(self) -> Account | None:
        """Where the time of the job has gone so far; None without a clock."""
        self._accounted = time.perf_counter()
        return None if self._clock is None else self._clock.account()

    def _compiling(self, seconds: float, times: StageTimes) -> float | None:
        """What an iteration that took so long spent on compiling and loading kernels.

        Of iterations that were one call, the first ones hold what was compiled for it.
        """
        self._compiled += times.compiled_within.get("iterations", 0.0) - self._taken
        self._taken = times.compiled_within.get("iterations", 0.0)
        part = min(seconds, self._compiled)
        self._compiled -= part
        return part if part > 0 else None

    def place_file(self) -> None:
        """Let the file have its name, if it is written beside one that it replaces. Raises RunError."""
        self.begun = True
        if self._place != self._path:
            try:
                self._place.replace(self._path)
            except OSError as error:
                raise RunError(f"{self._path} could not be replaced: {error.strerror}") from error
            self._place = self._path

    def _write(self, kind: str, facts: Mapping[str, Any], account: Account | None) -> None:
        """Append one line. Raises RunError where the disk does not take all of it, and leaves none of it."""
        told = {"kind": kind, **facts, **({} if account is None else to_json(account))}
        try:
            self._file.write(json.dumps(plain(told), allow_nan=False))
        except OSError as error:
            why = error.strerror or error
            raise RunError(f"{self._path} could not be written: {why}; free space, or leave out --metrics") from error

    def _flush(self) -> None:
        if self._late is not None:
            (record, late, account), self._late = self._late, None  # one that could not be written is not tried again
            told: dict[str, Any] = record.summary()
            named = {name: value for name, value in told.items() if not name.startswith("total_")}
            self._write("iteration", told | to_json(IterationLine(**named, **late)), account)

    def _memory(self) -> MemoryReading:
        now = time.perf_counter()
        if now - self._sampled > SAMPLED:
            self._resident, self._sampled = resident_bytes(), now
        session = self._session
        assert session is not None, "iterations lie between begin and end"
        held, device = session.holdings, session.device
        edges: dict[str, int] = {}
        if held is not None:
            edges = {"edges": held.edges, "edges_host": held.host, "edges_device": held.device, "chunk": held.chunk}
        used = None if device.reads_host else device.used_bytes
        return MemoryReading(process=self._resident, device=used, **edges)
