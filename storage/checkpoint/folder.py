"""The folder of a run's checkpoints: their names, how many are kept, which is the newest whole one.

A new one appears whole, and only then is the oldest removed, so that there are always two; a full disk leaves those
that were there. One run at a time uses a folder: `prepare` locks it. Files with other names are not touched.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from penstock.storage.base.atomic import writing
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.base.folder_lock import FolderLock
from penstock.storage.checkpoint.file import Checkpoint, CheckpointError, Values, write_checkpoint

KEPT = 2
LOCK = ".penstock-checkpoint.lock"
ENDED = ".penstock-ended"
"""A file that says that the run whose checkpoint is here has ended, and its answer is stored."""
_NAME = re.compile(r"checkpoint-(\d{10})\.penstock")
_PARTIAL = ".checkpoint-*.partial-*"


class CheckpointFolder:
    """The checkpoints in one folder, each under the number of iterations after which it was made."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.lock = FolderLock(self.path, LOCK, "--checkpoint folder")
        self._made = False

    def prepare(self) -> None:
        """Make the folder where it is missing, lock it, and remove what a killed process left half-written in it.

        The lock lasts until `lock.release`, or as long as this object.

        Raises:
            InputError: it cannot be made, is no folder, is not writable, or another run uses it.
        """
        try:
            self._made = not self.path.exists()
            self.path.mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(
                f"checkpoint folder {self.path} cannot be used: {error.strerror}; name another, in a folder that exists"
            ) from error
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise InputError(f"checkpoint folder {self.path} is not writable; name another")
        self.lock.acquire()
        for partial in self.path.glob(_PARTIAL):
            with suppress(OSError):
                partial.unlink()

    def abandon(self) -> None:
        """Remove the folder again if `prepare` made it and nothing is in it: the run was refused."""
        if self._made:
            with suppress(OSError):
                self.path.rmdir()

    def numbers(self) -> list[int]:
        """The numbers of the checkpoints that are here, whole or not, ascending; none where there is no folder."""
        found = (_NAME.fullmatch(name) for name in (os.listdir(self.path) if self.path.is_dir() else ()))
        return sorted(int(match[1]) for match in found if match)

    def file(self, number: int) -> Path:
        """The file of a checkpoint."""
        return self.path / f"checkpoint-{number:010}.penstock"

    def newest(self) -> tuple[Checkpoint | None, list[str]]:
        """The newest checkpoint that is whole, None where there is none; and what is wrong with those after it."""
        wrong: list[str] = []
        for number in reversed(self.numbers()):
            try:
                return Checkpoint(self.file(number)), wrong
            except CheckpointError as error:
                wrong.append(f"{self.file(number)}: {error}")
            except OSError as error:
                wrong.append(f"{self.file(number)}: {error.strerror or error}")
        return None, wrong

    def write(
        self, number: int, story: dict[str, Any], arrays: Iterable[tuple[str, Values]], *, anew: bool = False
    ) -> int:
        """Keep a checkpoint under a number and the one before it, no others; return its bytes.

        anew: those that are here are of another run, which has ended.

        Raises:
            RunError: it could not be written (or not surely, an UnsyncedError), and those that were here still are; or
                an old one could not be removed.
        """
        size = write_checkpoint(self.file(number), story, arrays)
        self.set_ended(False)
        older = [] if anew else [other for other in self.numbers() if other < number]
        self._remove({*self.numbers()} - {number, *older[1 - KEPT :]})
        return size

    def clear(self) -> None:
        """Remove every checkpoint. Raises RunError."""
        self._remove(self.numbers())
        self.set_ended(False)

    @property
    def is_ended(self) -> bool:
        """Whether the checkpoints are those of a run that has ended."""
        return (self.path / ENDED).exists()

    def set_ended(self, ended: bool) -> None:
        """Note whether the run has ended. Raises RunError."""
        with writing(self.path / ENDED):
            if ended:
                (self.path / ENDED).touch()
            else:
                (self.path / ENDED).unlink(missing_ok=True)

    def keep_only(self, number: int) -> None:
        """Remove every checkpoint but one. Raises RunError."""
        self._remove({*self.numbers()} - {number})

    def _remove(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            try:
                self.file(number).unlink(missing_ok=True)
            except OSError as error:
                raise RunError(f"{self.file(number)} could not be removed: {error.strerror or error}") from error
