"""Names of an input that hold commands for a terminal, marks of direction or HTML are shown as text; JSON has them raw.

`HOSTILE` goes through all tables, messages, pages and notebooks. `TITLE` sets a window's title, which Click leaves in
place where stdout is no terminal.
"""

from __future__ import annotations

import csv
import itertools
import json
import logging
import sys
from html.parser import HTMLParser
from pathlib import Path

import penstock
import pytest
from penstock.storage.base.errors import PenstockError
from penstock.tools import cli
from penstock.tools.base import log
from penstock.tools.base.progress import ProgressBars, bars
from support.terminal import on_a_terminal

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


FAKE = "FAKE: all is well"
HOSTILE = {
    "colour": "\x1b[31mred\x1b[8m",
    "title": f"{TITLE}a",
    "C0": "a\x01\x08\x08\x0b\x0c\x7fb",
    "C1": "\x9b2Jb\x85c\x90d",
    "embedding": "\u202aa\u202bb\u202cc\u202dd\u202ee",
    "isolates": "\u2066a\u2067b\u2068c\u2069d",
    "marks": "\u200ea\u200fb\u061cc",
    "zero width": "a\u200bb\u200cc\u200dd\u2060e\ufefff",
    "invisible": "a\u00adb\U000e0041c",
    "lines": f"a\n{FAKE}",
    "return": f"a\r{FAKE}",
    "separators": f"a\u2028{FAKE}\u2029b",
    "script": "<script>alert(1)</script>",
    "attribute": "\"'><img src=x onerror=alert(1)>",
    "entity": "&lt;b&gt;&amp;",
    "markup": "[bold]a[/bold][/x][link=http://x]",
    "formula": "$\\frac{1$ %s {0}",
}
SHOWN_NAMES = ["\\x1b[31mred\\x1b[8m", "\\x9b2Jb\\x85c", "\\u202ee", "\\u2066a\\u2067b", "\\u200ea\\u200fb", "\\u200bb"]
"""How some of them are shown."""


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """h.h5, a path of these names, which are those of a property, of its values and of the input, too."""
    monkeypatch.chdir(tmp_path)
    names = list(HOSTILE.values())
    rows = [["id", HOSTILE["colour"], HOSTILE["isolates"]], *([name, name, at] for at, name in enumerate(names))]
    edges = [["s", "t"], *([a, b] for a, b in itertools.pairwise(names))]
    for path, lines in ((f"in{HOSTILE['embedding']}.csv", edges), ("people.csv", rows)):
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(lines)
    return names


def convert(*more: str) -> list[str]:
    """The command that makes the graph."""
    command = ["convert", f"in{HOSTILE['embedding']}.csv", "h.h5", "--renumber", "--string-ids", "--header"]
    return [*command, "--vertices", "people.csv", *more]


def harmless(shown: str) -> str:
    """The text, which obeys no terminal, has no direction of its own and no line of somebody else."""
    assert all(line.isprintable() for line in shown.split("\n"))
    assert not any(line.startswith(FAKE) for line in shown.split("\n"))
    return shown


class Elements(HTMLParser):
    """The elements and attributes of a page, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {tag, *(name for name, _ in attrs)}

    def handle_data(self, data: str) -> None:
        self.text += data


def harmless_page(page: str) -> str:
    """The text of HTML that has no element and no attribute of somebody else, and no mark."""
    elements = Elements(page)
    assert not {"script", "img", "b", "onerror", "src"} & elements.found
    harmless(page)
    return harmless(elements.text)


def test_hostile_names_are_shown_as_text(hostile: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command(convert()) == 0
    joined = ["--join", f"{HOSTILE['colour']},{HOSTILE['isolates']}", "--top", "40"]
    commands = [
        ["info", "h.h5", "--degrees"],
        ["info", "h.h5", "--assortativity", HOSTILE["isolates"]],
        ["verify", "h.h5"],
        ["run", "degrees", "h.h5", *joined],
        ["run", "wcc", "h.h5", "--top", "3"],
        ["run", "bfs", "h.h5", "--source", hostile[0], "--target", hostile[-1], "-vv"],
        ["run", "bfs", "h.h5", "--source", hostile[0], "--dry-run"],
        ["run", "wcc", "h.h5", "--run-dir", f"run{HOSTILE['lines']}"],
        ["report", f"run{HOSTILE['lines']}"],
        ["similarity", "h.h5", "--k", "3", "--top", "40"],
        ["extract", "h.h5", f"{HOSTILE['separators']}.h5", "--around", hostile[3]],
        ["export", "h.h5", f"{HOSTILE['lines']}.csv"],
        ["walk", "h.h5", "--length", "2", "--output", f"{HOSTILE['return']}.txt", "--format", "csv"],
        [*convert()[:2], "l.h5", "--string-ids", "--renumber", "--header", "--layout", "list"],
        ["append", "l.h5", f"in{HOSTILE['embedding']}.csv", "--header"],
    ]
    told = "".join(capsys.readouterr())
    for command in commands:
        assert cli.run_command(command) == 0, (command, capsys.readouterr().err)
        told += "".join(capsys.readouterr())
    harmless(told)
    for name in SHOWN_NAMES:
        assert name in told
    harmless(Path(f"run{HOSTILE['lines']}", "log.txt").read_text())


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(
            kind, marks=() if kind in ("colour", "C1", "embedding", "lines", "attribute") else pytest.mark.full
        )
        for kind in HOSTILE
    ],
)
def test_messages_quote_hostile_names_as_text(
    kind: str, hostile: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    name = HOSTILE[kind]
    assert cli.run_command(convert("-q")) == 0
    Path("ids.txt").write_text(f"{name}x\n")
    Path(f"{kind}.csv").write_text(f'a,b\n"{name.replace(chr(34), 2 * chr(34))}\n')
    Path("job.toml").write_text(f'graph = "h.h5"\n[[programs]]\nname = {json.dumps(name)}\n')
    Path("key.toml").write_text(f'graph = "h.h5"\n{json.dumps(name)} = 1\n')
    Path("m.jsonl").write_text(json.dumps({"kind": name}) + "\n")
    with Path("twice.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["id", name, name], ["a", "b", "c"]])
    commands = [
        ["info", f"{name}x.h5"],
        ["convert", f"{name}x.txt", "n.h5"],
        ["convert", f"{kind}.csv", "n.h5", "--columns", f"{name}x,b"],
        ["convert", f"{kind}.csv", "n.h5", "--weights", "--header"],
        ["convert", f"{kind}.csv", "n.h5", "--vertices", "twice.csv", "--renumber", "--string-ids", "--header"],
        ["convert", "people.csv", "n.h5", "--columns", f"id,{name}x"],
        ["run", f"{name}x", "h.h5"],
        ["run", "bfs", "h.h5", "--source", f"{name}x"],
        ["run", "bfs", "h.h5", "--source", name, "--join", f"{name}x", "--top", "1"],
        ["run", "bfs", "h.h5", "--source", name, "--by", name, "--top", "1"],
        ["run", "bfs", "h.h5", "--source", name, "--set", f"{name}=1"],
        ["run", "bfs", "h.h5", "--source", name, "--output", f"out.{name}"],
        ["run", "job.toml"],
        ["run", "key.toml"],
        ["info", "h.h5", "--assortativity", f"{name}x"],
        ["similarity", "h.h5", "--k", "1", "--source", f"{name}x"],
        ["similarity", "h.h5", "--pairs", "ids.txt"],
        ["walk", "h.h5", "--source", f"{name}x", "--output", "w.txt"],
        ["walk", "h.h5", "--sources", "ids.txt", "--output", "w.txt"],
        ["extract", "h.h5", "n.h5", "--vertices", "ids.txt"],
        ["extract", "h.h5", "n.h5", "--around", f"{name}x"],
        ["extract", "h.h5", "n.h5", "--degrees", name],
        ["report", "m.jsonl"],
        [f"{name}x"],
        ["info", f"--{name}x"],
    ]
    capsys.readouterr()
    for command in commands:
        assert cli.run_command(command) == 2, command
        harmless("".join(capsys.readouterr()))
    opened = penstock.Graph.open("h.h5")
    with pytest.raises(PenstockError) as error:
        opened.neighbors(f"{name}x")
    harmless(str(error.value))


def test_hostile_names_on_a_terminal(hostile: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "penstock.tools.main"]
    shown = on_a_terminal([*command, *convert()], columns=200, folder=tmp_path)
    shown += on_a_terminal([*command, "run", "degrees", "h.h5", "-v"], columns=200, folder=tmp_path)
    assert not {*"\x07\x9b\u202e\u2066\u200f\u200b"} & set(shown)
    assert "\x1b[31mred" not in shown


def test_hostile_names_in_html(hostile: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command(convert("-q")) == 0
    opened = penstock.Graph.open("h.h5")
    result = penstock.run("degrees", opened).with_properties(HOSTILE["colour"])
    told = harmless_page(result._repr_html_())
    assert told.count(SHOWN_NAMES[0]) >= 2  # the column, and a value
    for name in hostile:
        told += harmless_page(penstock.from_edges([name], [name])._repr_html_())
    told += harmless_page(penstock.similarity(opened, k=3)._repr_html_())
    for name in SHOWN_NAMES:
        assert name in told
    assert HOSTILE["script"] in told
    assert HOSTILE["attribute"] in told


def test_hostile_metrics_in_a_report(hostile: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command(convert("-q")) == 0
    assert cli.run_command(["run", "wcc", "h.h5", "-q", "--metrics", "m.jsonl"]) == 0
    lines = [json.loads(line) for line in Path("m.jsonl").read_text().splitlines()]
    name = "".join(hostile)
    for line in lines:
        for key in ("stages", "routes", "busy_seconds"):
            if key in line:
                line[key][HOSTILE["marks"] + HOSTILE["colour"] + "<b>"] = next(iter(line[key].values()), 1.0)
        line["phase_name"] = name
    lines[0] |= {"program": name, "parameters": {name: name}, "options": {name: name}, "machine": {"processor": name}}
    lines[0]["graph"]["path"] = lines[0]["device"]["name"] = name.replace("/", "")
    lines[-2] = {"kind": "failed", "error": name}
    Path("m.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert cli.run_command(["report", "m.jsonl", "--html", "m.html", "--png", "."]) == 0
    assert SHOWN_NAMES[0] in harmless("".join(capsys.readouterr()))
    told = harmless_page(Path("m.html").read_text())
    for shown in SHOWN_NAMES:
        assert shown in told


def test_bars_show_markup_as_text() -> None:
    with bars() as display:
        ProgressBars(display)(f"{HOSTILE['markup']}{TITLE}", 1, 2, "edges", "[/y]")
        assert display.columns[1].render(display.tasks[0]).plain == f"{HOSTILE['markup']}{SHOWN}: [/y]"
