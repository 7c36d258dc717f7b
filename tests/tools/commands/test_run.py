"""`penstock run`: answers in original ids, files of every kind, user's programs, and what it took."""

import signal
import subprocess
import sys
import time
from inspect import signature
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow.parquet
import pytest
from penstock.engine.programs.catalogue import CATALOGUE, ProgramInfo
from penstock.tools import cli
from penstock.tools.base.find_program import find_program
from penstock.tools.commands import run
from support.commands import answered, refused

EDGES = """
100 200 4
100 300 1
300 200 2
200 400 7
500 500 1
600 500 3
"""

OWN = """
import numpy as np
from penstock.engine import Field, Program, Start

class Spread(Program):
    '''The largest number of steps that any message took to a vertex, from everywhere.'''
    steps = Field(np.uint32)
    combine = "max"
    max_iter = 50

    def __init__(self, limit):
        self.limit = limit

    def edge(steps):
        return steps + 1

    def vertex(steps, incoming, limit):
        return min(max(steps, incoming), limit)
"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    text = folder / "edges.txt"
    text.write_text(EDGES)
    path = folder / "g.h5"
    arguments = [str(text), str(path), "--renumber", "--weights", "--direction", "both", "--quiet"]
    assert cli.run_command(["convert", *arguments]) == 0
    return path


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    """Run `penstock run` to success; return its JSON."""
    return answered(capsys, "run", *arguments, silent=True)


def test_bfs_writes_levels_and_parents_in_original_ids(
    graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "levels.csv"
    facts = told(capsys, "bfs", graph, "--source", 100, "--output", output)
    assert output.read_text().splitlines() == [
        "vertex,level,parent",
        "100,0,100",
        "200,1,100",
        "300,1,100",
        "400,2,200",
        "500,,",
        "600,,",
    ]
    assert facts["fields"]["level"] == {"reached": 4, "min": 0, "max": 2}
    assert facts["parameters"] == {"source": 100}
    assert facts["iterations"] >= 2
    assert facts["peak_memory_bytes"] > 1 << 20


def test_other_formats_hold_the_same_table(graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("d.parquet", "d.h5", "d.npy"):
        told(capsys, "sssp", graph, "--source", 100, "--output", tmp_path / name)
    table = pyarrow.parquet.read_table(tmp_path / "d.parquet").to_pydict()
    assert table == {
        "vertex": [100, 200, 300, 400, 500, 600],
        "distance": [0, 3, 1, 10, None, None],
    }
    with h5py.File(tmp_path / "d.h5") as file:
        assert file["vertex"][:].tolist() == table["vertex"]
        assert file["distance"][:4].tolist() == [0, 3, 1, 10]
    records = np.load(tmp_path / "d.npy")
    assert records["vertex"].tolist() == table["vertex"]
    assert records["distance"][:4].tolist() == [0, 3, 1, 10]


@pytest.mark.parametrize(
    ("arguments", "told_first", "weighted"),
    [
        (["pagerank", "--max-iter", "7"], "pagerank max_iter=7, weighted, on ", True),
        (["pagerank", "--no-weight"], "pagerank weight=False, unweighted, on ", False),
        (["sssp", "--source", "100", "--no-weight"], "sssp weight=False source=100, unweighted, on ", False),
        (["hits"], "hits, weighted, on ", True),
        (["wcc"], "wcc, unweighted, on ", False),
    ],
)
def test_the_first_line_says_how_edges_count(
    graph: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], told_first: str, weighted: bool
) -> None:
    """On a graph with weights, of a run as of a dry run; JSON says it too."""
    for way, ending in (([], ""), (["--dry-run"], " (dry run)")):
        assert cli.run_command(["run", arguments[0], str(graph), *arguments[1:], *way]) == 0
        assert capsys.readouterr().out.splitlines()[0] == f"{told_first}{graph}{ending}"
    assert told(capsys, arguments[0], graph, *arguments[1:])["weighted"] is weighted


@pytest.mark.parametrize("info", CATALOGUE, ids=lambda info: info.name)
def test_a_program_has_a_page_of_its_own(
    info: ProgramInfo, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of its names is typed: what it computes, its answer, and a command line that has what it needs."""
    monkeypatch.chdir(tmp_path)
    for name in ("graph.h5", "fixed.csv", "inputs.csv"):
        Path(name).touch()
    for word in (info.name, *info.aliases[:1]):
        assert cli.run_command(["run", word, "--help"]) == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert info.line in shown
        assert f"Answer: {info.answer}".replace("`", "") in shown
    example = shown[shown.index(f"penstock run {info.name} graph.h5") : shown.index(f"--output {info.name}.csv")]
    words = [*example.split()[2:], "--output", f"{info.name}.csv"]
    given = run.command.make_context("run", words).params
    needed = [
        each.name for each in signature(find_program(info.name)).parameters.values() if each.default is each.empty
    ]
    assert all(given[name] for name in needed)


def test_the_rule_of_weights_is_in_the_help(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command(["run", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "--weight / --no-weight" in shown
    assert "Edges count by their weights where the graph has some" in shown
    assert "A graph must have weights for cf." in shown
    assert cli.run_command(["run", "cf", "--help"]) == 0
    assert "The graph must have weights." in capsys.readouterr().out
    assert "bfs does not take --weight" in refused(capsys, "run", "bfs", graph, "--source", "100", "--no-weight")


def test_an_earlier_answer_is_named_as_its_option(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command(["run", "louvain", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "  --from " in shown
    assert "--set earlier" not in shown
    message = refused(capsys, "run", "bfs", graph, "--source", "100", "--from", "before.h5")
    assert "bfs does not take --from; it takes --source" in message
    assert cli.run_command(["run", "trussness", "--help"]) == 0
    assert "trussness: the only one that is wanted" in " ".join(capsys.readouterr().out.split())


def test_personalization_comes_from_a_file(graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.txt").write_text("600\n")
    facts = told(capsys, "pagerank", graph, "--personalization", tmp_path / "p.txt", "--top", 6)
    ranks = {row["vertex"]: row["rank"] for row in facts["top"]}
    assert ranks[500] > ranks[600] > ranks[100] == 0


def test_a_users_program_runs(graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "my_program.py"
    path.write_text(OWN)
    output = tmp_path / "steps.csv"
    told(capsys, f"{path}:Spread", graph, "--set", "limit=2", "--output", output)
    rows = dict(line.split(",") for line in output.read_text().splitlines()[1:])
    assert rows == {"100": "0", "200": "2", "300": "1", "400": "2", "500": "2", "600": "0"}


@pytest.mark.parametrize(
    "options",
    [
        ["--direction", "push", "--threads", "1"],
        ["--direction", "pull", "--mode", "sync"],
        ["--direct-io", "--host-memory", "64MiB", "--partition-bytes", "1MiB"],
    ],
)
def test_execution_options_change_no_answer(
    graph: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    output = tmp_path / "levels.csv"
    told(capsys, "bfs", graph, "--source", 100, "--output", output, *options)
    assert "400,2,200" in output.read_text()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["walktrap", "{g}"], "walktrap"),
        (["bfs", "{g}"], "--source"),
        (["bfs", "{g}", "--source", "5"], "vertex 5 is not in the graph"),
        (["bfs", "{g}", "--source", "-1"], "-1"),
        (["bfs", "{g}", "--source", "100", "--damping", "0.5"], "--damping"),
        (["pagerank", "{g}", "--damping", "1.5"], "1.5"),
        (["wcc", "{g}", "--set", "depth=3"], "depth"),
        (["wcc", "{g}", "--set", "depth"], "name=value"),
        (["absent.py:X", "{g}"], "absent.py"),
        (["wcc", "{g}", "--output", "missing/x.csv"], "missing"),
        (["pagerank", "{g}", "--personalization", "absent"], "absent"),
    ],
)
def test_bad_runs_are_refused_by_name(
    graph: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    named: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert named in refused(capsys, "run", *(text.format(g=graph) for text in arguments))
    assert list(tmp_path.iterdir()) == []


def test_people_are_told_what_it_took(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command(["run", "wcc", str(graph), "--top", "1"]) == 0
    shown = capsys.readouterr().out
    for word in ("wcc, unweighted, on", "iterations", "time", "read from disk", "peak memory", "component"):
        assert word in shown
    assert cli.run_command(["run", "wcc", str(graph), "--top", "1", "--quiet"]) == 0
    assert capsys.readouterr().out == ""


def test_a_stopped_run_leaves_nothing(graph: Path, tmp_path: Path) -> None:
    """Stopped once its metrics tell of iterations; they stay, in a folder of their own."""
    output, metrics, number = tmp_path / "ranks.csv", graph.with_name("metrics.jsonl"), signal.SIGINT
    endless = ["--tol", "0", "--max-iter", "1000000000", "--output", str(output), "--metrics", str(metrics)]
    command = [sys.executable, "-m", "penstock.tools.cli", "run", "pagerank", str(graph), *endless]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while not (metrics.exists() and b'"iteration"' in metrics.read_bytes()):
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.send_signal(number)
        complaint = process.communicate(timeout=30)[1]
    assert process.returncode == 128 + number
    wanted = f"penstock: stopped by {number.name}; nothing was left behind: --checkpoint DIR would keep its state"
    assert complaint.splitlines()[-1] == wanted
    assert list(tmp_path.iterdir()) == []


def test_help_of_a_program_has_its_parameters_and_its_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command(["run", "page_rank", "--help"]) == 0
    page = capsys.readouterr().out
    for words in ("penstock run pagerank GRAPH.h5", "--damping", "default 0.85", "rank, sum 1", "--set nstart=..."):
        assert words in page
    assert "--host-memory" not in page
    assert cli.run_command(["run", "personalized_pagerank", "--help"]) == 0
    assert "graph.h5 --source 42 --output personalized_pagerank.csv\n" in capsys.readouterr().out
    assert cli.run_command(["run", "--help"]) == 0
    assert "--host-memory" in capsys.readouterr().out


def test_an_answer_has_our_name_of_a_program(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "connected-components", graph)["program"] == "wcc"
