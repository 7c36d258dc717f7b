"""Job files: everything in them is read or refused, with the line and the nearest name; what is written comes back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from penstock.storage.base.errors import InputError
from penstock.tools.base.find_program import read_vertex
from penstock.tools.run.answer_options import AnswerOptions
from penstock.tools.run.checkpointing import Checkpointing
from penstock.tools.run.job import JOB_GROUPS, Job, JobStep
from penstock.tools.run.job_file import LONGEST_JOB, lines_of, read, text_of
from penstock.tools.run.run_options import Execution, given_parameters

GOOD = """
graph = "g.h5"   # beside this file
host-memory = "1GiB"
threads = 2
direct-io = true
stripe = ["a", "/b"]
rates = "rates.json"
metrics = "lines.jsonl"

[[programs]]
name = "pagerank"
tol = 0
max-iter = 7
personalization = "homes.txt"
top = 5

[[programs]]
name = "bfs"
source = ["a", 2]
output = "levels.csv"

[[programs]]
name = "own.py:Mine"
[programs.set]
depth = 3
words = ["x", "y"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("g.h5", "rates.json", "homes.txt", "own.py"):
        (tmp_path / name).touch()
    return tmp_path


def reading(folder: Path, text: str) -> Any:
    path = folder / "job.toml"
    path.write_text(text)
    return read(path)


def test_a_job_file_says_all_that_a_command_line_says(folder: Path) -> None:
    job = reading(folder, GOOD)
    assert job.graph == folder / "g.h5"
    assert job.beside().options == {
        "host_memory": 1 << 30,
        "threads": 2,
        "direct_io": True,
        "stripes": (folder / "a", Path("/b")),
        "rates": folder / "rates.json",
        "metrics": folder / "lines.jsonl",
    }
    pagerank, bfs, own = job.steps
    assert pagerank.program == "pagerank"
    assert pagerank.parameters == {"tol": 0.0, "max_iter": 7, "personalization": folder / "homes.txt"}
    assert pagerank.wanted == AnswerOptions(top=5)
    assert bfs.parameters == {"source": ["a", 2]}
    assert bfs.wanted.path == Path("levels.csv"), "in the run directory, where there is one"
    assert job.beside().steps[1].wanted.path == folder / "levels.csv"
    assert own.program == f"{folder / 'own.py'}:Mine"
    assert own.parameters == {"depth": 3, "words": ["x", "y"]}


def test_parameters_may_be_texts_as_behind_set(folder: Path) -> None:
    job = reading(folder, 'graph = "g.h5"\n[[programs]]\nname = "cf"\nset = ["rank=8", "raw=None"]')
    assert job.steps[0].parameters == {"rank": 8, "raw": None}


PROGRAM = '\n[[programs]]\nname = "bfs"\n'


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("graph = \n", r"job.toml:1: Invalid value; job files are TOML"),
        ('graph = "g.h5"\ngraph = "h.h5"\n', r"job.toml:2: "),
        ('host_memory = "1GiB"' + PROGRAM, r"job.toml:1: there is no 'host_memory' here; did you mean 'host-memory'\?"),
        ("\n\nzzz = 1" + PROGRAM, r"job.toml:3: there is no 'zzz' here; there are .*graph"),
        ("top = 3" + PROGRAM, r"job.toml:1: top belongs to a program: write it below \[\[programs\]\]"),
        ("force = true" + PROGRAM, r"job.toml:1: force is said on the command line only: --force"),
        ("dry-run = true" + PROGRAM, "--dry-run"),
        ('host-memory = "lots"' + PROGRAM, r"job.toml:1: host-memory: size 'lots' is not a number"),
        ("host-memory = 1.5" + PROGRAM, r"host-memory is 1.5 \(float\); it must be a size"),
        ("host-memory = true" + PROGRAM, r"host-memory is True \(bool\)"),
        ('threads = "2"' + PROGRAM, r"threads is '2' \(str\); it must be a whole number"),
        ("threads = 0" + PROGRAM, r"job.toml:1: threads: .*x>=1"),
        ("direct-io = 1" + PROGRAM, r"direct-io is 1 \(int\); it must be true or false"),
        ('mode = "fast"' + PROGRAM, r"mode: 'fast' is not one of 'auto', 'sync', 'async'"),
        ('rates = "absent.json"' + PROGRAM, r"job.toml:1: rates: there is no file .*absent.json"),
        ('graph = "absent.h5"' + PROGRAM, r"job.toml:1: graph: there is no file .*absent.h5"),
        ("graph = 5" + PROGRAM, r"job.toml:1: graph is 5 \(int\); it must be the path"),
        ("", r"job.toml: a job needs one table \[\[programs\]\]"),
        ('[programs]\nname = "bfs"', r"job.toml:1: a job needs one table \[\[programs\]\]"),
        ("[[programs]]\nsource = 1", r"job.toml:1: name is missing; it must be that of a program"),
        ("[[programs]]\nname = 1", r"job.toml:1: name is 1"),
        (PROGRAM + "sourc = 1", r"job.toml:4: there is no 'sourc' for a program; did you mean 'source'\?"),
        (PROGRAM + "threads = 1", r"job.toml:4: there is no 'threads' for a program"),
        (PROGRAM + "source = -1", r"job.toml:4: source: -1 is negative"),
        (PROGRAM + "source = 1.5", r"job.toml:4: source is 1.5 \(float\); it must be the id of a vertex"),
        (PROGRAM + "source = [1, true]", r"source is True \(bool\)"),
        (PROGRAM + "top = -1", r"job.toml:4: top: "),
        (PROGRAM + "damping = true", r"damping is True \(bool\); it must be a number"),
        (PROGRAM + "output = 1", r"output is 1 \(int\); it must be a path"),
        (PROGRAM + "set = 3", r"set is 3 \(int\); it must be a table of parameters"),
        (PROGRAM + PROGRAM + "sourc = 1", r"job.toml:7: there is no 'sourc'"),
        ('[[programs]]\nname = "absent.py:X"', r"job.toml:2: name: there is no file .*absent.py"),
        (PROGRAM + 'personalization = "absent"', r"job.toml:4: personalization: there is no file"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(folder: Path, text: str, named: str) -> None:
    with pytest.raises(InputError, match=named):
        reading(folder, text)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent.toml cannot be read"):
        read(tmp_path / "absent.toml")
    (tmp_path / "bad.toml").write_bytes(b"graph = \xff")
    with pytest.raises(InputError, match=r"bad.toml is not UTF-8"):
        read(tmp_path / "bad.toml")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("#" * (LONGEST_JOB + 1), f"has more than {LONGEST_JOB} characters"),
        (f"threads = {'9' * 5000}", "a number of thousands of digits"),
        (f"threads = {'[' * 5000}{']' * 5000}", "brackets in brackets"),
        (f'host-memory = "{"9" * 5000}"', "size '9+ ...' is not a number"),
        (f"{'k' * 5000} = 1", "there is no 'k+ ...' here"),
        (f'threads = "{"x" * 5000}"', "threads is 'x+ ... .str.; it must be a whole number"),
        (f'words = """\n[{" " * 5000}\n"""', "there is no 'words' here"),
    ],
)
def test_long_values_are_refused_in_short(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "job.toml").write_text(text)
    with pytest.raises(InputError, match=reason) as caught:
        read(tmp_path / "job.toml")
    assert len(str(caught.value)) < 700


def test_lines_are_those_of_keys_and_tables() -> None:
    text = "a = 1\n[[p]]\nb.c = 2\n# d = 3\n[[p]] # second\n'e f' = 4\n[p.set]\ng = 5\n"
    assert lines_of(text) == {
        ("a",): 1,
        ("p", 0): 2,
        ("p", 0, "b.c"): 3,
        ("p", 1): 5,
        ("p", 1, "e f"): 6,
        ("p", 1, "set"): 7,
        ("p", 1, "set", "g"): 8,
    }


values = st.one_of(
    st.integers(-(1 << 70), 1 << 70), st.floats(allow_nan=False), st.text(), st.booleans(), st.none(),
    st.lists(st.text(st.characters(codec="utf-8"))),
)  # fmt: skip
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0/"), min_size=1)


@settings(max_examples=20)
@given(
    sources=st.lists(
        st.integers(0, (1 << 64) - 1) | texts.filter(lambda text: text[0] != "-" and read_vertex(text) == text),
        max_size=3,
    ),
    tol=st.none() | st.floats(0, 1e300),
    more=st.dictionaries(st.from_regex(r"[a-z_]{1,9}", fullmatch=True).filter(lambda n: n not in NAMED), values),
    memory=st.none() | st.integers(1, 1 << 50),
    weight=st.none() | st.booleans(),
)
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    sources: Any,
    tol: float | None,
    more: Any,
    memory: int | None,
    weight: bool | None,
) -> None:
    """Also parameters that TOML has not (None, large numbers): those go as texts."""
    folder = tmp_path_factory.getbasetemp()
    (folder / "g.h5").touch()
    parameters = given_parameters(more, source=tuple(sources), tol=tol, weight=weight)
    step = JobStep("bfs", parameters, AnswerOptions(top=3, path=Path("out.csv")))
    given = {str(option.name): None for group in JOB_GROUPS for option in group.options} | {"host_memory": memory}
    job = Job(folder / "g.h5", (step,), given, Execution(), Checkpointing())
    (folder / "written.toml").write_text(text_of(job, given), encoding="utf-8")
    back = read(folder / "written.toml")
    assert back.graph == folder / "g.h5"
    assert back.options == ({} if memory is None else {"host_memory": memory})
    found = back.steps[0].parameters
    assert found == parameters
    assert [type(value) for value in found.values()] == [type(parameters[name]) for name in found]
    assert back.steps[0].wanted == step.wanted


NAMED = {str(option.name) for group in JOB_GROUPS for option in group.options} | {
    "source", "delta", "damping", "alpha", "tol", "max_iter", "k", "weight", "personalization",
}  # fmt: skip
