"""`--csv-safe`: every command that writes CSV or TSV puts ' before a text that a spreadsheet takes for a formula."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable
from pathlib import Path

import penstock
import pytest
from penstock.storage.base.errors import InputError
from penstock.tools import cli
from support.commands import refused

FORMULAS = ["=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "\uff1d1+1", '=a,"b"']
BLANKS = ["\ttab", "\rreturn", "\nline"]
"""As `FORMULAS`; an id has no blanks around it."""
TITLE = "=job"
"""The name of a property."""
PLAIN = ["a", "1.5", "a=b", "'=x", 'x"y', "x,y", "é"]
COMMANDS = {
    "run": ["run", "degrees", "g.h5", "--join", TITLE, "--output", "out.csv"],
    "run, tsv": ["run", "degrees", "g.h5", "--join", TITLE, "--output", "out.tsv"],
    "export": ["export", "g.h5", "out.csv"],
    "export, gz": ["export", "g.h5", "out.tsv.gz"],
    "walk": ["walk", "g.h5", "--no-weight", "--length", "2", "--output", "out.csv"],
    "similarity": ["similarity", "g.h5", "--k", "3", "--output", "out.csv"],
}
PRINTED = ("run", "export", "walk")


def make(names: list[str], texts: list[str], title: str) -> None:
    """Write g.h5: a graph of these names, with a property of these texts and one of numbers, and with weights."""
    rows = [["id", title, "balance"], *([name, text, -1.5] for name, text in zip(names, texts, strict=True))]
    edges = [["s", "t", "w"], *([a, b, -1.5] for a, b in zip(names, names[1:] + names[:1], strict=True))]
    for path, lines in (("people.csv", rows), ("edges.csv", edges)):
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(lines)
    reading = ["--renumber", "--string-ids", "--header", "--columns", "s,t,w", "--undirected"]
    assert cli.run_command(["convert", "edges.csv", "g.h5", *reading, "--vertices", "people.csv"]) == 0


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a graph whose ids and whose property are such texts, and whose numbers are below 0."""
    monkeypatch.chdir(tmp_path)
    make([*FORMULAS, *PLAIN], [*PLAIN, *FORMULAS][: len(PLAIN) + len(FORMULAS) - len(BLANKS)] + BLANKS, TITLE)
    return tmp_path


def cells(data: bytes, *, tabs: bool) -> list[list[str]]:
    """The rows of a file, the header first."""
    return list(csv.reader(io.StringIO(data.decode(), newline=""), delimiter="\t" if tabs else ","))


def read(path: Path) -> list[list[str]]:
    """The rows of a written file."""
    data = path.read_bytes()
    return cells(gzip.decompress(data) if path.suffix == ".gz" else data, tabs=".tsv" in path.name)


def quoted(rows: list[list[str]], texts: Callable[[str], bool]) -> list[list[str]]:
    """The rows as they are written safely."""
    return [[f"'{cell}" if texts(cell) else cell for cell in row] for row in rows]


def formula(cell: str) -> bool:
    """Whether a text is one that has to be quoted."""
    return cell in (*FORMULAS, *BLANKS, TITLE)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_file_has_no_formula(name: str, graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = Path(next(word for word in COMMANDS[name] if word.startswith("out.")))
    assert cli.run_command(COMMANDS[name]) == 0
    plain = read(out)
    assert {cell for row in plain for cell in row} > set(FORMULAS)
    assert cli.run_command([*COMMANDS[name], "--csv-safe", "--force"]) == 0
    assert read(out) == quoted(plain, formula)


@pytest.mark.parametrize("name", PRINTED)
def test_standard_output_has_no_formula(name: str, graph: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    command = [word if word != "out.csv" else "-" for word in COMMANDS[name]] + ["--format", "csv", "-q"]
    assert cli.run_command(command) == 0
    plain = cells(capfdbinary.readouterr().out, tabs=False)
    assert {cell for row in plain for cell in row} > set(FORMULAS)
    assert cli.run_command([*command, "--csv-safe"]) == 0
    assert cells(capfdbinary.readouterr().out, tabs=False) == quoted(plain, formula)


def test_a_job_file_and_its_record_have_it(graph: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = '[[programs]]\nname = "degrees"\noutput = "out.csv"\n'
    Path("job.toml").write_text(f'graph = "g.h5"\n{program}csv-safe = true\n')
    for job, folder in (("job.toml", "one"), ("one/job.toml", "two")):
        assert cli.run_command(["run", job, "--run-dir", folder]) == 0
        assert {row[0] for row in read(Path(folder, "out.csv"))} >= {f"'{text}" for text in FORMULAS}
    assert "csv-safe = true" in Path("two/job.toml").read_text()
    Path("job.toml").write_text(f'graph = "g.h5"\n{program}')
    assert cli.run_command(["run", "job.toml", "--run-dir", "three"]) == 0
    assert "csv-safe" not in Path("three/job.toml").read_text()


def test_from_python(graph: Path) -> None:
    opened = penstock.Graph.open("g.h5")
    result = penstock.run("degrees", opened)
    result.to_csv("a.csv", csv_safe=True)
    result.write("b.tsv", csv_safe=True)
    with pytest.raises(InputError, match=r"^csv_safe is for CSV and TSV, .* is parquet"):
        result.write("b.parquet", csv_safe=True)
    penstock.walk(opened, length=1, weight=False).save("c.csv", csv_safe=True)
    penstock.similarity(opened, k=2).write("d.csv", csv_safe=True)
    for name in ("a.csv", "b.tsv", "c.csv", "d.csv"):
        assert {cell for row in read(Path(name)) for cell in row} >= {f"'{text}" for text in FORMULAS}
    with pytest.raises(InputError, match="csv_safe is for CSV and TSV, and the format of the output is parquet"):
        penstock.similarity(opened, k=2).write("d.parquet", csv_safe=True)
    with pytest.raises(InputError, match="unknown option 'csv_saf'; the options of output are csv_safe"):
        result.write("e.csv", csv_saf=True)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["run", "degrees", "g.h5", "--csv-safe"], "add --output FILE"),
        (["run", "degrees", "g.h5", "--csv-safe", "--output", "out.parquet"], "the format of the output is parquet"),
        (["run", "degrees", "g.h5", "--csv-safe", "--output", "-", "--format", "feather"], "is feather"),
        (["export", "g.h5", "out.npz", "--csv-safe"], "is npz"),
        (["walk", "g.h5", "--no-weight", "--output", "out.txt", "--csv-safe"], "is txt"),
        (["similarity", "g.h5", "--k", "1", "--csv-safe"], "are for --output FILE"),
        (["similarity", "g.h5", "--k", "1", "--csv-safe", "--output", "out.h5"], "is hdf5"),
    ],
)
def test_other_outputs_refuse_it(
    command: list[str], said: str, graph: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    before = sorted(graph.iterdir())
    told = refused(capsys, *command)
    assert "--csv-safe" in told
    assert said in told
    assert sorted(graph.iterdir()) == before
