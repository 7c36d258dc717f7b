"""The suite `peers`: files in other programs' formats, what their output says, and how answers are compared."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks import command
from benchmarks.peers import formats, process, suite
from benchmarks.peers.answers import difference, levels_of
from benchmarks.peers.systems import ACGraph, Blaze, Gap, GridGraph
from benchmarks.runner import Choices, Runner, penstock
from penstock.engine import Graph

ROWS = [[1, 2], [0], [0, 3], [2], []]
OFFSETS, NEIGHBORS = [0, 2, 3, 5, 6, 6], [1, 2, 0, 0, 3, 2]
WEIGHTS = [7, 9, 7, 9, 4, 4]
EDGES = [(0, 1, 7), (0, 2, 9), (2, 3, 4)]


@pytest.fixture
def graph(tmp_path) -> Graph:
    lines = "".join(f"{u} {v} {w}\n" for u, v, w in EDGES)
    (tmp_path / "five.txt").write_text(lines + "4 4 1\n")
    penstock("convert", tmp_path / "five.txt", tmp_path / "five.h5", "--weights", "--undirected", "--drop-self-loops")
    return Graph.open(tmp_path / "five.h5")


@pytest.mark.parametrize("weights", [False, True])
def test_gap_reads_counts_offsets_and_neighbors(graph, tmp_path, weights) -> None:
    formats.write_gap(graph, tmp_path / "x.sg", weights=weights)
    data = (tmp_path / "x.sg").read_bytes()
    assert data[0] == 0
    assert np.frombuffer(data, "<i8", 2 + 6, 1).tolist() == [6, 5, *OFFSETS]
    rest = np.frombuffer(data, "<i4", -1, 1 + 8 * 8)
    assert rest.tolist() == (np.column_stack([NEIGHBORS, WEIGHTS]).ravel().tolist() if weights else NEIGHBORS)


def test_acgraph_reads_csr_arrays_and_their_counts(graph, tmp_path) -> None:
    formats.write_csr(graph, tmp_path / "csr")
    assert np.fromfile(tmp_path / "csr" / "offset", "<u8").tolist() == OFFSETS
    assert np.fromfile(tmp_path / "csr" / "data", "<u4").tolist() == NEIGHBORS
    assert (tmp_path / "csr" / "meta").read_bytes() == bytes([4, 8, 0, 5, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0])


def test_blaze_reads_an_aligned_index_and_whole_pages(graph, tmp_path) -> None:
    formats.write_blaze(graph, tmp_path / "index", tmp_path / "edges")
    index, edges = (tmp_path / "index").read_bytes(), (tmp_path / "edges").read_bytes()
    assert np.frombuffer(index, "<u8", 5).tolist() == [0, 0, 5, 6, 0]
    assert np.frombuffer(index, "<u4", -1, 64).tolist() == [2, 1, 2, 1, *[0] * 12]
    assert len(edges) == formats.PAGE
    assert np.frombuffer(edges, "<u4", 6).tolist() == NEIGHBORS


def test_gridgraph_reads_pairs(graph, tmp_path) -> None:
    formats.write_pairs(graph, tmp_path / "pairs")
    pairs = np.fromfile(tmp_path / "pairs", "<u4").reshape(-1, 2).tolist()
    assert pairs == [[u, v] for u, row in enumerate(ROWS) for v in row]


@pytest.mark.parametrize(
    ("system", "text", "seconds"),
    [
        (Gap, "Read Time:           0.3\nTrial Time:          0.07934\nTrial Time:          12.5\n", [0.07934, 12.5]),
        (ACGraph, "[REPORT] total_time: 3365.892ms, graph_init: 57.064ms, calc: 3308.367ms\n", 3.308367),
        (Blaze, "STAT, CountLargest, Time, TMAX, 821\nSTAT, WCC_MAIN, Time, TMAX, 54261\n", 54.261),
        (GridGraph, "      1: 1\ndiscovered 239 vertices from 12 in 5.45 seconds.\n", 5.45),
    ],
)
def test_what_the_output_of_a_program_says(system, text, seconds) -> None:
    assert system.seconds(text) == seconds


def test_levels_follow_from_parents() -> None:
    assert levels_of(np.array([-3, 2, 2, 1]), 2).tolist() == [2**32 - 1, 1, 0, 2]
    with pytest.raises(RuntimeError, match="do not lead to the source"):
        levels_of(np.array([1, 0, 2]), 2)


U, F = np.uint32, np.float64


@pytest.mark.parametrize(
    ("algorithm", "theirs", "ours", "differs"),
    [
        ("bfs", [0, 0, -1], {"level": np.array([0, 1, 2**32 - 1], U)}, ""),
        ("bfs", [0, 0, 1], {"level": np.array([0, 1, 1], U)}, "1 of 3 differ"),
        ("sssp", [0, 5, 2**30 - 1 + 2**30], {"distance": np.array([0, 5, 2**32 - 1], U)}, ""),
        ("sssp", [0, 5, 7], {"distance": np.array([0, 6, 2**32 - 1], U)}, "2 of 3 differ"),
        ("cc", [2, 1, 2], {"component": np.array([0, 1, 0], U)}, ""),
        ("cc", [0, 1, 2], {"component": np.array([0, 1, 0], U)}, "1 of 3 differ"),
        ("pagerank", [2.0, 1.0, 1.0], {"rank": np.array([0.5, 0.25, 0.25], F)}, ""),
        ("pagerank", [1.0, 1.0, 2.0], {"rank": np.array([0.5, 0.25, 0.25], F)}, "L1 distance 0.5"),
        ("betweenness", [9.0, 1.0, 0.5], {"betweenness": np.array([0, 6, 3], F)}, ""),
        ("betweenness", [9.0, 1.0, 0.5], {"betweenness": np.array([0, 6, 6], F)}, "scores 0.5 apart"),
        ("triangles", [2], {"triangles": np.array([2, 2, 2])}, ""),
        ("triangles", [2], {"triangles": np.array([1, 1, 1])}, "1 of 1 differ"),
    ],
)
def test_answers_are_compared_vertex_by_vertex(algorithm, theirs, ours, differs) -> None:
    assert difference(algorithm, np.array(theirs), ours, 0) == differs


def test_a_program_that_fails_or_lasts_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="exit code 3\nwhy"):
        process.run([sys.executable, "-c", "print('why'); raise SystemExit(3)"])
    with pytest.raises(RuntimeError, match=r"was stopped after 0\.1 s"):
        process.run([sys.executable, "-c", "import time; time.sleep(60)"], limit=0.1)


FAKE = """#!{python}
import os, sys
import numpy as np
words = sys.argv
trials = int(words[words.index("-n") + 1])
print("Trial Time:  0.5\\n" * trials)
if path := os.environ.get("PEER_ANSWERS"):
    np.array({answer}, dtype="i4").tofile(path)
"""


@pytest.mark.parametrize(("answer", "wrong"), [([0, 1, 2, 3, 4], 1), ([0, 0, 0, 0, 4], 0)])
def test_the_suite_runs_both_in_turn_and_compares(graph, tmp_path, answer, wrong, capsys) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "cc").write_text(FAKE.format(python=sys.executable, answer=answer))
    (programs / "cc").chmod(0o755)
    choices = Choices(
        repeats=2, graph=str(tmp_path / "five.h5"), folder=str(tmp_path), only=("cc",), peers={"gap": str(programs)}
    )
    runner = Runner(choices)
    suite.peers(runner)
    figures = {figure.name: figure for figure in runner.figures}
    assert list(figures) == [f"five memory cc{part}" for part in (" gap", " penstock", " gap/penstock", " load")]
    assert figures["five memory cc gap"].values == (0.5, 0.5)
    assert len(runner.wrong) == wrong
    words = ["--graph", choices.graph, "--folder", choices.folder, "--peer", f"gap={programs}", "--only", "cc"]
    assert command.main(["peers", *words, "--repeats", "1"]) == wrong
    assert ("WRONG: five memory cc" in capsys.readouterr().out) == bool(wrong)
    assert Path(tmp_path, "five.sg").exists()
