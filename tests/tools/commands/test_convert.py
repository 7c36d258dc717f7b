"""`penstock convert`, `generate` and `info`: options reach storage, reports are true, no debris."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from penstock.storage.format.graph import Graph
from penstock.tools import cli
from support.commands import answered, refused
from support.covering import covering

PENSTOCK = [sys.executable, "-m", "penstock.tools.cli"]
EDGES = "# a comment\n10 20 5\n20 30 1\n10 20 3\n30 30 2\n"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "edges.txt"
    path.write_text(EDGES)
    return path


def test_a_conversion_says_what_it_made(text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = text.with_suffix(".h5")
    facts = answered(capsys, "convert", text, output, "--renumber", "--weights")
    assert (facts["vertices"], facts["edges"], facts["input_edges"]) == (3, 4, 4)
    assert facts["output_bytes"] == output.stat().st_size
    assert facts["bytes_per_edge"] == facts["output_bytes"] / 4
    assert facts["weight_dtype"] == "uint8"
    assert facts["seconds"] >= sum(facts["stage_seconds"].values()) * 0.9
    assert facts["peak_memory_bytes"] > 1 << 20
    ids = Graph.open(output).original_ids()
    assert ids is not None
    assert ids.tolist() == [10, 20, 30]


@pytest.mark.parametrize(
    ("options", "edges", "directed", "both"),
    [
        ([], 4, True, False),
        (["--direction", "both"], 4, True, True),
        (["--drop-self-loops"], 3, True, False),
        (["--dedupe", "first"], 3, True, False),
        (["--undirected"], 7, False, True),
        (["--symmetrize"], 5, False, True),
    ],
)
def test_options_reach_storage(
    text: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    edges: int,
    directed: bool,
    both: bool,
) -> None:
    output = text.with_suffix(".h5")
    answered(capsys, "convert", text, output, "--renumber", *options)
    graph = Graph.open(output)
    assert (graph.edges, graph.directed, graph.into is not None) == (edges, directed, both)


@pytest.mark.parametrize("threads", [1, 3])
def test_lines_of_another_width_are_refused_wherever_they_are(
    tmp_path: Path, threads: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each file by its first line, in every block of it, compressed too; the ways out that the message names work."""
    pairs, triples, output = tmp_path / "pairs.txt", tmp_path / "triples.txt.gz", tmp_path / "g.h5"
    pairs.write_text("".join(f"{i} {i + 1}\n" for i in range(50_000)))
    triples.write_bytes(gzip.compress("".join(f"{i},{i + 1},7\n" for i in range(50_000)).encode()))
    few = ("--threads", threads)
    assert answered(capsys, "convert", pairs, triples, output, *few)["input_edges"] == 100_000
    triples.write_bytes(gzip.compress(gzip.decompress(triples.read_bytes()) + b"; made in 2004\n1,2\n"))
    assert "line 50001: source ';'" in refused(capsys, "convert", pairs, triples, output, "--force", *few)
    found = refused(capsys, "convert", pairs, triples, output, "--force", "--comment", ";", *few)
    assert f"{triples}, line 50002: it has 2 columns, and the first line 3; --columns 0,1 reads" in found
    options = ("--comment", ";", "--columns", "0,1", "--force", *few)
    assert answered(capsys, "convert", pairs, triples, output, *options)["input_edges"] == 100_001
    assert "'12' is not one character" in refused(capsys, "convert", pairs, output, "--force", "--comment", "12")
    assert "the format is csv" in refused(
        capsys, "convert", pairs, output, "--force", "--comment", ";", "--format", "csv"
    )


def test_raw_csr_arrays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.array([0, 2, 3], "<u8").tofile(tmp_path / "offsets")
    np.array([0, 1, 0], "<u4").tofile(tmp_path / "neighbors")
    names = [tmp_path / name for name in ("offsets", "neighbors", "g.h5")]
    facts = answered(capsys, "convert", "--format", "csr", *names)
    assert (facts["vertices"], facts["edges"]) == (2, 3)


@covering(
    "options",
    [[], ["--undirected"], ["--layout", "list"], ["--order", "degree"]],
    strength=1,
    rare=[["--undirected"], ["--order", "degree"]],
)
def test_files_are_read_again_for_late_ids_and_pipes_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    """An id of 2^38 and more behind the first block needs a table from the beginning; the result is as with it."""
    late, small = tmp_path / "late.txt", ("--host-memory", "64MiB", "--threads", 1)
    late.write_text("30 40\n" * 400_000 + f"{1 << 40} 30\n")
    facts = answered(capsys, "convert", late, tmp_path / "wanted.h5", *small, *options, "--renumber")
    code = cli.run_command(["convert", *map(str, (late, tmp_path / "g.h5", *small, *options)), "--json"])
    shown = capsys.readouterr()
    assert code == 0, shown.err
    assert f"{late} is read again" in shown.err
    found = json.loads(shown.out)
    for name in ("vertices", "edges", "without_edges", "input_edges", "input_bytes"):
        assert found[name] == facts[name]
    graph, wanted = Graph.open(tmp_path / "g.h5"), Graph.open(tmp_path / "wanted.h5")
    assert graph.original_ids().tolist() == wanted.original_ids().tolist()
    assert graph.provenance == wanted.provenance
    for name in ("g", "wanted"):
        answered(capsys, "export", tmp_path / f"{name}.h5", tmp_path / f"{name}.tsv")
    assert (tmp_path / "g.tsv").read_bytes() == (tmp_path / "wanted.tsv").read_bytes()
    piped = [*PENSTOCK, "convert", "-", str(tmp_path / "p.h5"), *map(str, small), *options]
    with late.open("rb") as text, subprocess.Popen(["cat"], stdin=text, stdout=subprocess.PIPE) as pipe:
        done = subprocess.run(piped, stdin=pipe.stdout, capture_output=True, text=True)
    assert done.returncode == 2
    assert "--renumber" in done.stderr
    assert not (tmp_path / "p.h5").exists()


def test_stripes_and_plain_encoding(text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stripes = [tmp_path / "s0", tmp_path / "s1"]
    for folder in stripes:
        folder.mkdir()
    asked = [word for folder in stripes for word in ("--stripe", folder)]
    output = tmp_path / "g.h5"
    answered(capsys, "convert", text, output, "--renumber", "--encoding", "plain", *asked)
    assert all(len(list(folder.iterdir())) == 1 for folder in stripes)
    facts = answered(capsys, "info", output)
    assert facts["adjacencies"][0]["encoding"] == "plain"
    assert len(facts["files"]) == 3
    stripes[0].rename(tmp_path / "elsewhere")
    assert cli.run_command(["info", str(output)]) == 2
    assert "--stripe" in capsys.readouterr().err
    answered(capsys, "info", output, "--stripe", tmp_path / "elsewhere", "--stripe", stripes[1])


def test_existing_output_needs_force(text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = text.with_suffix(".h5")
    output.write_text("precious")
    assert cli.run_command(["convert", str(text), str(output), "--renumber"]) == 2
    assert "--force" in capsys.readouterr().err
    assert output.read_text() == "precious"
    answered(capsys, "convert", text, output, "--renumber", "--force")


@pytest.mark.parametrize(
    ("model", "vertices", "edges", "directed"),
    [
        (["rmat", "--scale", "8", "--weights", "1..63"], 256, 4096, True),
        (["uniform", "--vertices", "100", "--edges", "1000"], 100, 1000, True),
        (["grid", "--rows", "20", "--columns", "30"], 600, 1150, False),
        (["web", "--vertices", "500", "--edge-factor", "8"], 500, 4000, True),
    ],
)
def test_generated_graphs_are_graphs(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    model: list[str],
    vertices: int,
    edges: int,
    directed: bool,
) -> None:
    output = tmp_path / "g.h5"
    facts = answered(capsys, "generate", *model, "--output", output)
    assert facts["command"] == "generate"
    assert facts["model"].startswith(model[0])
    assert (facts["vertices"], facts["input_edges"]) == (vertices, edges)
    graph = Graph.open(output)
    assert (graph.vertices, graph.input_edges, graph.directed) == (vertices, edges, directed)


def test_a_generated_file_and_its_text_are_one_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = ["generate", "rmat", "--scale", "9", "--weights", "1..63"]
    answered(capsys, *model, "--output", tmp_path / "a.h5")
    answered(capsys, *model, "--output", tmp_path / "g.txt.gz")
    (tmp_path / "ids").write_text("\n".join(map(str, range(512))))
    answered(capsys, "convert", tmp_path / "g.txt.gz", tmp_path / "b.h5", "--weights",
         "--vertices", tmp_path / "ids")  # fmt: skip
    a, b = (answered(capsys, "info", tmp_path / name, "--degrees") for name in ("a.h5", "b.h5"))
    for name in ("vertices", "edges", "weight_dtype", "adjacencies", "degrees"):
        assert a[name] == b[name]


def test_info_says_what_there_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "g.h5"
    answered(capsys, "generate", "grid", "--rows", "5", "--columns", "5", "--output", output)
    facts = answered(capsys, "info", output, "--degrees")
    degrees = facts["degrees"]["out"]
    assert (degrees["max"], degrees["empty"], degrees["mean"]) == (4, 0, 80 / 25)
    assert degrees["percentiles"]["50"] == 3
    assert facts["hints"] == []
    assert cli.run_command(["info", str(output), "--degrees"]) == 0
    shown = capsys.readouterr().out
    assert "25 (uint32)" in shown
    assert "40 (undirected; 80 stored)" in shown
    assert "grid rows=5" in shown


def test_info_hints_at_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "g.h5"
    answered(capsys, "generate", "uniform", "--vertices", "3", "--edges", "0", "--output", output)
    hints = " ".join(answered(capsys, "info", output, "--degrees")["hints"])
    assert "--direction both" in hints
    assert "no weights" in hints
    assert "no edges" in hints


@pytest.mark.parametrize("options", [["--renumber"], ["--string-ids"]])
def test_strings_are_ids(tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    (tmp_path / "names.txt").write_text("zoe ann\nann bob\n")
    answered(capsys, "convert", tmp_path / "names.txt", tmp_path / "g.h5", *options)
    facts = answered(capsys, "run", "bfs", tmp_path / "g.h5", "--source", "zoe", "--top", 3)
    assert [entry["vertex"] for entry in facts["top"]] == ["zoe", "ann", "bob"]
    assert answered(capsys, "info", tmp_path / "g.h5")["renumbered"]


def test_two_sides_have_ids_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ratings.csv").write_text("user,film,stars\n1,1,4.5\n1,9,2\n5,1,3\n")
    answered(capsys, "convert", tmp_path / "ratings.csv", tmp_path / "g.h5", "--bipartite", "--weights")
    facts = answered(capsys, "info", tmp_path / "g.h5")
    assert (facts["vertices"], facts["sources"]) == (4, 2)
    assert cli.run_command(["info", str(tmp_path / "g.h5")]) == 0
    assert "2 sources, 2 targets" in capsys.readouterr().out
    facts = answered(capsys, "run", "bfs", tmp_path / "g.h5", "--source", "source:1", "--top", 9)
    assert [entry["vertex"] for entry in facts["top"]] == ["source:1", "target:1", "target:9"]
    assert cli.run_command(["run", "bfs", str(tmp_path / "g.h5"), "--source", "1"]) == 2
    assert "both sides" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "content", "vertices", "edges", "one_based"),
    [
        ("a.gr", "p sp 3 2\na 1 2 5\na 2 3 1\n", 3, 2, True),
        ("b.gr", "a 1 2 5\na 2 3 1\n", 3, 2, False),
        ("a.mtx", "%%MatrixMarket matrix coordinate pattern general\n3 3 1\n1 3\n", 3, 1, True),
        ("a.metis", "3 2 1\n2 5\n1 5 3 7\n2 7\n", 3, 2, True),
        ("a.adj", "0: 1 2\n7\n", 4, 2, False),
        ("a.graph-txt", "3\n1 2\n\n0\n", 3, 3, False),
    ],
)
def test_formats_by_name(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    content: str,
    vertices: int,
    edges: int,
    one_based: bool,
) -> None:
    (tmp_path / name).write_text(content)
    facts = answered(capsys, "convert", tmp_path / name, tmp_path / "g.h5")
    assert (facts["vertices"], facts["input_edges"], facts["one_based"]) == (vertices, edges, one_based)
    assert cli.run_command(["convert", str(tmp_path / name), str(tmp_path / "h.h5")]) == 0
    assert ("vertex 1 of the input is 0 here" in capsys.readouterr().out) == one_based


@pytest.mark.parametrize(
    ("content", "options", "told"),
    [
        ("1 2 0.5\n", [], True),
        ("from,to,km\n1,2,7.25\n", [], True),
        ("a b 7\n", ["--renumber"], True),
        ("1 2 0.5\n", ["--weights"], False),
        ("1 2 0.5\n", ["--no-weights"], False),
        ("1 2 0.5\n", ["--columns", "0,1"], False),
        ("1 2 road\n", [], False),
        ("1 2\n", [], False),
        ("", [], False),
    ],
)
def test_weights_that_were_not_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, options: list[str], told: bool
) -> None:
    (tmp_path / "a.txt").write_text(content)
    assert cli.run_command(["convert", str(tmp_path / "a.txt"), str(tmp_path / "g.h5"), *options]) == 0
    assert ("--weights takes it" in capsys.readouterr().out) == told


def test_names_in_a_format_of_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No option is recommended that the format refuses."""
    (tmp_path / "a.adj").write_text("ann: bob\n")
    assert cli.run_command(["convert", str(tmp_path / "a.adj"), str(tmp_path / "g.h5"), "--renumber"]) == 2
    told = capsys.readouterr().err
    assert "vertex 'ann' is not a number; ids of this format are whole numbers" in told
    assert "--" not in told


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            ["b.txt"],
            "b.txt does not end in .h5, and the last name is that of the graph file to write; add one, such as b",
        ),
        (["-"], "- stands for standard output, and this goes to a file"),
        (["--any-suffix", "a.txt"], "a.txt is an input too, and would be replaced"),
        (["--vertices", "g.h5", "g.h5"], "g.h5 is an input too, and would be replaced"),
        (["link.h5"], "link.h5 is an input too, and would be replaced"),
    ],
)
@pytest.mark.parametrize("force", [[], ["--force"]])
def test_an_output_that_is_an_input_or_no_graph_file_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    names: list[str],
    message: str,
    force: list[str],
) -> None:
    """As where the output was forgotten: the last input takes its place."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.txt", "g.h5"):
        Path(name).write_text("0 1\n")
    Path("link.h5").symlink_to("a.txt")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert message in refused(capsys, "convert", "a.txt", *names, *force)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_an_option_allows_any_name(text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = text.with_name("graph.penstock")
    answered(capsys, "convert", text, output, "--renumber", "--any-suffix")
    assert Graph.open(output).edges == 4


@pytest.mark.parametrize("command", [["rmat", "--scale", "3"], ["grid", "--rows", "2", "--columns", "2"]])
def test_a_generated_graph_goes_to_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "- stands for standard output" in refused(capsys, "generate", *command, "--output", "-")
    assert list(tmp_path.iterdir()) == []


def test_vertices_without_an_edge_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "e.txt").write_text("3 9\n9 30\n")
    (tmp_path / "v.txt").write_text("3\n9\n30\n31\n")
    graph = str(tmp_path / "g.h5")
    ways = {
        (): (0, False),
        ("--renumber",): (0, False),
        ("--no-renumber",): (28, True),
        ("--vertices", "v.txt"): (1, False),
        ("--vertices", "0:40"): (37, False),
    }
    for words, (count, unnamed) in ways.items():
        how = [str(tmp_path / word) if word.endswith(".txt") else word for word in words]
        assert cli.run_command(["convert", str(tmp_path / "e.txt"), graph, "--force", *how]) == 0
        told = capsys.readouterr().out
        assert cli.run_command(["info", graph]) == 0
        seen = capsys.readouterr().out
        for text in (told, seen):
            assert (f"{count} of the vertices" in text) == bool(count)
            assert ("--no-renumber: ids that do not occur" in text) == unnamed
        assert ("3 vertices have an edge" in seen) == unnamed
        assert answered(capsys, "info", graph)["without_edges"] == count


def test_csv_tells_the_columns_it_took(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trips.csv"
    path.write_text('day;from;to;km\n1;"New York";Los Angeles;3940\n')
    options = ("--columns", "from,to,km", "--string-ids", "--delimiter", "semicolon", "--force")
    facts = answered(capsys, "convert", path, tmp_path / "g.h5", *options)
    (taken,) = facts["columns"]
    assert (taken["source"], taken["target"], taken["weight"], taken["header"]) == ("from", "to", "km", True)
    assert cli.run_command(["convert", str(path), str(tmp_path / "g.h5"), *options]) == 0
    assert "source = 'from' (1), target = 'to' (2), weight = 'km' (3); not read: 'day' (0)" in capsys.readouterr().out


def test_the_command_line_keeps_its_dashes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "p.csv"
    path.write_text("ts,payer,payee\n1,2,3\n")
    assert "--columns payer,payee" in refused(capsys, "convert", path, tmp_path / "g.h5")
