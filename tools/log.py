"""Owns where log lines go: warnings to stderr, with --verbose what else the floors below say of themselves.

Everything logs under `penstock.storage`, `penstock.transfer`, `penstock.engine`, `penstock.tools`, to nobody unless
asked: a program that imports Penstock attaches what it likes. A command attaches one handler, which replaces that of
the command before in the same process. Refuses to change what is logged, and where others send it.
"""

from __future__ import annotations

import logging
import sys
from typing import TextIO

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
    handler.setFormatter(logging.Formatter(told))
    logger.addHandler(handler)
