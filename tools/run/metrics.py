"""`--metrics FILE`: JSON lines that a run writes as it goes.

The first line of a program (`"kind": "job"`) says what runs where, with which options, rates and budgets; one follows
for every iteration; the last one is the result's, or says how the run failed. Several programs of one job follow each
other. A killed run leaves whole lines, a full disk ends the run. A line is an iteration late, because the clock of a
device is read only then.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.storage.base import hardware_info
from penstock.storage.base.atomic import check_target, debris, partial_name
from penstock.storage.base.budget import resident_bytes
from penstock.storage.base.errors import InputError, PenstockError, RunError
from penstock.tools.base.log import LineFile
from penstock.tools.base.options import OUTPUT, option, option_group
from penstock.tools.base.output import plain

if TYPE_CHECKING:
    from penstock.engine.session import Session
    from penstock.engine.state.records import IterationRecord

FORMAT = 1
SAMPLED = 0.05
"""Seconds for which a reading of the process's memory serves: asking takes as long as a small iteration."""


@dataclass(frozen=True)
class Watching:
    """Where a run writes what it did: lines of metrics, a trace."""

    metrics: Path | None = None
    trace: Path | None = None


watching = option_group(
    "watching",
    Watching,
    option(
        "--metrics", type=OUTPUT, help="Write a JSON line for every iteration, as it goes; penstock report reads it."
    ),
    option("--trace", type=OUTPUT, help="Write what ran when, for ui.perfetto.dev or chrome://tracing."),
    title="Looking at it",
)


@contextmanager
def open_metrics(path: Path | None, *, force: bool = False) -> Iterator[Metrics]:
    """Yield the metrics of a job. A failure inside becomes the last line. Raises InputError or RunError.

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
        metrics = Metrics(lines)
        try:
            yield metrics
        except BaseException as error:
            metrics.fail(error)
            if isinstance(error, InputError) and not metrics.begun:
                place.unlink(missing_ok=True)
            raise
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

    def __init__(self, lines: _Lines | None) -> None:
        self._lines = lines
        self._session: Session | None = None
        self._late: dict[str, Any] | None = None
        self._record: IterationRecord | None = None
        self._began = self._sampled = 0.0
        self._resident = 0
        self.begun = False
        """Whether an iteration is over, or a program."""

    def begin(self, session: Session, facts: Mapping[str, Any]) -> None:
        """Begin a program; facts: its name and parameters, and what the caller knows beside what the session tells."""
        self._session, self._began = session, time.perf_counter()
        if self._lines is not None:
            self._lines.write({"kind": "job", "format": FORMAT, **facts, **_told(session)})

    def note(self, record: IterationRecord) -> None:
        """Take an iteration that is over; the line of the one before is written."""
        if self._lines is None:
            return
        self._begin()
        self._flush()
        self._record = record
        self._late = {"elapsed": time.perf_counter() - self._began, "memory": self._memory()}

    def end(self, facts: Mapping[str, Any]) -> None:
        """End a program; facts: what is said of its result."""
        if self._lines is not None:
            self._begin()
            self._flush()
            self._lines.write({"kind": "result", **facts})
        self._session = None

    def fail(self, error: BaseException) -> None:
        """End a program that did not reach its end; nothing to do between two programs."""
        if self._lines is not None and self._session is not None:
            self._flush()
            told = str(error) if isinstance(error, PenstockError | KeyboardInterrupt) else ""
            self._lines.write({"kind": "failed", "error": told or f"{type(error).__name__}: {error}"})
        self._session = None

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
        if session.device is not None:
            found["device"] = session.device.used_bytes
        if (holdings := session.holdings) is not None:
            found |= {"edges": holdings.edges, "edges_host": holdings.host, "edges_device": holdings.device}
            found["chunk"] = holdings.chunk
        return found


def _told(session: Session) -> dict[str, Any]:
    """What a session says about what it runs on."""
    config, graph, device = session.config, session.graph, session.device
    defaults = type(config)()
    changed = {
        entry.name: getattr(config, entry.name)
        for entry in fields(config)
        if entry.name != "rates" and getattr(config, entry.name) != getattr(defaults, entry.name)
    }
    held = None if device is None else device.memory_bytes
    return {
        "graph": {
            "path": graph.path,
            "vertices": graph.vertices,
            "edges": graph.edges,
            "directed": graph.directed,
            "bytes": graph.file_bytes,
        },
        "options": changed,
        "threads": config.thread_count,
        "device": {"name": "cpu", "kind": "host"} if device is None else {"name": device.name, **device.facts()},
        "budget": {"host": config.memory_bytes, "device": held, "device_edges": config.device_edge_memory},
        "machine": hardware_info.facts(),
        "rates": asdict(session.rates),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }
