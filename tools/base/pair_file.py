"""Reads files of pairs of vertex ids: a pair on every line, with a comma, a semicolon or blanks between."""

from __future__ import annotations

import csv
from pathlib import Path

from penstock.storage.base.errors import InputError
from penstock.tools.base.find_program import is_negative, read_vertex

HEADS = (("source", "target"), ("vertex", "other"), ("u", "v"), ("from", "to"))
"""First lines that name columns."""

Pair = tuple[int | str, int | str]


def read_pairs(path: Path) -> list[Pair]:
    """Read pairs of ids; a first line that names the columns is left out, and so are columns after the second.

    Raises InputError for a file that cannot be read, that has no pair, or a line that is none.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--pairs {path}: {error}") from error
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        between = next((mark for mark in ",;\t" if mark in line), None)
        parts = (
            line.split() if between is None else [one.strip() for one in next(csv.reader([line], delimiter=between))]
        )
        if number == 1 and tuple(part.lower() for part in parts[:2]) in HEADS:
            continue
        if len(parts) < 2 or not parts[0] or not parts[1]:
            raise InputError(f"{path}:{number}: {line!r} is no pair; write two ids, as in 3,17")
        if is_negative(parts[0]) or is_negative(parts[1]):
            raise InputError(f"{path}:{number}: {line!r} has a negative number, and no vertex has such an id")
        found.append((read_vertex(parts[0]), read_vertex(parts[1])))
    if not found:
        raise InputError(f"--pairs {path} has no pair; write two ids on each line")
    return found
