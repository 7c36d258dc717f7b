"""The errors a user can meet; a message names the thing, its value and the way out.

Messages spell options as the command line does (``--host-memory 1GiB``). Functions for Python programs are marked
`for_python`: what they raise spells them as keywords (``host_memory="1GiB"``), unless the command line called them.

There are two kinds, because a shell tells them apart: what the user gave was wrong (exit code 2), or a run that was
rightly asked for failed (exit code 1). Everything else is a bug and shows a traceback.

Text of an input is shown short, with terminal control sequences and invisible characters escaped (`brief`,
`printable`).
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import ParamSpec, TypeVar

KEPT = "\n\t"
"""Unprintable characters that texts of several lines have themselves, to be printed as they are."""
_NEXT_LINE = "\n    "
"""Between two lines of a message."""

QUOTED = 200
"""Characters of an input that a message quotes at most."""


def brief(text: str, most: int = QUOTED) -> str:
    """The first characters of a text, at most so many, and three points where it is longer."""
    return text if len(text) <= most else text[:most] + " ..."


def printable(text: str, keep: str = "") -> str:
    """The text with every character that is not printable as Python escapes it (``\\x1b``); ``keep``: those that stay.

    Escaped are control characters, marks that change the direction of writing, line separators, lone surrogates.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode("ascii") for c in text)


def printable_message(text: str) -> str:
    """The same of a message. Its lines but the first are indented; other ends of lines are of what it quotes."""
    return _NEXT_LINE.join(printable(line, "\t") for line in text.split(_NEXT_LINE))


Given = ParamSpec("Given")
Answer = TypeVar("Answer")


class PenstockError(Exception):
    """Base of every error whose message is complete and meant for the user, at a terminal too: it is printable."""

    def __str__(self) -> str:
        """The message."""
        return printable_message(super().__str__())


class InputError(PenstockError):
    """What the user gave (a file, an option, a value) cannot be used; the command exits with 2."""


def installing(extra: str) -> str:
    """How to install an extra of Penstock, which no package index has."""
    return f"pip install '.[{extra}]' in Penstock's sources"


PROCESS_MIB = 150
"""MiB of memory that interpreter, libraries and kernels take at most beside --host-memory, on cores (measured)."""


def peak_to_expect(mib: int, processes: int = 1) -> str:
    """What follows a budget of so many MiB in a message: the peak of the process that has it, or of several."""
    more = PROCESS_MIB * processes
    return f"; expect a peak of {mib + more}MiB, since interpreter and libraries take up to {more}MiB beside it"


class BudgetError(InputError):
    """A memory budget below the least that works.

    option: the one that gives the budget. reason: the sum that shows it. least_mib: MiB that this sum needs.
    otherwise: what else would help, from a comma on. processes: how many divide a budget of host memory.
    """

    def __init__(self, option: str, reason: str, least_mib: int, otherwise: str = "", processes: int = 1) -> None:
        peak = peak_to_expect(least_mib, processes) if option == "--host-memory" else ""
        super().__init__(f"{reason}: give {option} {least_mib}MiB or more{otherwise}{peak}")
        self.option, self.reason, self.least_mib, self.otherwise = option, reason, least_mib, otherwise
        self.processes = processes

    def __reduce__(self) -> tuple[type[BudgetError], tuple[str, str, int, str, int]]:
        return type(self), (self.option, self.reason, self.least_mib, self.otherwise, self.processes)


class DamagedError(InputError):
    """A graph file that is one, but not as it was written: cut short, changed, or without some of its shards."""


class RunError(PenstockError):
    """A run failed underway (a read error, a checksum, a full disk); the command exits with 1."""


def refusal(error: OSError, message: str) -> PenstockError:
    """The error for what the system refuses: a RunError where the disk is full or fails, else an InputError."""
    failed = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO)
    return RunError(f"{message}; free space and retry") if failed else InputError(message)


class UnsyncedError(RunError):
    """A file is whole and has its name, but its folder could not be synced: a power failure may undo that."""


_FLAGS = frozenset(
    {
        "renumber",
        "bipartite",
        "undirected",
        "symmetrize",
        "drop_self_loops",
        "direct_io",
        "resume",
        "force",
        "largest_component",
        "strong",
        "skip_missing",
        "drop_isolated",
    }
)
"""Options without a value."""
_WORDS = "auto|cpu|emulated|both|out|push|pull|sync|async|first|sum|min|max|degree|hubs|paths"
_VALUE = rf"\d[\d.]*(?: ?[KMGT]i?B\b)?%?|cuda:\d+|(?:{_WORDS})\b"
_OPTION = re.compile(rf"(?<![\w-])--([a-z](?:[a-z-]*[a-z])?)(?: ((?:{_VALUE})))?")
_COLUMNS = re.compile(r"--columns ([^\s,?]+),([^\s,?]+)(?:,([^\s,?]+))?")
_on_command_line: ContextVar[bool] = ContextVar("on_command_line", default=False)


def as_keywords(message: str) -> str:
    """A message with its options as Python's keywords: ``--renumber`` becomes ``renumber=True``."""
    return _OPTION.sub(_keyword, _COLUMNS.sub(_column_keywords, message))


def _keyword(found: re.Match[str]) -> str:
    name, value = found[1].replace("-", "_"), found[2]
    if name == "columns":
        return "source, target and weight"
    if value is not None:
        number = re.fullmatch(r"\d+(\.\d+)?", value)
        return f"{name}={value if number else repr(value)}".replace("'", '"')
    if name in _FLAGS:
        return f"{name}=True"
    return f"{name.removeprefix('no_')}=False" if name.startswith("no_") else name


def _column_keywords(found: re.Match[str]) -> str:
    roles = zip(("source", "target", "weight"), found.groups(), strict=True)
    return ", ".join(f'{role}="{name}"' for role, name in roles if name)


def for_python(function: Callable[Given, Answer]) -> Callable[Given, Answer]:
    """Make what a function raises spell options as keywords, as its callers give them."""

    @wraps(function)
    def spelled(*given: Given.args, **named: Given.kwargs) -> Answer:
        try:
            return function(*given, **named)
        except PenstockError as error:
            if not _on_command_line.get() and error.args:
                error.args = (as_keywords(str(error.args[0])), *error.args[1:])
            raise

    return spelled


@contextmanager
def on_command_line() -> Iterator[None]:
    """While the command line runs, options stay spelled as it takes them."""
    token = _on_command_line.set(True)
    try:
        yield
    finally:
        _on_command_line.reset(token)
