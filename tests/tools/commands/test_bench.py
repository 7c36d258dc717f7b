"""`penstock bench` measures what it says, in JSON too."""

import json
from pathlib import Path
from typing import Any

import pytest
from penstock.storage.base.measurement import RateSample
from penstock.tools import cli
from penstock.tools.bench.compare import READY
from penstock.tools.bench.disk import BEST, CASES, DECODED, PARTS, PAYLOADS, RAW, SweepPart, verdict
from penstock.tools.bench.queries import FROM_TEXT
from support.commands import answered
from support.graphs import on_disk, shape
from support.json_page import check_documented


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, object]:
    facts = answered(capsys, "bench", *arguments)
    check_documented(facts)
    return facts


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
    check_documented(facts)
    assert len(facts["reads"]) == len(CASES)
    assert facts["read_bytes_per_second"] == max(r["bytes_per_second"] for r in facts["reads"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("striped", [False, True])
def test_the_disk_is_measured_on_a_graph_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, striped: bool
) -> None:
    folders = tuple(tmp_path / name for name in "ab") if striped else ()
    for folder in folders:
        folder.mkdir()
    on_disk(shape("skewed"), tmp_path / "g.h5", stripes=folders)
    code = cli.run_command(["bench", "disk", str(tmp_path / "g.h5"), "--seconds", "0.1", "--threads", "1", "--json"])
    shown = capsys.readouterr()
    if "no direct reads" in shown.err:
        pytest.skip("no direct reads in this file system")
    assert code == 0, shown.err
    facts = json.loads(shown.out)
    check_documented(facts)
    assert len(facts["reads"]) == len(CASES)
    assert [part["name"] for part in facts["sweep"]] == list(PARTS)
    assert all(part["bytes"] > 0 and part["bytes_per_second"] > 0 for part in facts["sweep"])
    assert facts["verdict"] == verdict({name: part_of(facts, name) for name in PARTS})


def part_of(facts: dict[str, Any], name: str) -> SweepPart:
    part = next(part for part in facts["sweep"] if part["name"] == name)
    return SweepPart(part["read_bytes"], RateSample(part["in_flight"], part["bytes"], part["seconds"]), 0.0)


def test_people_see_who_limits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    on_disk(shape("skewed"), tmp_path / "g.h5")
    code = cli.run_command(["bench", "disk", str(tmp_path / "g.h5"), "--seconds", "0.1"])
    shown = capsys.readouterr()
    if "no direct reads" in shown.err:
        pytest.skip("no direct reads in this file system")
    assert code == 0, shown.err
    for words in (
        "GB/s in order, reads in flight",
        "best raw reads",
        "a sweep, payloads",
        "a sweep, decoding",
        "limits: ",
    ):
        assert words in shown.out


@pytest.mark.parametrize(
    ("best", "raw", "decoded", "limit"),
    [(2.0, 2.0, 1.9, "the disk"), (2.0, 1.0, 1.0, "the size or the number of reads"), (2.0, 2.0, 1.0, "the reader")],
)
def test_who_limits_follows_from_the_rates(best: float, raw: float, decoded: float, limit: str) -> None:
    rates = {BEST: best, RAW: raw, DECODED: decoded}
    parts = {name: SweepPart(1.0, RateSample(1, rate, 1.0), 0.0) for name, rate in rates.items()}
    assert verdict(parts).startswith(f"{limit} limits")
    assert "packed" not in verdict(parts)
    assert "(80% where edges stay packed)" in verdict(parts | {PAYLOADS: SweepPart(1.0, RateSample(1, 1.6, 1.0), 0.0)})


def test_a_graph_and_a_folder_are_one_too_many(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command(["bench", "disk", "g.h5", "--folder", str(tmp_path)]) == 2
    assert "--folder" in capsys.readouterr().err


def test_a_graph_without_edges_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    on_disk(shape("empty"), tmp_path / "g.h5")
    assert cli.run_command(["bench", "disk", str(tmp_path / "g.h5")]) == 2
    assert "no edges" in capsys.readouterr().err
