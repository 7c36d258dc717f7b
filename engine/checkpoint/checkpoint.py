"""The checkpoints of a run: when one is due, what is in it, how a run continues from it.

    iteration ends -> due? -> fields, frontier, numbers, attributes into a file -> the one before the last goes
    start -> newest whole file -> the same run? -> attributes -> the phase that was at work -> its loop and its states

A checkpoint is made between two iterations, where a run is smallest (`snapshot.py`). Storage owns the file
(`storage/checkpoint/file.py`); refused is another run's (`run_fingerprint.py`). That a vertex program's state between
supersteps is all there is to save is Pregel's idea (Malewicz et al., SIGMOD 2010, section 4.2).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from penstock.engine.checkpoint.run_fingerprint import (
    RecordingAttributes,
    differences,
    is_extended,
    may_be_extended,
    reconsider,
    run_fingerprint,
    without_limits,
)
from penstock.engine.checkpoint.snapshot import Fields, RestoredRun, arrays_of, numbers_of, restore
from penstock.engine.program.program import Program, resumable
from penstock.engine.state.records import CheckpointRecord
from penstock.engine.state.state import fields_for
from penstock.storage.base.errors import InputError, PenstockError, UnsyncedError
from penstock.storage.base.measurement import parse_seconds
from penstock.storage.checkpoint.folder import CheckpointFolder

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.execution.loop import Loop
    from penstock.engine.resources.config import Config
    from penstock.storage.checkpoint.file import Checkpoint, Values
    from penstock.storage.format.graph import Graph

_log = logging.getLogger("penstock.engine.checkpoint.checkpoint")
STORY = {"identity", "ran", "level", "attributes", "phase", "phase_identity", "phase_attributes", "loop"}
"""The keys of a checkpoint besides its arrays; see `Checkpoints._told`."""
DEFAULT_SECONDS = 300.0
LEAST_TIMES = 60.0
"""Without an interval of the user's, checkpoints come after so many times what the last one took at the earliest."""


@dataclass(frozen=True)
class CheckpointInterval:
    """How often: after so many iterations, or so many seconds; and at least `times` as long as the last one took.

    That what a checkpoint costs should set how often it comes is Young's (CACM 1974); here it sets how often at most.
    """

    iterations: int | None = None
    seconds: float | None = DEFAULT_SECONDS
    times: float = 0.0

    @classmethod
    def of(cls, every: str | int | None) -> CheckpointInterval:
        """Of 10 or "10" (iterations), "30s", "5min", "2h" or None. Raises InputError."""
        if every is None:
            return cls(times=LEAST_TIMES)
        text = str(every).strip()
        if seconds := parse_seconds(text):
            return cls(seconds=seconds)
        if text.isascii() and text.isdecimal() and int(text) > 0:
            return cls(iterations=int(text), seconds=None)
        raise InputError(f"checkpoint_every is {every!r}; give a number of iterations (10) or a time (30s, 5min, 2h)")

    def due(self, iterations: int, seconds: float, last_seconds: float) -> bool:
        """Whether a checkpoint is due so many iterations and seconds after the last one, which took `last_seconds`."""
        if self.iterations is not None:
            return iterations >= self.iterations
        return seconds >= max(self.seconds or 0.0, self.times * last_seconds)


class Checkpoints:
    """The checkpoints of one run, in a folder of their own.

    As a context manager it holds the folder's lock from the first `begin` to the end of the outermost block.

    Parameters
    ----------
    folder : Path or str
        Is created if it is missing. Without `resume`, a folder that holds checkpoints is refused.
    every : str or int, optional
        A number of iterations (10) or a time ("30s", "5min", "2h"). Default: every 5 minutes, and at most a sixtieth
        of the run's time.
    resume : bool
        Continue from the newest whole checkpoint; start anew if there is none.
    follows : bool
        Another rank keeps the checkpoints; this one only continues from one.

    Attributes
    ----------
    notes : list of str
        Where the run continues, or that it starts.
    ran, began : int
        Iterations in all, with those before the run was resumed; iterations before it was resumed.
    last : CheckpointRecord or None
        The record of the last attempt.

    Raises
    ------
    InputError
        `every` is neither a number of iterations nor a time.

    References
    ----------
    Malewicz et al., "Pregel", SIGMOD 2010, section 4.2: the state of a vertex program between supersteps is all that
    must be saved.
    """

    def __init__(
        self, folder: Path | str, every: str | int | None = None, *, resume: bool = False, follows: bool = False
    ) -> None:
        self.folder = CheckpointFolder(folder)
        self.interval = CheckpointInterval.of(every)
        self.resume, self.follows = resume, follows
        self.notes: list[str] = []
        self.ran = self.began = 0
        self.last: CheckpointRecord | None = None
        self._asked = self._anew = self._extended = self._done = False
        self._since, self._at = 0, time.perf_counter()
        self._identity: dict[str, Any] = {}
        self._watched: list[RecordingAttributes] = []  # the program, and the phase at work
        self._phase = -1
        self._earlier: list[dict[str, NDArray[Any]]] = []  # what programs ended with that others ran in the stead of
        self._found: tuple[Checkpoint | None, list[str]] | None = None
        self._from: RestoredRun | None = None
        self._depth = 0

    def __enter__(self) -> Self:
        """Count one more block that uses the folder: the run, or the caller that clears it afterwards."""
        self._depth += 1
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Release the folder with the outermost block; refused input leaves no empty folder."""
        self._depth -= 1
        if not self._depth and not self.follows:
            self.folder.lock.release()
            if kind is not None and issubclass(kind, InputError) and self.ran == self.began:
                self.folder.abandon()

    @property
    def phase(self) -> int:
        """The number of the phase at work, from 0; -1 where there is none."""
        return self._phase

    def ask(self) -> None:
        """Make a checkpoint after this iteration, even if none is due. A signal handler may call this."""
        self._asked = True

    def clear(self) -> None:
        """Remove the run's checkpoints, when its answer is stored. Raises RunError."""
        if not self.follows:
            self.folder.clear()

    def finish(self) -> str:
        """Remove what a run leaves that has ended and whose answer is stored; say what stays.

        The last state of a program stays if it could go on with other limits (`Program.extendable`).

        Returns
        -------
        str
            A line for people; "" where nothing stays.

        Raises
        ------
        RunError
            A file cannot be removed.
        """
        program = self._watched[0].program
        if self.follows or not self._done:
            self.clear()
            return ""
        self.folder.keep_only(self.ran)
        self.folder.set_ended(True)
        ways = {"max_iter": "a higher --max-iter", "tol": "a lower --tol"}
        further = " or ".join(ways[name] for name in program.extendable)
        return f"{self.folder.path} keeps the state after iteration {self.ran}: --resume with {further} goes on from it"

    # How a run begins, or goes on.

    def check(self) -> None:
        """Refuse a folder that holds another run's state, or is in use. Raises InputError."""
        self.folder.lock.check()
        if not self.resume and self.folder.numbers() and not self.folder.is_ended:
            raise InputError(
                f"{self.folder.path} holds checkpoints of a run that did not end: --resume goes on with it; to begin "
                "anew remove them, or name another folder"
            )

    def form_of(self, program: Program, graph: Graph) -> Program | None:
        """Return the form of a program, as it is or lighter, that the newest checkpoint is of; None where none is.

        Raises RunError for a malformed one.
        """
        if not self.resume or self._identity:
            return None
        self._found = self.folder.newest()
        kept, form = self._found[0], program
        if kept is None or kept.story.keys() != STORY:  # which `begin` refuses
            return None
        with RestoredRun(kept).reading():
            name = kept.story["identity"]["program"]["name"]
        while type(form).__qualname__ != name:
            lighter = form.lighter(graph)
            if lighter is None:
                return None
            form = lighter
        return form

    def begin(self, program: Program, graph: Graph, config: Config) -> Program:
        """Find the newest checkpoint and restore the program that was running.

        Call it again for a program that replaces another (`Program.instead`).

        Parameters
        ----------
        program : Program
            The program of the run.
        graph : Graph
            The graph of the run.
        config : Config
            The options of the run.

        Returns
        -------
        Program
            The program to run: this one, or the one that had replaced it.

        Raises
        ------
        InputError
            An attribute of the program cannot be stored or its phases cannot be resumed; the folder cannot be used,
            holds checkpoints without `resume`, holds only damaged ones, or those of another run.
        """
        if program.other_graph_bytes:
            raise InputError(
                f"{type(program).__name__} makes graphs of its own, which a resumed run would not have: run it without "
                "checkpoints"
            )
        if not resumable(program):
            raise InputError(
                f"{type(program).__name__}.phases() takes no `first`, the number of the phase to begin with, so that "
                "it cannot be resumed: add it, as engine/writing_programs.md describes, or run without checkpoints"
            )
        self._watched = [RecordingAttributes.begin(program)]
        if self._identity:
            return program
        self._identity = run_fingerprint(program, graph, config)
        if not self.follows:
            self.folder.prepare()
            self.check()
        self._at = time.perf_counter()
        self._from = self._newest() if self.resume else None
        self._anew = self._from is None
        self._done = self._from is not None and self.folder.is_ended
        return program if self._from is None else self._continued(program, graph, config, self._from)

    def _newest(self) -> RestoredRun | None:
        """Return the newest whole checkpoint, if it is of this run."""
        kept, wrong = self.folder.newest() if self._found is None else self._found
        if kept is None:
            if wrong:
                raise InputError(
                    f"no checkpoint in {self.folder.path} is whole ({'; '.join(wrong)}); remove them to begin anew"
                )
            self.notes.append(f"there is no checkpoint in {self.folder.path}: the run begins")
            return None
        if kept.story.keys() != STORY:
            raise InputError(f"{kept.path} is no checkpoint of a run; remove it")
        program, there, here = self._watched[0].program, kept.story["identity"], self._identity
        resumed = RestoredRun(kept)
        with resumed.reading():
            found = differences(there, here, program)
            self._extended = is_extended(there["program"], here["program"], program)
        if found and self.folder.is_ended:
            self.notes.append(f"{kept.path} is of a run that has ended ({'; '.join(found)}): this one begins")
            return None
        if found:
            raise InputError(
                f"{kept.path} is of another run: {'; '.join(found)}; run as then to go on with it, or name another "
                "--checkpoint folder"
            )
        for one in wrong:
            _log.warning("passed over %s", one)
        self.notes.append(f"goes on from {kept.path}, after iteration {kept.story['ran']}")
        return resumed

    def _continued(self, program: Program, graph: Graph, config: Config, resumed: RestoredRun) -> Program:
        """Return the program that was running, with the attributes that it had."""
        story = resumed.story
        with resumed.reading():
            levels = range(story["level"])
        for level in levels:
            values = fields_for(program, graph.vertices, graph.vertex_dtype)
            for name, array in values.items():
                resumed.fill(f"earlier/{level}/{name}", array)
            wider = self.widen(program, values)
            if wider is None:
                raise resumed.damaged(f"{type(program).__name__} asked for another program then, and does not now")
            program = wider.form(graph, config.mode)
        self._watched = [RecordingAttributes.begin(program)]
        with resumed.reading():
            self._watched[0].restore(story["attributes"])
            self._phase, self.ran = int(story["phase"]), int(story["ran"])
        self.began = self.ran
        return program

    def widen(self, program: Program, values: dict[str, NDArray[Any]]) -> Program | None:
        """Return the result of `program.instead`; if it is a program, store the final values."""
        wider = program.instead(values)
        if wider is not None:
            self._earlier.append(values)
        return wider

    def phases(self, graph: Graph, shared: dict[str, NDArray[Any]]) -> Iterator[Program]:
        """Yield the remaining phases; shared: the program's fields. Raises RunError if they differ from before.

        Fields are restored twice: the program may read them to find its phase, and may initialize them on the way.
        """
        program, resumed = self._watched[0].program, self._from
        first = 0
        if resumed is not None:
            first = self._phase
            resumed.fill_shared(shared)
        self._phase = first - 1
        for phase in program.phases(graph, shared, first) if first else program.phases(graph, shared):
            self._phase += 1
            self._watched[1:] = [RecordingAttributes.begin(phase)]
            if resumed is not None and self._phase == first:
                self._go_on_in(phase, resumed)
                resumed.fill_shared(shared)
            yield phase

    def _go_on_in(self, phase: Program, resumed: RestoredRun) -> None:
        watched, before = self._watched[1], resumed.story["phase_identity"]
        with resumed.reading():
            if without_limits(watched.identity, phase) != without_limits(before, phase):
                raise resumed.damaged(
                    f"phase {self._phase} was {before['name']} and is {type(phase).__name__}, or one with other "
                    "parameters; phases(first) has to begin with the phase of that number"
                )
            watched.restore(resumed.story["phase_attributes"])

    def restore(self, loop: Loop, shared: Fields) -> bool:
        """Restore the first loop, and its fields; return False if it has to start."""
        resumed, self._from = self._from, None
        if resumed is not None:
            with resumed.reading():
                restore(loop, shared, resumed)
            if self._extended:
                reconsider(loop)
        return resumed is not None

    # What is done after every iteration.

    def after(self, loop: Loop, shared: Fields) -> CheckpointRecord | None:
        """Count an iteration, and make a checkpoint if one is due; return its record.

        An error is stored in the record: the run continues, earlier checkpoints remain, and the next attempt is made
        when the next checkpoint is due.
        """
        self.ran += 1
        self._since += 1
        began = time.perf_counter()
        took = 0.0 if self.last is None else self.last.seconds
        last = may_be_extended(self._watched[0].program, loop) and not self._earlier
        self._done = False
        due = last or self._asked or self.interval.due(self._since, began - self._at, took)
        wanted = due and loop.settled and not self.follows
        loop.keep_whole(wanted=wanted)
        if not wanted:
            return None
        size, trouble = 0, ""
        try:
            size = self.folder.write(self.ran, self._told(loop), self._arrays(loop, shared), anew=self._anew)
            self._anew, self._done = False, last
        except PenstockError as error:
            trouble = str(error)
            what = "checkpoint" if isinstance(error, UnsyncedError) else "no checkpoint"
            _log.warning("%s after iteration %d: %s; the run goes on", what, self.ran, trouble)
        self._since, self._at = 0, time.perf_counter()
        self.last = CheckpointRecord(self.folder.file(self.ran), self.ran, size, self._at - began, trouble)
        if size:
            _log.info("checkpoint after iteration %d: %d bytes, %.3f s", self.ran, size, self.last.seconds)
        return self.last

    def _told(self, loop: Loop) -> dict[str, Any]:
        """Everything but the arrays."""
        phase = self._watched[1] if len(self._watched) > 1 else None
        return {
            "identity": self._identity,
            "ran": self.ran,
            "level": len(self._earlier),
            "attributes": self._watched[0].changed(),
            "phase": self._phase,
            "phase_identity": None if phase is None else phase.identity,
            "phase_attributes": {} if phase is None else phase.changed(),
            "loop": numbers_of(loop),
        }

    def _arrays(self, loop: Loop, shared: Fields) -> Iterator[tuple[str, Values]]:
        yield from arrays_of(loop, shared)
        for level, fields in enumerate(self._earlier):
            for name, values in fields.items():
                yield f"earlier/{level}/{name}", values
