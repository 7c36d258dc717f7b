"""`penstock similarity`: the same pairs as from Python, in the ids of the input, whole or not at all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from penstock.engine import Graph, from_edges, similarity
from penstock.engine.queries import pair_table
from penstock.tools import cli
from penstock.tools.commands import similarity as command
from support.commands import answered, refused


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("similarity") / "towns.h5"
    from_edges(["rome", "oslo", "bern", "rome"], ["oslo", "bern", "pa,ris", "pa,ris"], undirected=True).save(path)
    return path


def test_pairs_of_a_file(towns: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pairs.csv").write_text('source,target\nrome,bern\n# none\n\n"pa,ris",oslo,7\n')
    facts = answered(capsys, "similarity", towns, "--pairs", tmp_path / "pairs.csv", "--output", tmp_path / "s.csv")
    assert (facts["pairs"], facts["sharing"], facts["top"]) == (2, 2, [])
    lines = (tmp_path / "s.csv").read_text().replace('"', "").splitlines()
    assert lines == ["vertex,other,common,jaccard,overlap,cosine", "rome,bern,2,1,1,1", "pa,ris,oslo,2,1,1,1"]


def test_the_best_of_each(towns: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ("--k", 1, "--by", "cosine", "--source", "rome", "--source", "oslo", "--top", 1)
    facts = answered(capsys, "similarity", towns, *given)
    assert facts["top"] == [dict(zip(command_columns(), ("oslo", "pa,ris", 2, 1.0, 1.0, 1.0), strict=True))]
    assert facts["pairs"] == len(similarity(Graph.open(towns), k=1, sources=["rome", "oslo"]))
    assert cli.run_command(["similarity", str(towns), "--k", "2", "--missing-only"]) == 0
    shown = capsys.readouterr().out
    assert "4, 4 of them share a neighbor" in shown
    assert "bern" in shown


def command_columns() -> tuple[str, ...]:
    return ("vertex", "other", "common", "jaccard", "overlap", "cosine")


def test_refusals(towns: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "none").write_text("# nothing\n")
    (tmp_path / "short").write_text("rome bern\nrome\n")
    (tmp_path / "minus").write_text("3\t-4\n")
    (tmp_path / "there.csv").write_text("")
    for arguments, message in (
        ((), "give either --pairs, or --k"),
        (("--k", 1, "--pairs", tmp_path / "none"), "give either --pairs, or --k"),
        (("--pairs", tmp_path / "none"), "has no pair"),
        (("--pairs", tmp_path / "short"), "short:2: 'rome' is no pair"),
        (("--pairs", tmp_path / "minus"), "minus:1: .* negative"),
        (("--pairs", tmp_path / "gone"), "gone does not exist"),
        (("--pairs", tmp_path / "short", "--missing-only"), "leave them out with --pairs"),
        (("--k", 1, "--device", "cuda:0"), "the --k most similar are found on CPU cores"),
        (("--k", 1, "--device-memory", "1GiB"), "is for a GPU"),
        (("--k", 1, "--format", "csv"), "are for --output"),
        (("--k", 1, "--output", tmp_path / "s.npy"), "no format of pairs ends in"),
        (("--k", 1, "--output", tmp_path / "there.csv"), "--force"),
        (("--k", 1, "--source", "turin"), "vertex turin is not in the graph"),
        (("--k", 1, "--host-memory", "1MiB"), "too small"),
    ):
        assert re.search(message, refused(capsys, "similarity", towns, *arguments))


def test_measures_are_those_of_the_table() -> None:
    assert tuple(pair_table.MEASURES) == command.MEASURES
