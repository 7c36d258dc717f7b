"""The benchmarks' own parts: records, which of them compare, what is slower, and how two checkouts take turns."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
from benchmarks import busy, command, graphs, history, jobs, measure, ranks
from benchmarks.alternate import alternate
from benchmarks.history import Figure, Record
from benchmarks.runner import Choices, Runner, penstock
from penstock.engine import Graph
from support.source_code import ROOT

OLD = Record("2026-11-20T10:00:00Z", "aaaaaaa", "epyc-2c", "cpu", "cpu", "bfs", "ms", 100.0, 2.0, 5)
NEW = replace(OLD, date="2026-11-21T10:00:00Z", commit="bbbbbbb")


def test_a_record_is_one_line_that_reads_back() -> None:
    figure = Figure("cpu", "bfs", "ms", (4.0, 1.0, 2.0, 100.0, 3.0), "a note")
    record = Record.of(figure, date=OLD.date, commit="aaaaaaa", machine="epyc-2c", command="cpu --scale 20")
    assert record.line().count("\n") == 1
    assert history.parsed(record.line()) == record
    assert (record.value, record.spread, record.n) == (3.0, 2.0, 5)


def test_records_are_appended_and_read_by_date(tmp_path) -> None:
    history.append(tmp_path / "b.jsonl", [NEW])
    history.append(tmp_path / "a.jsonl", [OLD])
    history.append(tmp_path / "a.jsonl", [replace(NEW, commit="ccccccc", date="2026-11-22T10:00:00Z")])
    assert [record.commit for record in history.read(tmp_path)] == ["aaaaaaa", "bbbbbbb", "ccccccc"]


def test_the_history_in_the_repository_reads() -> None:
    for record in history.read(command.HISTORY):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", record.date)
        assert re.fullmatch(r"[0-9a-f]{7,}\+?", record.commit)
        assert record.suite in command.SUITES
        assert record.n >= history.LEAST_COUNT
        assert np.isfinite([record.value, record.spread]).all()


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ({}, {"value": 104.0}, "same"),  # as far apart as both spreads
        ({}, {"value": 104.1}, "slower"),
        ({}, {"value": 95.9}, "faster"),
        ({"spread": 0.0}, {"value": 102.0, "spread": 0.0}, "same"),  # 2 %
        ({"spread": 0.0}, {"value": 102.1, "spread": 0.0}, "slower"),
        ({"spread": 9.0}, {"value": 110.0}, "same"),
        ({"unit": "GB/s"}, {"value": 110.0, "unit": "GB/s"}, "faster"),
        ({"unit": "GB/s"}, {"value": 90.0, "unit": "GB/s"}, "slower"),
        ({"n": 4}, {"value": 200.0}, "not compared"),
        ({}, {"value": 200.0, "n": 3}, "not compared"),
    ],
)
def test_what_is_slower(old, new, word) -> None:
    assert history.compared(replace(OLD, **old), replace(NEW, **new)).word == word


def test_what_a_record_is_compared_with() -> None:
    middle = replace(OLD, date="2026-11-20T12:00:00Z", commit="ccccccc")
    others = [replace(middle, **{name: "other"}) for name in ("machine", "suite", "figure", "unit")]
    known = [OLD, middle, *others, replace(NEW, value=1.0), NEW]
    assert history.before(known, NEW) == middle
    assert history.before(known, NEW, "aaaaaaa") == OLD
    assert history.before([NEW], NEW) is None
    assert history.before([NEW], OLD) is None, "nothing is compared with what came later"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["nothing"],
        ["cpu", "--repeats", "4", "--compare"],
        ["cpu", "--repeats", "4", "--record"],
        ["cpu", "--against", "aaaaaaa"],
        ["cpu", "--alternate", "/nowhere"],
        ["cpu", "--set", "route"],
        ["--record"],
        ["--compare", "--plot", "page.svg"],
    ],
)
def test_misuse_is_refused_with_exit_code_2(words, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(words)
    assert ended.value.code == 2
    assert capsys.readouterr().err


def test_the_history_alone_is_compared(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(command, "HISTORY", tmp_path)
    history.append(tmp_path / "epyc.jsonl", [OLD, replace(NEW, value=120.0)])
    words = ["--compare", "--machine", "epyc-2c", "--commit", "bbbbbbb"]
    assert command.main([*words, "--against", "aaaaaaa"]) == 1
    assert "slower: bfs" in capsys.readouterr().out
    assert command.main(["--compare", "--machine", "epyc-2c", "--commit", "aaaaaaa"]) == 0
    assert "not compared" in capsys.readouterr().out


def small(scale: int, *, hubs: bool = False) -> Graph:
    return graphs.grid(1 << scale // 2)


def test_figures_of_two_commits_are_drawn(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(command, "HISTORY", tmp_path)
    history.append(tmp_path / "a.jsonl", [OLD, NEW, replace(OLD, figure="once"), replace(OLD, machine="other")])
    assert command.main(["--plot", str(tmp_path / "page.svg")]) == 0
    assert "1 figures" in capsys.readouterr().out
    assert "<svg" in (tmp_path / "page.svg").read_text()
    for words, said in ((["--only", "once", "--plot", "page.svg"], "two commits"), (["--plot", "page.xyz"], "xyz")):
        with pytest.raises(SystemExit, match="2"):
            command.main([*words[:-1], str(tmp_path / words[-1])])
        assert said in capsys.readouterr().err


def test_the_gpu_suite_runs_on_an_emulated_device(monkeypatch) -> None:
    """All but its own graph: every case of it gives a figure, and the answers are those of the host."""
    monkeypatch.setattr(graphs, "rmat_by_gpu", small)
    emulated = {"device": "emulated", "tuning": {"link_rate": 1e9}}
    choices = Choices(repeats=1, scale=8, side=8, memory=("50%",), deltas=(8,), check=True, given=emulated)
    runner = Runner(choices)
    measure.gpu(runner)
    names = [
        figure.name.removeprefix("rmat8 50% device=emulated tuning={'link_rate': 1000000000.0} ")
        for figure in runner.figures
    ]
    grids = [f"grid8 {memory} {name}" for memory in measure.GRID_MEMORIES for name in ("bfs level", "sssp iteration")]
    assert names == ["bfs", "wcc", "sssp", "sweep", "chebyshev", "sssp delta 8", *grids]
    assert not runner.wrong
    assert all(figure.values[0] > 0 for figure in runner.figures)
    for name in names[-1], "residual":
        one = Runner(replace(choices, only=(name,), memory=("resident",)))
        measure.gpu(one)
        assert [name in figure.name for figure in one.figures] == [True], "--only asks for one figure"


def test_programs_are_measured_beside_busy_processes(tmp_path, monkeypatch) -> None:
    """Alone and beside 1 and 2, which have ended then; processes that wait for nobody, and threads that wait."""
    monkeypatch.setattr(busy, "LEAST", 0.002)
    monkeypatch.setattr(busy, "COUNTS", 1000)
    monkeypatch.setattr(busy, "BUSY", (1, 2))
    path, others = tmp_path / "small.h5", psutil.Process().children()
    penstock("generate", "rmat", "--scale", 8, "--undirected", "--output", path)
    runner = Runner(Choices(repeats=1, graph=str(path), only=("memory bfs", "control")))
    busy.busy(runner)
    parts = [figure.name.removeprefix("small busy memory bfs ") for figure in runner.figures]
    controls = [
        f"busy control{kind} {part}"
        for kind in ("", *(f" steps of {milliseconds} ms" for milliseconds in busy.STEPS))
        for part in ("alone", *(f"beside {count} / fair share" for count in busy.BUSY))
    ]
    besides = [
        part
        for count in busy.BUSY
        for part in (f"beside {count}", f"beside {count}, CPU", f"beside {count} / fair share")
    ]
    assert parts == [*controls, "alone", "alone, CPU", *besides]
    assert psutil.Process().children() == others


def test_ranks_are_measured_with_even_and_uneven_shares(tmp_path, monkeypatch) -> None:
    """Moves are no part of a sweep; ranks are even from the first sweep on that takes about as long as even ones."""
    asked = []

    def ran(*words: object) -> dict[str, object]:
        asked.append(words[words.index("--shares") + 1 : words.index("--metrics")])
        taken = [9.0, 9.0, 2.0, 1.05, 1.0, 1.0] if asked[-1] == ("1,3",) else [9.0, 9.0, 1.0, 1.0, 1.0, 1.0]
        lines = [{"kind": "iteration", "seconds": each} for each in taken]
        if asked[-1] == ("1,3",):
            lines[2] |= {"seconds": 5.0, "moved": [0, 1, 2], "move_seconds": 3.0}
        Path(words[words.index("--metrics") + 1]).write_text("\n".join(map(json.dumps, lines)))
        return {}

    monkeypatch.setattr(ranks, "penstock", ran)
    runner = Runner(Choices(repeats=1, graph=str(tmp_path / "any.h5")))
    ranks.ranks(runner)
    assert asked[:4] == [("1,1", "--no-repartition"), ("1,1",), ("1,3", "--no-repartition"), ("1,3",)]
    found = {figure.name.removeprefix("any ranks cpu,cpu "): figure.median for figure in runner.figures}
    told = [found[f"uneven, moving, {part}"] for part in ("sweep 2", "sweeps until even", "moves", "moving")]
    assert told == [2.0, 3.0, 1.0, 3.0]


def test_two_checkouts_take_turns(tmp_path) -> None:
    """A copy of this one measures the same figures, each as often, in a process of its own."""
    other = tmp_path / "other"
    other.mkdir()
    for floor in ("engine", "storage", "transfer", "tools"):
        (other / floor).symlink_to(ROOT / floor)
    said: list[str] = []
    choices = Choices(repeats=2, scale=8, only=("--help",))
    mine, its = alternate(ROOT, other, ["cpu"], choices, said.append)
    assert [(f.suite, f.name, f.unit, len(f.values)) for f in mine] == [("cpu", "penstock --help", "s", 2)]
    assert [(f.name, len(f.values)) for f in its] == [("penstock --help", 2)]
    assert said == ["penstock --help"]


def test_jobs_are_measured_from_command_to_prompt(tmp_path) -> None:
    """On a graph that is made where none is: wall time, iterations, CPU time; the page cache and answers are left."""
    graph = tmp_path / "made.h5"
    runner = Runner(Choices(repeats=1, scale=6, graph=str(graph), folder=str(tmp_path), only=("wcc",)))
    jobs.jobs(runner)
    values = {figure.name: figure.values[0] for figure in runner.figures}
    assert values["made cpu wcc"] > values["made cpu wcc iterations"] > 0
    assert "made cpu wcc cpu" in values
    assert {"made cpu wcc stage imports", "made cpu wcc stage exit"} <= values.keys()
    stages = sum(value for name, value in values.items() if " stage " in name)
    assert 0 < stages <= values["made cpu wcc"] * 1.001, "short ones are left out"
    assert sorted(tmp_path.iterdir()) == [graph]


def test_a_cold_job_finds_rates_and_no_kernels(tmp_path, monkeypatch) -> None:
    (tmp_path / "penstock" / "kernels").mkdir(parents=True)
    (tmp_path / "penstock" / "rates-0a.json").write_text("{}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with jobs.kernels(tmp_path, compiled=False) as variables:
        found = list(Path(variables["XDG_CACHE_HOME"]).rglob("*"))
        assert [path.name for path in found if path.is_file()] == ["rates-0a.json"]
        assert variables["NUMBA_CACHE_DIR"] == ""
    with jobs.kernels(tmp_path, compiled=True) as variables:
        assert variables == {}
