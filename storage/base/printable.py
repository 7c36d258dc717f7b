"""Text of an input in printable form: terminal control sequences and invisible characters are escaped."""

from __future__ import annotations

KEPT = "\n\t"
"""Unprintable characters that lines and messages of ours have themselves, to be printed as they are."""


def printable(text: str, keep: str = "") -> str:
    """The text with every character that is not printable as Python escapes it (``\\x1b``); ``keep``: those that stay.

    Escaped are control characters, marks that change the direction of writing, line separators, lone surrogates.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode("ascii") for c in text)
