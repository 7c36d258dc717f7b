"""Errors spell options as the one who called takes them: as keywords in Python, with dashes on the command line."""

from __future__ import annotations

import pytest
from penstock.storage.base.errors import (
    QUOTED,
    InputError,
    RunError,
    as_keywords,
    brief,
    for_python,
    on_command_line,
    printable,
)


@pytest.mark.parametrize(
    ("typed", "keywords"),
    [
        ("--renumber keeps 3 ids", "renumber=True keeps 3 ids"),
        ("give --host-memory 40MiB or more", 'give host_memory="40MiB" or more'),
        ("--host-memory 1.0 MiB is too small", 'host_memory="1.0 MiB" is too small'),
        ("raise --host-memory", "raise host_memory"),
        ("convert it with --direction both", 'convert it with direction="both"'),
        ("use --mode sync; --threads 2", 'use mode="sync"; threads=2'),
        ("--no-weights drops them", "weights=False drops them"),
        ("--columns a,b", 'source="a", target="b"'),
        ("--columns a,b,c?", 'source="a", target="b", weight="c"?'),
        ("--columns names others", "source, target and weight names others"),
        ("a -- b, x--renumber, ---", "a -- b, x--renumber, ---"),
    ],
)
def test_options_become_keywords(typed: str, keywords: str) -> None:
    assert as_keywords(typed) == keywords
    assert as_keywords(keywords) == keywords


@pytest.mark.parametrize("kind", [InputError, RunError])
def test_whoever_called_reads_his_own_spelling(kind: type[Exception]) -> None:
    @for_python
    def fail(message: str) -> None:
        raise kind(message)

    with pytest.raises(kind, match=r"^renumber=True$"):
        fail("--renumber")
    with on_command_line(), pytest.raises(kind, match=r"^--renumber$"):
        fail("--renumber")


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
