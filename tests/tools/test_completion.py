"""Shell completion, as Click's scripts ask for it: `_PENSTOCK_COMPLETE=bash_source penstock`."""

from __future__ import annotations

import pytest
from penstock.engine.programs.table import PROGRAMS
from penstock.tools import cli


def completions(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[tuple[str, str]]:
    """(kind, value) of what bash is told for the last of these words."""
    monkeypatch.setenv("_PENSTOCK_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    with pytest.raises(SystemExit) as end:
        cli.main([])
    assert end.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    return [(kind, value) for kind, _, value in (line.partition(",") for line in lines)]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("penstock ", [("plain", name) for name in cli.COMMANDS]),
        ("penstock ver", [("plain", "verify")]),
        ("penstock --ver", [("plain", "--version")]),
        ("penstock run ", [("plain", name) for name in PROGRAMS]),
        ("penstock run pa", [("plain", "pagerank")]),
        ("penstock run ./mine", [("file", "./mine")]),
        ("penstock run bfs web", [("file", "web")]),
        ("penstock run pagerank --no-w", [("plain", "--no-weight")]),
        ("penstock run bfs g.h5 --mode s", [("plain", "sync")]),
        ("penstock bench rou", [("plain", "routes")]),
    ],
)
def test_a_line_is_completed(
    words: str, wanted: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert completions(words, monkeypatch, capsys) == wanted


@pytest.mark.parametrize(("shell", "word"), [("zsh", "#compdef penstock"), ("fish", "complete --no-files")])
def test_the_scripts_of_shells(
    shell: str, word: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_PENSTOCK_COMPLETE", f"{shell}_source")
    with pytest.raises(SystemExit) as end:
        cli.main([])
    assert end.value.code == 0
    assert word in capsys.readouterr().out
