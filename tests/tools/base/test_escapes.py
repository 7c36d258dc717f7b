"""Names of an input that hold commands for a terminal are printed as text, in answers and messages; JSON has them raw.

The sequence is one that sets a window's title, which Click leaves in place where stdout is no terminal.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
from penstock.tools import cli
from penstock.tools.base import log

TITLE = "\x1b]0;owned\x07"
SHOWN = "\\x1b]0;owned\\x07"


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A graph whose ids, and whose file, have such names."""
    monkeypatch.chdir(tmp_path)
    Path(f"in{TITLE}.txt").write_text(f"{TITLE}a b{TITLE}\nb{TITLE} c\n")
    command = ["convert", f"in{TITLE}.txt", f"g{TITLE}.h5", "--string-ids", "--renumber", "--format", "text"]
    assert cli.run_command(command) == 0
    return f"g{TITLE}.h5"


def outputs(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What a command writes on both, which obeys no terminal."""
    assert cli.run_command(list(arguments)) == code
    both = "".join(capsys.readouterr())
    assert not {"\x1b", "\x07"} & set(both)
    assert SHOWN in both
    return both


def test_answers_and_messages(graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = capsys.readouterr()
    assert not {"\x1b", "\x07"} & set(shown.out + shown.err)
    outputs(capsys, "info", graph)
    run = ["run", "bfs", graph, "--source", f"{TITLE}a"]
    assert f"b{SHOWN}" in outputs(capsys, *run, "--top", "3")
    outputs(capsys, *run, "--dry-run")
    told = outputs(capsys, "run", "bfs", graph, "--source", f"x{TITLE}\ny", code=2)
    assert f"vertex x{SHOWN}\\ny is not in the graph: its 3 ids lie between {SHOWN}a and c" in told
    outputs(capsys, "info", f"none{TITLE}", code=2)
    outputs(capsys, "run", "bfs", graph, f"--{TITLE}", code=2)


def test_json_and_files_have_the_names_as_they_are(graph: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    command = ["run", "bfs", graph, "--source", f"{TITLE}a", "--top", "1", "--json", "--output", "levels.csv"]
    assert cli.run_command(command) == 0
    assert json.loads(capsys.readouterr().out)["top"][0]["vertex"] == f"{TITLE}a"
    assert f"b{TITLE}" in Path("levels.csv").read_text()


def test_log_lines(capsys: pytest.CaptureFixture[str]) -> None:
    log.show(0)
    logging.getLogger("penstock.tools.tests").warning("odd name %s", TITLE)
    assert capsys.readouterr().err == f"penstock: odd name {SHOWN}\n"
