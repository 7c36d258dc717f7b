"""The files of a run's record, and how a new record takes the place of an earlier one in the same folder.

    DIR/.penstock-next/    the record of a run that has not begun; nothing of the earlier record is touched
    DIR/.penstock-begun/   the same once the run has begun: this record counts, and its files move up into DIR

The rename from the first name to the second replaces the record. Whatever needs space is done before it; only renames
follow. Where a crash interrupts these, the next run in the folder completes them. The caller holds the folder's lock.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
from pathlib import Path

from penstock.storage.base.atomic import flush, keep_debris, register_debris, remove_debris
from penstock.storage.base.errors import RunError

JOB, RUN, RATES, LOG, TRACE, METRICS = "job.toml", "run.json", "rates.json", "log.txt", "trace.json", "metrics.jsonl"
OWN = (JOB, RATES, LOG, TRACE, METRICS, RUN)
"""The files of a record. A run that replaces another in its folder replaces these; answers only by their names."""
MARK = "penstock_run"
LOCK = ".penstock-run.lock"
_NEXT, _BEGUN = ".penstock-next", ".penstock-begun"
_DROPPED, _KEPT = "replaced", "earlier"
"""In either: where the files of the earlier record go, to be removed or to be kept as `earlier-N`."""
_LEFT = re.compile(r"\.penstock-.*|\..*\.partial-\d+-[0-9a-f]+.*")
"""What a run that was killed may leave, besides its record."""


def status(folder: Path) -> str | None:
    """How the run in a folder stands; None where it is no run directory, so that nothing in it may be replaced."""
    for file in (folder / _BEGUN / RUN, folder / RUN):
        try:
            facts = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(facts, dict) and MARK in facts:
            return str(facts.get("status"))
    return None


def is_empty(folder: Path) -> bool:
    """Whether there is nothing in a folder but what a run that was killed left before it had a record."""
    return all(_LEFT.fullmatch(path.name) for path in folder.iterdir())


class RecordFiles:
    """Where the files of a run's record are written: its folder, or a place in it until the run has begun.

    keep: whether the earlier record is kept as `earlier-N` rather than removed.
    """

    def __init__(self, folder: Path, *, keep: bool = False) -> None:
        self.folder = folder
        self._old = _KEPT if keep else _DROPPED
        self.replacing = False
        """Whether an earlier record is there, which stays until `begin`."""

    @property
    def place(self) -> Path:
        """Where to write now."""
        return self.folder / _NEXT if self.replacing else self.folder

    def open(self) -> None:
        """Complete or remove what a run that was killed left, and find out whether there is an earlier record.

        Raises:
            RunError: the folder cannot be written.
        """
        next_one = self.folder / _NEXT
        try:
            if (self.folder / _BEGUN).exists():
                _move_up(self.folder)
            shutil.rmtree(next_one, ignore_errors=True)
            self.replacing = bool(_those_there(self.folder))
            if not self.replacing:
                return
            register_debris(next_one)
            (next_one / self._old).mkdir(parents=True)
            if (self.folder / RUN).exists():  # it stays where it is until the new one replaces it by a rename
                shutil.copy2(self.folder / RUN, next_one / self._old / RUN)
        except OSError as error:
            remove_debris(next_one)
            raise RunError(f"{self.folder} cannot be written: {error.strerror}; free space, or name another") from error

    def begin(self) -> None:
        """Let this record take the place of the earlier one.

        Raises:
            RunError: it could not; the earlier one stays, or the next run in the folder completes the replacement.
        """
        if not self.replacing:
            return
        next_one, begun = self.folder / _NEXT, self.folder / _BEGUN
        try:
            self._replace(next_one, begun)
        except KeyboardInterrupt:  # a signal: what has begun is completed
            if begun.exists():
                _move_up(self.folder)
            self.replacing = next_one.exists()
            raise
        self.replacing = False

    def _replace(self, next_one: Path, begun: Path) -> None:
        try:
            flush(next_one)
            next_one.rename(begun)
        except OSError as error:
            raise RunError(f"the run in {self.folder} could not be replaced: {error.strerror}") from error
        keep_debris(next_one)
        try:
            _move_up(self.folder)
        except OSError as error:
            raise RunError(
                f"the run in {self.folder} was not replaced wholly: {error.strerror}; the next run in it completes that"
            ) from error

    def drop(self) -> None:
        """Remove what was written of this record; an earlier one that it did not replace stays."""
        if self.replacing:
            remove_debris(self.folder / _NEXT)
            return
        for name in OWN:
            (self.folder / name).unlink(missing_ok=True)


def _move_up(folder: Path) -> None:
    """Move a record that has begun into its folder, and the earlier one out of it; also from wherever it was left.

    As long as the new run.json is not in its place, all files of the record that are in the folder are the earlier
    run's; from then on the new run's.
    """
    begun = folder / _BEGUN
    flush(folder)
    if (begun / RUN).exists():
        kept = next(begun / name for name in (_KEPT, _DROPPED) if (begun / name).is_dir())
        for path in _those_there(folder):
            if path.name != RUN:
                path.replace(kept / path.name)
        (begun / RUN).replace(folder / RUN)
    for path in _those_there(begun):
        path.replace(folder / path.name)
    if (begun / _KEPT).is_dir():
        number = next(n for n in itertools.count(1) if not (folder / f"earlier-{n}").exists())
        (begun / _KEPT).rename(folder / f"earlier-{number}")
    flush(folder)
    shutil.rmtree(begun)


def _those_there(folder: Path) -> list[Path]:
    """The files of a record that are in a folder."""
    return [path for path in (folder / name for name in OWN) if path.exists()]
