"""Lines on stderr, above bars where some are drawn; where log lines go: there, with --verbose more; a run's log.txt.

Everything logs under `penstock.*`, and has no handler unless a program that imports Penstock attaches one. A command
attaches one handler, which replaces that of the command before in the same process.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import click
from penstock.storage.base.errors import RunError, printable_message

Write = Callable[[str], None]


_above: Write | None = None
"""What writes lines where bars are drawn, if they are."""


@contextmanager
def lines_above(write: Write) -> Iterator[None]:
    """Let `write` write the lines of this process within the block; any thread may call it."""
    global _above
    before, _above = _above, write
    try:
        yield
    finally:
        _above = before


def leave_terminal() -> None:
    """Give a terminal its cursor back where bars are drawn, for a process that ends without their end."""
    if _above is not None:
        with suppress(OSError):
            os.write(2, b"\r\x1b[2K\x1b[?25h")


def write_line(text: str) -> None:
    """Write a line on stderr, above the bars if there are some; any thread may call it.

    A line that stderr does not take, because its disk is full, is lost: the work goes on, and the exit code is its own.
    """
    if _above is not None:
        _above(text)
        return
    try:
        click.echo(text, err=True)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise


_LOGGER = logging.getLogger("penstock")
_PROGRESS = logging.getLogger("penstock.progress")
LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)
"""Without --verbose, with it, and with it twice."""


class _ToStderr(logging.Handler):
    """Writes to what is stderr at the moment, above the bars if there are some."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        try:
            write_line(self.format(record))
        except Exception:  # as every handler of the standard library
            self.handleError(record)


class _Printable(logging.Formatter):
    """Formats records so that what is in them of an input may be printed."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return printable_message(super().format(record))


def show(verbose: int = 0, *, quiet: bool = False) -> None:
    """Send log lines to stderr from now on: warnings, with `verbose` information, with 2 details; quiet: nothing."""
    logger = _LOGGER
    for handler in [handler for handler in logger.handlers if isinstance(handler, _ToStderr)]:
        logger.removeHandler(handler)
    level = LEVELS[min(verbose, len(LEVELS) - 1)]
    logger.setLevel(level)
    if quiet and not verbose:
        return
    handler = _ToStderr()
    handler.setLevel(level)
    told = "%(asctime)s %(name)s: %(message)s" if verbose else "penstock: %(message)s"
    handler.setFormatter(_Printable(told))
    logger.addHandler(handler)


def teller(*, said: bool) -> Callable[[str], None]:
    """Return what takes a line of progress: for a run's log.txt, with --verbose for stderr, and if `said` there anyway.

    The line is written once wherever it goes.
    """

    def tell(line: str) -> None:
        _PROGRESS.info("%s", line)
        shown = any(isinstance(handler, _ToStderr) and handler.level <= logging.INFO for handler in _LOGGER.handlers)
        if said and not (shown and _PROGRESS.isEnabledFor(logging.INFO)):
            write_line(f"penstock: {line}")

    return tell


class LineFile:
    """A new file that takes whole lines: of one that the disk does not take whole nothing is left."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb", buffering=0)
        self._end = 0

    def write(self, line: str) -> None:
        """Append a line. Raises OSError."""
        text = (line + "\n").encode(errors="backslashreplace")
        written = self._file.write(text)
        if written != len(text):
            self._file.truncate(self._end)
            raise OSError(f"{written or 0} of {len(text)} bytes were taken")
        self._end += len(text)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class LogFile(logging.Handler):
    """Appends lines to a file; the first failure ends that, and is told on stderr, once."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path, self._file = path, LineFile(path)
        self._error: OSError | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, unless one before could not be written."""
        if self._error is not None:
            return
        try:
            self._file.write(self.format(record))
        except OSError as error:
            self._error = error
            logging.getLogger("penstock.tools.base.log").warning(
                "%s could not be written: %s; the run goes on without it", self._path, error.strerror or error
            )

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()

    def trouble(self) -> dict[str, str]:
        """What the run's record says of it: nothing where all lines were written."""
        error = self._error
        return {} if error is None else {"log_error": str(error.strerror or error)}


@contextmanager
def to_file(path: Path) -> Iterator[LogFile]:
    """Let everything that `penstock.*` logs go to a new file too, from INFO upwards.

    Raises:
        RunError: the file cannot be made.
    """
    try:
        keeper = LogFile(path)
    except OSError as error:
        raise RunError(f"{path} could not be made: {error.strerror}; free space and retry") from error
    keeper.setFormatter(_Printable("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger = _LOGGER
    level = logger.level
    with closing(keeper):
        logger.setLevel(min(logger.getEffectiveLevel(), logging.INFO))
        logger.addHandler(keeper)
        try:
            yield keeper
        finally:
            logger.removeHandler(keeper)
            logger.setLevel(level)
