"""What is made from records: tables of pages (programs from the catalogue, input formats) and types for Python.

.venv/bin/python tests/support/made_pages.py writes all of it.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

from penstock.engine.programs.catalogue import CATALOGUE
from penstock.engine.programs.table import grouped
from penstock.storage.ingest.core.formats import FORMATS

ROOT = Path(__file__).resolve().parents[2]
README, PROGRAMS, INPUT = ROOT / "README.md", ROOT / "engine/programs/programs.md", ROOT / "storage/ingest/formats.md"
HEADS = {
    README: "| task | programs |",
    PROGRAMS: "| program | parameters | fields of the answer |",
    INPUT: "| `--format` | names end in | input |",
}
"""The first line of each table."""
NO_WEIGHT = "`--no-weight`"
TYPES = ("typed_run", "typed_convert")
"""Modules here that make a file of tools/python each."""


def rows(page: Path) -> list[str]:
    """The rows of a page's table, without its head."""
    if page == README:
        made = [f"| {group} | {', '.join(f'`{one.name}`' for one in those)} |" for group, those in grouped().items()]
        return [*made, "| your own | `FILE.py:Class` |"]
    if page == INPUT:
        return _input_rows()
    made = []
    for one in CATALOGUE:
        parameters = "; ".join(filter(None, (one.parameters, one.weighted and NO_WEIGHT)))
        made.append(f"| `{one.name}` | {parameters}{' ' * bool(parameters)}| {one.answer} |")
    return [*made, "| `FILE.py:Class` | `--set name=value` | its own: [writing programs](../writing_programs.md) |"]


def _input_rows() -> list[str]:
    """A row for each file that reads input: formats, endings of names, the first line of the file."""
    files: dict[str, list[str]] = {}
    for one in FORMATS.values():
        files.setdefault(one.opens.partition(":")[0], []).append(one.name)
    made = []
    for file, names in files.items():
        spec = importlib.util.find_spec(f"penstock.storage.ingest.{file}")
        assert spec is not None
        first = Path(str(spec.origin)).read_text(encoding="utf-8").partition("\n")[0].strip('"').rstrip(".")
        endings = ", ".join(f"`{end}`" for name in names for end in FORMATS[name].suffixes)
        cells = ", ".join(f"`{name}`" for name in names), endings, first.replace("|", "\\|")
        made.append(f"| {' | '.join(cells)} |".replace("|  |", "| |"))
    return made


def with_rows(page: Path) -> str:
    """The text of a page with its table as it should be."""
    lines = page.read_text(encoding="utf-8").splitlines()
    begin = lines.index(HEADS[page]) + 2
    end = next(at for at in range(begin, len(lines)) if not lines[at].startswith("|"))
    return "\n".join([*lines[:begin], *rows(page), *lines[end:]]) + "\n"


if __name__ == "__main__":
    for each in HEADS:
        each.write_text(with_rows(each), encoding="utf-8")
    sys.path.insert(0, str(ROOT / "tests"))
    for name in TYPES:
        file = ROOT / f"tools/python/{name}.pyi"
        file.write_text(importlib.import_module(f"support.{name}").text(), encoding="utf-8")
        subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", file], check=True)
