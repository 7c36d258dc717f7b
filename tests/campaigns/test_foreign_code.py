"""No file that a command reads runs code: graphs, metrics, records of runs, rates, job files, in each of their texts.

Every text in such a file becomes one that makes a file where anything executes it, imports it or gives it to a shell.
Checkpoints have a test of their own (`tests/engine/checkpoint/`), the cache of kernels too (`tests/storage/base/`);
which files of the product may execute or import by name, `tests/test_architecture.py` says. A job file may name a
program of its own, as FILE.py:Class or package.module:Class, which is there to be run and which this leaves out.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import pytest
from penstock.tools import cli
from penstock.transfer.calibration.calibration import Calibration
from penstock.transfer.values.rates import Rates
from support.graph_files import forge_header

ALL = os.environ.get("PENSTOCK_CAMPAIGN") == "all"
pytestmark = pytest.mark.timeout(1200 if ALL else 120)
SAMPLE = 600 if ALL else 6
"""Cases of each file."""
CODE = "open('ran', 'w')"
PROGRAM = "hostile:Hostile"
HOSTILE = (
    f"0) + {CODE}\n",
    f"0\n\n{CODE}\n",
    f"__import__('builtins').{CODE}",
    PROGRAM,
    "hostile",
    "$(touch ran)",
    "; touch ran; #",
    "!!python/object/apply:os.system ['touch ran']",
    "cos\nsystem\n(S'touch ran'\ntR.",
)
COMMANDS = {
    "m.jsonl": [["report", "m.jsonl"], ["report", "m.jsonl", "--html", "r.html", "--force"]],
    "rd/run.json": [["run", "rd/job.toml", "--run-dir", "rd", "--resume"], ["report", "rd"]],
    "rates.json": [
        ["run", "wcc", "g.h5", "--rates", "rates.json"],
        ["plan", "wcc", "g.h5", "--rates", "rates.json"],
    ],
    "job.toml": [["run", "job.toml", "--force"]],
    "g.h5": [["info", "g.h5"], ["verify", "g.h5"], ["run", "wcc", "g.h5", "--no-calibrate"], ["export", "g.h5", "-"]],
}
"""By file, the commands that read it."""
JOB = """graph = "g.h5"
direction = "auto"
mode = "auto"
device = "cpu"
route = "auto"
packed = "auto"
host-memory = "1GiB"
no-calibrate = true

[[programs]]
name = "pagerank"
by = "rank"
top = 2
max-iter = 3
set = { damping = 0.5 }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("hostile.py").write_text(CODE)
    Path("e.txt").write_text("0 1\n1 2\n2 0\n2 3\n")
    Path("job.toml").write_text(JOB)
    for made in (
        "convert e.txt g.h5",
        "run pagerank g.h5 --metrics m.jsonl --run-dir rd --checkpoint kept",
        "run job.toml",
    ):
        assert cli.run_command(made.split()) == 0
    shutil.copy("rd/m.jsonl", "m.jsonl")
    Path("rates.json").write_text(json.dumps(Calibration({"cores": 1}, "today", True, 1.0, 1, Rates(), {}).facts()))
    record = Path("rd/run.json")
    record.write_text(
        record.read_text().replace('"status": "done"', '"status": "running"')
    )  # by a process that was killed
    return tmp_path


def leaves(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all texts and numbers in JSON."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(item, (*at, key))
    else:
        yield at


def replaced(value: Any, at: tuple[Any, ...], text: str) -> Any:
    """JSON with a text in one place."""
    root = json.loads(json.dumps([value]))
    inner = root
    for step in (0, *at)[:-1]:
        inner = inner[step]
    inner[(0, *at)[-1]] = text
    return root[0]


def toml(content: dict[str, Any]) -> str:
    """A job file of what was read from one."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in content.items() if key != "programs"]
    for step in content["programs"]:
        given = ", ".join(f"{name} = {json.dumps(value)}" for name, value in step["set"].items())
        lines += ["[[programs]]", *(f"{key} = {json.dumps(value)}" for key, value in step.items() if key != "set")]
        lines += [f"set = {{ {given} }}"]
    return "\n".join(lines)


def forged(path: Path) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Write the file with each hostile text in each place, in turn."""
    whole = path.read_bytes()
    if path.suffix == ".h5":
        with h5py.File(path) as file:
            content: Any = json.loads(bytes(file["penstock_header"][()]))
    else:
        text = whole.decode()
        records = [text] if path.suffix == ".json" else text.splitlines()
        content = tomllib.loads(text) if path.suffix == ".toml" else [json.loads(record) for record in records]
    cases = [(at, text) for at in leaves(content) for text in HOSTILE if (at[-1], text) != ("name", PROGRAM)]
    for at, text in random.Random(29).sample(cases, min(len(cases), SAMPLE)):
        made = replaced(content, at, text)
        if path.suffix == ".h5":
            path.write_bytes(whole)
            forge_header(path, made)
        else:
            path.write_text(toml(made) if path.suffix == ".toml" else "\n".join(map(json.dumps, made)))
        yield at, text
        path.write_bytes(whole)


@pytest.mark.parametrize("name", COMMANDS)
def test_no_text_of_a_file_is_executed(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for at, text in forged(folder / name):
        for command in COMMANDS[name]:
            code = cli.run_command(command)
            shown = capsys.readouterr()
            assert code in (0, 1, 2), (at, text)
            assert "Traceback" not in shown.err, (at, text, shown.err)
            assert not (folder / "ran").exists(), (at, text, command)
