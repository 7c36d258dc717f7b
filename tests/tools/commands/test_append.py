"""`penstock append`, and lists on the command line: converted, described, verified, grown, sorted."""

from __future__ import annotations

from pathlib import Path

import pytest
from penstock.engine import append, compact, convert, remove, run
from penstock.storage.base.errors import InputError
from penstock.tools.cli import run_command
from support.commands import answered, refused


def test_a_list_from_text_to_sorted_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("0 1\n1 2\n2 0\n")
    (tmp_path / "b.txt").write_text("5 1\n1 1\n")
    graph = tmp_path / "g.h5"
    made = answered(capsys, "convert", tmp_path / "a.txt", graph, "--layout", "list")
    assert (made["vertices"], made["edges"]) == (3, 3)
    facts = answered(capsys, "info", graph, "--degrees")
    assert facts["layout"] == "list"
    assert facts["degrees"]["in"]["max"] == 1
    grown = answered(capsys, "append", graph, tmp_path / "b.txt")
    assert (grown["command"], grown["vertices"], grown["edges"]) == ("append", 4, 5)
    assert answered(capsys, "verify", graph)["whole"]
    assert answered(capsys, "info", graph)["provenance"]["appended"]["times"] == 1
    rows = answered(capsys, "convert", graph, tmp_path / "rows.h5", "--direction", "both")
    assert (rows["vertices"], rows["edges"]) == (4, 5)
    found = run("wcc", tmp_path / "rows.h5")
    assert (found.ids.tolist(), found.fields["component"].tolist()) == ([0, 1, 2, 5], [0, 0, 0, 0])


def test_what_append_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("0 1\n")
    (tmp_path / "s.txt").write_text("x y\n")
    answered(capsys, "convert", tmp_path / "a.txt", tmp_path / "g.h5", "--layout", "list")
    assert "is an input too" in refused(capsys, "append", tmp_path / "g.h5", tmp_path / "g.h5")
    assert "are strings" in refused(capsys, "append", tmp_path / "g.h5", tmp_path / "s.txt", "--string-ids")
    assert "does not exist" in refused(capsys, "append", tmp_path / "none.h5", tmp_path / "a.txt")


def test_sorted_rows_grow_by_edges_with_names_and_weights(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The names of the graph and those of the input are one set of vertices; weights are taken unasked."""
    (tmp_path / "a.txt").write_text("rome oslo 3\noslo bern 300\n")
    (tmp_path / "b.txt").write_text("bern aden 70000\n")
    graph = tmp_path / "g.h5"
    answered(capsys, "convert", tmp_path / "a.txt", graph, "--renumber", "--weights", "--undirected")
    grown = answered(capsys, "append", graph, tmp_path / "b.txt")
    assert (grown["vertices"], grown["edges"]) == (4, 6)
    found = run("sssp", graph, source="rome").to_dict()
    assert found == {"rome": 0, "oslo": 3, "bern": 303, "aden": 70303}
    assert "has weights, and" in refused(capsys, "append", graph, tmp_path / "b.txt", "--no-weights")


def test_rows_that_are_changed_and_written_in_one_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text("0 1\n1 2\n2 0\n")
    (tmp_path / "b.txt").write_text("3 1\n1 1\n")
    graph = tmp_path / "g.h5"
    answered(capsys, "convert", tmp_path / "a.txt", graph, "--direction", "both")
    assert answered(capsys, "append", graph, tmp_path / "b.txt")["edges"] == 5
    facts = answered(capsys, "remove", graph, tmp_path / "b.txt", "--vertex", 0)
    assert (facts["command"], facts["vertices"], facts["edges"]) == ("remove", 4, 1)
    assert answered(capsys, "verify", graph)["whole"]
    assert len(answered(capsys, "info", graph)["provenance"]["changes"]) == 2
    assert run_command(["info", str(graph)]) == 0
    assert "{" not in capsys.readouterr().out, "what is for programs is left to --json"
    assert run("wcc", graph).fields["component"].tolist() == [0, 1, 1, 3]
    assert "has no edge 1 1, nor 1 more" in refused(capsys, "remove", graph, tmp_path / "b.txt")
    assert "name a file of EDGES, or --vertex" in refused(capsys, "remove", graph)
    (tmp_path / "none.txt").write_text("# nothing\n")
    assert "no edge of" in refused(capsys, "remove", graph, tmp_path / "none.txt")
    assert "no edge of" in refused(capsys, "remove", graph, "--vertex", 0)
    assert "none.h5 does not exist" in refused(capsys, "run", "wcc", graph, "--from", tmp_path / "none.h5")
    assert answered(capsys, "compact", graph)["changed"]
    assert not answered(capsys, "compact", graph)["changed"]
    assert sorted(path.name for path in tmp_path.glob("*.h5")) == ["g.h5"]


def test_graphs_are_changed_from_python(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("from,to\n0,1\n1,2\n")
    (tmp_path / "b.csv").write_text("from,to\n2,0\n")
    graph = convert(tmp_path / "a.csv", tmp_path / "g.h5")
    assert (graph.edges, append(graph.path or "", tmp_path / "b.csv").edges) == (2, 3)
    assert remove(tmp_path / "g.h5", [tmp_path / "b.csv"]).edges == 2
    assert remove(tmp_path / "g.h5", vertices=[2]).edges == 1
    assert compact(tmp_path / "g.h5").out.splice is None
    with pytest.raises(InputError, match="vertex 9 is not in the graph"):
        remove(tmp_path / "g.h5", vertices=[9])
