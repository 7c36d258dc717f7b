"""`penstock bench` measures what it says, in JSON too."""

import json
from pathlib import Path

import pytest
from penstock.tools import cli
from penstock.tools.bench.compare import READY
from penstock.tools.bench.queries import FROM_TEXT
from support.commands import answered


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, object]:
    return answered(capsys, "bench", *arguments)


def test_compare_finds_penstock_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("scipy")
    options = ["--scale", 8, "--edge-factor", 8, "--repeat", 1, "--system", "scipy"]
    facts = told(capsys, "compare", *options, "--folder", tmp_path)
    assert facts["wrong"] == []
    seconds = facts["seconds"]
    assert isinstance(seconds, dict)
    assert set(seconds) == {READY, *FROM_TEXT}
    assert all(set(times) == {"penstock", "scipy"} for times in seconds.values())
    assert list(tmp_path.iterdir()) == []


def test_encodings_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "g.h5"
    assert cli.run_command(["generate", "rmat", "--scale", "10", "--output", str(path), "-q"]) == 0
    rows = told(capsys, "encodings", path)["rows"]
    assert isinstance(rows, list)
    assert {row["encoding"] for row in rows} >= {"plain", "packed"}
    assert all(row["graph"] == "g" and row["bytes_per_edge"] > 0 for row in rows)


def test_the_disk_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = cli.run_command(["bench", "disk", "--folder", str(tmp_path), "--size", "4MiB", "--json"])
    shown = capsys.readouterr()
    if "no direct reads" in shown.err:
        pytest.skip("no direct reads in this file system")
    assert code == 0
    facts = json.loads(shown.out)
    assert len(facts["reads"]) == 15
    assert facts["read_bytes_per_second"] == max(r["bytes_per_second"] for r in facts["reads"])
    assert list(tmp_path.iterdir()) == []
