"""The tables of programs in the README and in engine/programs/programs.md, made from the catalogue.

.venv/bin/python tests/support/program_pages.py writes them there.
"""

from __future__ import annotations

from pathlib import Path

from penstock.engine.programs.catalogue import CATALOGUE
from penstock.engine.programs.table import grouped

ROOT = Path(__file__).resolve().parents[2]
README, PAGE = ROOT / "README.md", ROOT / "engine/programs/programs.md"
OWN = {
    README: "| your own | `FILE.py:Class` |",
    PAGE: "| `FILE.py:Class` | `--set name=value` | its own: [writing programs](../writing_programs.md) |",
}
"""The last row of each table, about programs of users."""


def rows(page: Path) -> list[str]:
    """The rows of a page's table, without its head."""
    if page == README:
        made = [f"| {group} | {', '.join(f'`{one.name}`' for one in those)} |" for group, those in grouped().items()]
    else:
        made = [f"| `{one.name}` | {one.parameters}{' ' * bool(one.parameters)}| {one.answer} |" for one in CATALOGUE]
    return [*made, OWN[page]]


def with_rows(page: Path) -> str:
    """The text of a page with its table as it should be: what is between the head of the table and its last row."""
    lines = page.read_text(encoding="utf-8").splitlines()
    end = lines.index(OWN[page])
    begin = max(at for at in range(end) if lines[at].startswith("|---"))
    return "\n".join([*lines[: begin + 1], *rows(page), *lines[end + 1 :]]) + "\n"


if __name__ == "__main__":
    for each in OWN:
        each.write_text(with_rows(each), encoding="utf-8")
