"""`--dry-run --ranks`: a line for each number of ranks, with what does not fit, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from penstock.tools import cli
from penstock.transfer.devices import cuda
from support.commands import answered
from support.graphs import on_disk, shape


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cuda, "count", lambda: 0)
    on_disk(shape("skewed"), tmp_path / "g.h5")


def test_each_number_of_ranks_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    facts = answered(capsys, "run", "pagerank", "g.h5", "--dry-run", "--ranks", "1,2,4", "--host-memory", "256MiB")
    (told,) = facts["programs"]
    assert [one["ranks"] for one in told["ranks"]] == [1, 2, 4]
    one, two, _ = told["ranks"]
    assert one["later"]["seconds"] == told["later"]["seconds"]
    assert one["exchange_share"] == 0.0 < two["exchange_share"] < 1.0
    assert two["host"]["budget"] == 128 << 20
    assert all(one["fits"] and one["most_seconds"] > 0 for one in told["ranks"])
    expected = told["expected"]["seconds"] * two["later"]["seconds"] / told["later"]["seconds"]
    assert (one["expected_seconds"], two["expected_seconds"]) == pytest.approx((told["expected"]["seconds"], expected))


def test_devices_are_rehearsed_as_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    facts = answered(capsys, "run", "bfs", "g.h5", "--source", 1, "--devices", "cpu,cpu", "--dry-run")
    assert [one["ranks"] for one in facts["programs"][0]["ranks"]] == [2]
    facts = answered(capsys, "run", "bfs", "g.h5", "--source", 1, "--dry-run")
    assert facts["programs"][0]["ranks"] == []


def test_shares_are_those_of_the_number_of_ranks_that_they_name(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("run", "pagerank", "g.h5", "--dry-run", "--ranks", "1,2", "--no-repartition")
    one, two = answered(capsys, *arguments, "--shares", "1,4")["programs"][0]["ranks"]
    even = answered(capsys, *arguments)["programs"][0]["ranks"]
    assert one["later"]["seconds"] == even[0]["later"]["seconds"]
    assert two["later"]["seconds"] < even[1]["later"]["seconds"]


def test_people_see_what_does_not_fit(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["run", "pagerank", "g.h5", "--dry-run", "--ranks", "1,16", "--host-memory", "64MiB"]
    assert cli.run_command(arguments) == 0
    shown = capsys.readouterr().out
    assert "memory a rank" in shown
    assert "expected" in shown
    assert "16 ranks do not fit: in each of 16 ranks, which divide it" in shown


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--ranks", "1,2"], "--devices cpu,cpu"),
        (["--ranks", "0", "--dry-run"], "--ranks 0: give numbers from 1"),
        (["--ranks", "2,", "--dry-run"], "as in 1,2,4"),
        (["--devices", "cuda:0,cuda:9", "--dry-run"], "device cuda:0 "),
        (["--shares", "1,2"], "there is one rank, which has all edges"),
        (["--shares", "1,x", "--ranks", "2", "--dry-run"], "give a number above zero for each rank"),
    ],
)
def test_what_is_refused(capsys: pytest.CaptureFixture[str], options: list[str], named: str) -> None:
    assert cli.run_command(["run", "pagerank", "g.h5", *options]) == 2
    assert named in capsys.readouterr().err
