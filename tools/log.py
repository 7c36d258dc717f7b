"""Owns where log lines go: warnings to stderr, with --verbose what else the floors below say; and a run's log.txt.

Everything logs under `penstock.storage`, `penstock.transfer`, `penstock.engine`, `penstock.tools`, to nobody unless
asked: a program that imports Penstock attaches what it likes. A command attaches one handler, which replaces that of
the command before in the same process. Refuses to change what is logged, and where others send it.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from penstock.storage.base.errors import RunError

if TYPE_CHECKING:
    from io import FileIO

from penstock.storage.base.printable import KEPT, printable

LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)
"""Without --verbose, with it, and with it twice."""


class _ToStderr(logging.StreamHandler[TextIO]):
    """Writes to what is stderr at the moment."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:
        """Return stderr."""
        return sys.stderr

    @stream.setter
    def stream(self, stream: TextIO) -> None:
        raise AttributeError("this handler writes to stderr only")


class _Threshold(logging.Filter):
    """Lets pass what is at least as grave, whatever the logger lets pass for the sake of others."""

    def __init__(self, level: int) -> None:
        super().__init__()
        self.level = level

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is as grave."""
        return record.levelno >= self.level


class _Printable(logging.Formatter):
    """Formats records so that what is in them of an input may be printed."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return printable(super().format(record), KEPT)


def show(verbose: int = 0, *, quiet: bool = False) -> None:
    """Send log lines to stderr from now on: warnings, with `verbose` information, with 2 details; quiet: nothing."""
    logger = logging.getLogger("penstock")
    for handler in [handler for handler in logger.handlers if isinstance(handler, _ToStderr)]:
        logger.removeHandler(handler)
    level = LEVELS[min(verbose, len(LEVELS) - 1)]
    logger.setLevel(level)
    if quiet and not verbose:
        return
    handler = _ToStderr()
    handler.addFilter(_Threshold(level))
    told = "%(asctime)s %(name)s: %(message)s" if verbose else "penstock: %(message)s"
    handler.setFormatter(_Printable(told))
    logger.addHandler(handler)


class LogFile(logging.Handler):
    """Appends whole lines to an open file; the first failure ends that, and is told on stderr, once."""

    def __init__(self, path: Path, file: FileIO) -> None:
        super().__init__()
        self._path, self._file, self._end = path, file, 0
        self._error: OSError | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, unless one before could not be written."""
        if self._error is not None:
            return
        line = (self.format(record) + "\n").encode(errors="backslashreplace")
        try:
            written = self._file.write(line)
            if written != len(line):
                self._file.truncate(self._end)
                raise OSError(f"{written or 0} of {len(line)} bytes were taken")
            self._end += len(line)
        except OSError as error:
            self._error = error
            logging.getLogger("penstock.tools.log").warning(
                "%s could not be written: %s; the run goes on without it", self._path, error.strerror or error
            )

    def trouble(self) -> dict[str, str]:
        """What is to be told of it in the run's record: nothing where all lines were written."""
        error = self._error
        return {} if error is None else {"log_error": str(error.strerror or error)}


@contextmanager
def to_file(path: Path) -> Iterator[LogFile]:
    """Let everything that `penstock.*` logs go to a new file too, from INFO upwards.

    Raises:
        RunError: the file cannot be made.
    """
    logger = logging.getLogger("penstock")
    try:
        file = path.open("xb", buffering=0)
    except OSError as error:
        raise RunError(f"{path} could not be made: {error.strerror}; free space and retry") from error
    with file:
        keeper = LogFile(path, file)
        keeper.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        level = logger.level
        logger.setLevel(min(logger.getEffectiveLevel(), logging.INFO))
        logger.addHandler(keeper)
        try:
            yield keeper
        finally:
            logger.removeHandler(keeper)
            logger.setLevel(level)
