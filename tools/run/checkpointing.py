"""`--checkpoint`, `--checkpoint-every` and `--resume`, and how a run that keeps checkpoints ends at a signal."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.storage.base.errors import InputError
from penstock.tools.base.options import FOLDER, option, option_group
from penstock.tools.base.signals import Stopped, deferring_signals, saying

if TYPE_CHECKING:
    from penstock.engine.checkpoint.checkpoint import Checkpoints
    from penstock.engine.state.records import IterationRecord
    from penstock.engine.state.result import Result
NONE_KEPT = "--checkpoint DIR would keep its state"
Steps = Generator["IterationRecord", None, "Result"]


@dataclass(frozen=True)
class Checkpointing:
    """Where checkpoints are kept, how often, and whether to go on from one.

    follows: whether another process, rank 0, keeps them, and this one only goes on from one.
    """

    folder: Path | None = None
    every: str | None = None
    resume: bool = False
    follows: bool = False

    def check(self, programs: int) -> None:
        """Refuse, before the run, what cannot be. Raises InputError."""
        if self.folder is None:
            for name, given in (("--checkpoint-every", self.every is not None), ("--resume", self.resume)):
                if given:
                    raise InputError(f"{name} needs --checkpoint DIR, the folder of the checkpoints")
        elif programs > 1:
            raise InputError(
                f"--checkpoint keeps the state of one program, and this job has {programs}: give each a job of its own"
            )
        opened = self.open()
        if opened is not None and not self.follows:
            opened.check()

    @property
    def has_last_state(self) -> bool:
        """Whether the folder has the last state of a run that has ended, from which one with other limits goes on."""
        if self.folder is None:
            return False
        from penstock.storage.checkpoint.folder import CheckpointFolder

        return CheckpointFolder(self.folder).is_ended

    def open(self) -> Checkpoints | None:
        """The run's checkpoints, None without --checkpoint. Raises InputError for an interval that is none."""
        if self.folder is None:
            return None
        from penstock.engine.checkpoint.checkpoint import Checkpoints

        return Checkpoints(self.folder, self.every, resume=self.resume, follows=self.follows)


checkpointing = option_group(
    "checkpointing",
    Checkpointing,
    option("--checkpoint", "folder", type=FOLDER, help="Keep the run's state in this folder, the last two times."),
    option(
        "--checkpoint-every",
        "every",
        metavar="N|TIME",
        help="Iterations (10) or time (30s, 5min, 2h) between two checkpoints; 5min. Also at Ctrl-C and SIGTERM.",
    ),
    option(
        "--resume",
        is_flag=True,
        help="Go on from the newest checkpoint, if there is one; also with a higher --max-iter or a lower --tol.",
    ),
    title="Checkpoints",
)


class Followed:
    """The records of a run's iterations; once they are over, `result` is what the run returned."""

    result: Result

    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def __iter__(self) -> Iterator[IterationRecord]:
        self.result = yield from self._steps


def ending_at_signals(steps: Steps, checkpoints: Checkpoints | None, note: Callable[[str], None]) -> Steps:
    """Pass a run's records on; tell where it goes on, and end it at a signal, after its checkpoint.

    Raises Stopped once the checkpoint that a signal asked for was made, or could not be.
    """
    if checkpoints is None:
        return (yield from steps)

    def words() -> str:
        return f"keeping a checkpoint (iteration {checkpoints.ran + 1:,})"

    main = threading.current_thread() is threading.main_thread()
    listening: AbstractContextManager[list[int]] = nullcontext([])
    if main:
        listening = deferring_signals(checkpoints.ask, words)
    told = 0
    with listening as signals:
        followed = Followed(steps)
        for record in followed:
            while told < len(checkpoints.notes):
                note(checkpoints.notes[told])
                told += 1
            kept = record.checkpoint
            if signals and kept is not None:
                steps.close()
                raise Stopped(signals[0], _left(checkpoints, kept.trouble))
            yield record
        return followed.result


@contextmanager
def told_what_lacks(checkpoints: Checkpoints | None) -> Iterator[None]:
    """Let a signal that ends a run without checkpoints say that there are none, and what would keep them."""
    if checkpoints is not None:
        yield
        return
    try:
        with saying(lambda: f"stopping without a checkpoint ({NONE_KEPT})"):
            yield
    except Stopped as stop:
        stop.hint = NONE_KEPT
        raise


def _left(checkpoints: Checkpoints, trouble: str) -> str:
    """What a run that was stopped leaves behind, in words."""
    numbers = checkpoints.folder.numbers()
    if not numbers:
        return f"there is no checkpoint: {trouble}"
    found = f"the same command with --resume goes on after iteration {numbers[-1]} ({checkpoints.folder.path})"
    return f"{trouble}; {found}" if trouble else found
