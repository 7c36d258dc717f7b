"""Documents say what is so: commands, their examples, the files that READMEs name, two commands.

Examples are parsed, not run: every option and argument must exist and be well-formed. The README's
two commands are run to the letter by .ci/run; here only their form is checked.

The idea of failing when a command is undocumented is sqlite-utils' (tests/test_docs.py).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from penstock.tools.cli import cli
from support import made_pages
from support.source_code import FLOORS, ROOT

README = ROOT / "README.md"
READMES = [
    README,
    ROOT / "CHANGELOG.md",
    ROOT / ".github" / "CONTRIBUTING.md",
    *(path for folder in FLOORS for path in sorted((ROOT / folder).rglob("*.md"))),
    ROOT / "tests" / "README.md",
    ROOT / "tests" / "benchmarks" / "README.md",
]
"""And what stands beside READMEs: measurements and decisions."""
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"^(?: {4}|\t).*$", re.MULTILINE)


def walk(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    """Every command below `command` with its full name, groups included."""
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None, f"{context.command_path} {name} is listed but missing"
            below = click.Context(child, parent=context, info_name=name)
            yield below.command_path, child
            yield from walk(child, below)


COMMANDS = dict(walk(cli, click.Context(cli, info_name="penstock")))


def code_lines(text: str) -> list[str]:
    """Lines of fenced and indented code, continuation lines joined."""
    blocks = FENCE.findall(text) + INDENTED.findall(FENCE.sub("", text))
    return "\n".join(blocks).replace("\\\n", " ").splitlines()


def examples(text: str) -> list[str]:
    """The penstock command lines among `text`'s lines, a leading prompt or path removed."""
    found = (re.match(r"\s*(?:\$ )?(?:\S*bin/)?(penstock .*)", line) for line in text.splitlines())
    return [match[1] for match in found if match]


def parse(line: str) -> click.Context:
    """Parse one command line down to its last command, with every file it names present."""
    words = shlex.split(line, comments=True)
    for stop in ("|", ">", "&&", ";"):
        if stop in words:
            words = words[: words.index(stop)]
    if "<" in words:
        words = words[: words.index("<")]
    return descend(cli, words[1:], None, "penstock")


def descend(command: click.Command, words: list[str], parent: click.Context | None, name: str) -> click.Context:
    """The context of the innermost command that `words` reach."""
    for word in words:
        if re.search(r"\.\w+$", word) and not word.startswith("-") and "/" not in word:
            Path(word).touch()
    context = command.make_context(name, list(words), parent=parent)
    if isinstance(command, click.Group) and context._protected_args + context.args:
        rest = context._protected_args + context.args
        child_name, child, arguments = command.resolve_command(context, rest)
        assert child is not None
        return descend(child, arguments, context, child_name or "")
    return context


README_EXAMPLES = [
    (path.relative_to(ROOT).as_posix(), line)
    for path in READMES
    if path.is_file()
    for line in examples("\n".join(code_lines(path.read_text(encoding="utf-8"))))
]
HELP_EXAMPLES = [(name, line) for name, command in COMMANDS.items() for line in examples(command.help or "")]


@pytest.mark.parametrize(("where", "line"), README_EXAMPLES + HELP_EXAMPLES)
def test_example_parses(where: str, line: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    parse(line)


@pytest.mark.parametrize(
    "line",
    ["penstock fly", "penstock convert a.txt b.h5 --no-such-option", "penstock run", "penstock info"],
)
def test_a_wrong_example_does_not_parse(line: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(click.UsageError):
        parse(line)


def test_documents_hold_examples() -> None:
    assert len(README_EXAMPLES) >= 5
    assert {path for path, _ in README_EXAMPLES} >= {"README.md"}


def table_commands(text: str) -> set[str]:
    """Commands in the first cell of a table row: | `penstock convert …` | … |."""
    rows = re.findall(r"^\|\s*`(penstock [a-z -]*[a-z])", text, re.MULTILINE)
    return {row.strip() for row in rows}


def test_readme_table_lists_exactly_the_commands() -> None:
    listed = table_commands(README.read_text(encoding="utf-8"))
    top = {name for name in COMMANDS if name.count(" ") == 1}
    assert {" ".join(name.split()[:2]) for name in listed} == top


def test_readme_has_the_two_commands() -> None:
    """One line sets up and runs the demo, one sets up and passes the tests; .ci/run runs both."""
    lines = README.read_text(encoding="utf-8").splitlines()
    ends = [line for line in lines if line.startswith("python3 -m venv ")]
    assert len(ends) == 2
    assert sum(line.endswith("penstock demo") for line in ends) == 1
    assert sum(line.endswith("pytest -n auto") for line in ends) == 1
    assert "PYTHON" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_readme_says_how_the_shell_finds_the_command() -> None:
    """Between the first command, which has its path, and the first example, which has none."""
    lines = README.read_text(encoding="utf-8").splitlines()
    first = next(at for at, line in enumerate(lines) if line.startswith("python3 -m venv "))
    assert lines[first - 1].startswith("git clone ")
    assert lines[first + 1] == ". .venv/bin/activate"
    assert not any(examples(line) for line in lines[:first])


def test_extras_are_installed_from_the_sources() -> None:
    """No package index has Penstock: an extra is one of the sources."""
    paths = [*READMES, *(ROOT / "tools").rglob("*.py"), *(ROOT / "transfer").rglob("*.py")]
    assert [path for path in paths if "penstock[" in path.read_text(encoding="utf-8")] == []


def below(page: Path) -> Path:
    """The folder whose files a page may name without their folder: its own; of a note on a decision the floor's."""
    return page.parents[1] if page.parent.name == "decisions" else page.parent


@pytest.mark.parametrize("path", READMES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_named_files_exist(path: Path) -> None:
    """`storage/read/reader.py`, `reader.py` at or below its README, and [links](to/files)."""
    prose = INDENTED.sub("", FENCE.sub("", path.read_text(encoding="utf-8")))
    names = re.findall(r"`([\w./-]+\.(?:py|md|toml))`", prose)
    names += re.findall(r"\]\((?!https?:|#)([^)#\s]+)", prose)
    absent = [
        name
        for name in names
        if not ((ROOT / name).exists() or (path.parent / name).exists() or any(below(path).rglob(name)))
    ]
    assert absent == []


@pytest.mark.parametrize("page", made_pages.HEADS, ids=lambda page: page.name)
def test_tables_are_made_from_records(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == made_pages.with_rows(page)
