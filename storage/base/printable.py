"""Text of an input as messages show it: short, terminal control sequences and invisible characters escaped."""

from __future__ import annotations

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
