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
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.storage.base import hardware_info
from penstock.storage.base.atomic import check_target, debris, partial_name
from penstock.storage.base.budget import resident_bytes
from penstock.storage.base.errors import InputError, PenstockError, RunError
from penstock.storage.base.stage_clock import StageTimes
from penstock.tools.base.log import LineFile
from penstock.tools.base.options import OUTPUT, option, option_group
from penstock.tools.base.output import plain
from penstock.tools.run.account import JobClock

if TYPE_CHECKING:
    from penstock.engine.session import Session
    from penstock.engine.state.records import IterationRecord, RankReport

FORMAT = 2
"""1: without stages, and without the last line."""
SAMPLED = 0.05
"""Seconds for which a reading of the process's memory serves: asking takes as long as a small iteration."""
ACCOUNTED = 1.0
"""Seconds after which an iteration's line tells again where the wall time went."""


@dataclass(frozen=True)
class Watching:
    """Where a run writes what it did: lines of metrics, a trace.

    follows: whether another process, rank 0, writes a trace, and this one only gives it its timeline.
    """

    metrics: Path | None = None
    trace: Path | None = None
    follows: bool = False

    @property
    def traced(self) -> bool:
        """Whether what runs when is to be noted."""
        return self.follows or self.trace is not None


watching = option_group(
    "watching",
    Watching,
    option(
        "--metrics", type=OUTPUT, help="Write a JSON line for every iteration, as it goes; penstock report reads it."
    ),
    option("--trace", type=OUTPUT, help="Write what ran when, for ui.perfetto.dev or chrome://tracing."),
    title="Metrics and trace",
)


@contextmanager
def open_metrics(path: Path | None, *, force: bool = False, clock: JobClock | None = None) -> Iterator[Metrics]:
    """Yield the metrics of a job. A failure inside becomes its program's last line. Raises InputError or RunError.

    clock: of the job, for the stages; without it lines do not tell of them.
    With `force` an existing file stays until the first iteration is over: until then lines are written beside it.
    Input that is refused before leaves no file.
    """
    if path is None:
        yield Metrics(None)
        return
    target = check_target(path, force=force)
    place = partial_name(target) if force and target.exists() else target
    with debris(place) if place != target else nullcontext(), closing(LineFile(place)) as file:
        lines = _Lines(file, target, place)
        metrics = Metrics(lines, clock)
        try:
            yield metrics
        except BaseException as error:
            metrics.fail(error)
            metrics.close()
            if isinstance(error, InputError) and not metrics.begun:
                place.unlink(missing_ok=True)
            raise
        metrics.close()
        lines.begin()


@dataclass
class _Lines:
    """Lines of JSON in a file, which is written at `place` until it has its name."""

    file: LineFile
    path: Path
    place: Path

    def begin(self) -> None:
        """Let the file have its name, if it is written beside one that it replaces. Raises RunError."""
        if self.place != self.path:
            try:
                self.place.replace(self.path)
            except OSError as error:
                raise RunError(f"{self.path} could not be replaced: {error.strerror}") from error
            self.place = self.path

    def write(self, facts: Mapping[str, Any]) -> None:
        """Append one line. Raises RunError where the disk does not take all of it, and leaves none of it."""
        try:
            self.file.write(json.dumps(plain(facts), allow_nan=False))
        except OSError as error:
            why = error.strerror or error
            raise RunError(f"{self.path} could not be written: {why}; free space, or leave out --metrics") from error


class Metrics:
    """Lines of a job's programs, one after another: `begin`, `note` every iteration, `end`."""

    def __init__(self, lines: _Lines | None, clock: JobClock | None = None) -> None:
        self._lines = lines
        self._clock = clock
        self._session: Session | None = None
        self._late: dict[str, Any] | None = None
        self._record: IterationRecord | None = None
        self._began = self._sampled = self._accounted = 0.0
        self._compiled = self._taken = 0.0
        self._any = False
        self._resident = 0
        self.begun = False
        """Whether an iteration is over, or a program."""

    @property
    def kept(self) -> bool:
        """Whether lines are written."""
        return self._lines is not None

    def begin(self, session: Session, facts: Mapping[str, Any]) -> None:
        """Begin a program; facts: its name and parameters, and what the caller knows beside what the session tells."""
        self._session, self._began = session, time.perf_counter()
        if self._lines is not None:
            self._lines.write({"kind": "job", "format": FORMAT, **facts, **_told(session), **self._account()})
            self._any = True

    def note(self, record: IterationRecord) -> None:
        """Take an iteration that is over; the line of the one before is written."""
        if self._lines is None:
            return
        self._begin()
        self._flush()
        self._record = record
        self._late = {"elapsed": time.perf_counter() - self._began, "memory": self._memory()}
        if self._clock is not None:
            self._late |= self._compiling(record.seconds, self._clock.clock.times())

    def end(self, facts: Mapping[str, Any], ranks: Sequence[RankReport] = ()) -> None:
        """End a program whose answer is written; facts: what is said of its result. ranks: what each of them did."""
        if self._lines is not None:
            self._begin()
            self._flush()
            each = [one.facts() | {"by_iteration": one.by_iteration()} for one in ranks]
            self._lines.write({"kind": "result", **facts, **({"ranks": each} if each else {}), **self._account()})
        self._session = None

    def fail(self, error: BaseException) -> None:
        """End a program that did not reach its end; nothing to do between two programs."""
        if self._lines is not None and self._session is not None:
            self._flush()
            told = str(error) if isinstance(error, PenstockError | KeyboardInterrupt) else ""
            said = told or f"{type(error).__name__}: {error}"
            self._lines.write({"kind": "failed", "error": said, **self._account()})
        self._session = None

    def close(self) -> None:
        """End the job: account for its wall time."""
        if self._lines is not None and self._clock is not None and self._any:
            self._lines.write({"kind": "end", **self._account()})

    def _account(self) -> dict[str, Any]:
        """Where the time of the job has gone so far; nothing without a clock."""
        self._accounted = time.perf_counter()
        return {} if self._clock is None else self._clock.account().facts()

    def _compiling(self, seconds: float, times: StageTimes) -> dict[str, Any]:
        """What an iteration that took so long spent on compiling and loading kernels; now and then, all stages.

        Of iterations that were one call, the first ones hold what was compiled for it.
        """
        self._compiled += times.compiled_within.get("iterations", 0.0) - self._taken
        self._taken = times.compiled_within.get("iterations", 0.0)
        part = min(seconds, self._compiled)
        self._compiled -= part
        told: dict[str, Any] = {"compile_seconds": part} if part > 0 else {}
        return told | self._account() if time.perf_counter() - self._accounted > ACCOUNTED else told

    def _begin(self) -> None:
        if not self.begun and self._lines is not None:
            self._lines.begin()
        self.begun = True

    def _flush(self) -> None:
        record, late = self._record, self._late
        self._record = self._late = None
        if record is not None and late is not None and self._lines is not None:
            self._lines.write({"kind": "iteration", **record.summary(), **late})

    def _memory(self) -> dict[str, int]:
        """Bytes held now, of the process and of the device, and room for edges in each."""
        now = time.perf_counter()
        if now - self._sampled > SAMPLED:
            self._resident, self._sampled = resident_bytes(), now
        session = self._session
        assert session is not None, "iterations lie between begin and end"
        found = {"process": self._resident}
        if not session.device.reads_host:
            found["device"] = session.device.used_bytes
        if (holdings := session.holdings) is not None:
            found |= {"edges": holdings.edges, "edges_host": holdings.host, "edges_device": holdings.device}
            found["chunk"] = holdings.chunk
        return found


def _told(session: Session) -> dict[str, Any]:
    """What a session says about what it runs on."""
    config, graph, device = session.config, session.graph, session.device
    return {
        "graph": {
            "path": graph.path,
            "vertices": graph.vertices,
            "edges": graph.edges,
            "directed": graph.directed,
            "bytes": graph.file_bytes,
        },
        "options": config.facts(changed=True),
        "threads": config.thread_count,
        "device": {"name": device.name, **device.facts()},
        "budget": {"host": config.memory_bytes, "device": device.own_bytes, "device_edges": config.device_edge_memory},
        "machine": hardware_info.facts(),
        "rates": asdict(session.rates),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }
