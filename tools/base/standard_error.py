"""Lines on stderr: where progress bars are drawn, above them, so that no line is written into a bar.

Everything that a command says there goes through `write_line`: notes, log lines, what becomes of a signal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

Write = Callable[[str], None]


class _Present:
    """What writes lines where bars are drawn, if they are."""

    above: Write | None = None


@contextmanager
def lines_above(write: Write) -> Iterator[None]:
    """Let `write` write the lines of this process within the block; any thread may call it."""
    before, _Present.above = _Present.above, write
    try:
        yield
    finally:
        _Present.above = before


def write_line(text: str) -> None:
    """Write a line on stderr, above the bars if there are some; any thread may call it."""
    if _Present.above is None:
        click.echo(text, err=True)
    else:
        _Present.above(text)
