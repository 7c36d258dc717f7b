"""What is printed of an input cannot steer a terminal, hide, or begin a line of its own."""

from __future__ import annotations

import pytest
from penstock.storage.base.printable import QUOTED, brief, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("Zürich 東京 🚲", "Zürich 東京 🚲"),
        ("\x1b[31mred\x07", "\\x1b[31mred\\x07"),
        ("a\rb\x7f\x9b0m", "a\\rb\\x7f\\x9b0m"),
        ("two\nlines\u2028three", "two\\nlines\\u2028three"),
        ("\u202egpj.exe", "\\u202egpj.exe"),
        ("\udcff", "\\udcff"),
    ],
)
def test_what_a_terminal_obeys_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(shown) == shown


def test_what_is_ours_stays() -> None:
    assert printable("one\n\ttwo\x1b", keep="\n\t") == "one\n\ttwo\\x1b"


def test_long_text_is_cut() -> None:
    assert brief("é" * QUOTED) == "é" * QUOTED
    assert brief("é" * (QUOTED + 1)) == "é" * QUOTED + " ..."
    assert brief("abc", 2) == "ab ..."
