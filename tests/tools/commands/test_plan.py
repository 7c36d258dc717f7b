"""`penstock plan`: a line for each number of ranks, JSON, and errors that say the way out."""

from __future__ import annotations

from pathlib import Path

import pytest
from penstock.engine.planning.cluster_forecast import EXAMPLE
from penstock.tools import cli
from support.commands import answered

GRAPH = ["--vertices", "3.5e8", "--edges", "128e9"]


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.toml").write_text(EXAMPLE)


def test_machines_read_it(capsys: pytest.CaptureFixture[str]) -> None:
    facts = answered(capsys, "plan", *GRAPH, "--machine", "m.toml", "--ranks", "2,64", "--sweeps", 10)
    two, many = facts["ranks"]
    assert (two["limited_by"], many["limited_by"]) == ("kernel", "exchange")
    assert two["seconds"] > many["seconds"]
    assert many["price"] == pytest.approx(10 * 8 * 30 * many["seconds"] / 3600)
    assert facts["vertices"] == 350_000_000


def test_people_read_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run_command(["plan", "--write-example"]) == 0
    assert capsys.readouterr().out == EXAMPLE
    arguments = ["plan", *GRAPH, "--vertices", "1e10", "--machine", "m.toml", "--ranks", "16"]
    assert cli.run_command(arguments) == 0
    assert "16 ranks do not fit: device_memory is" in capsys.readouterr().out
    assert cli.run_command(["plan", *GRAPH, "--machine", "m.toml", "--ranks", "2"]) == 0
    assert "device 89%, host 11%" in capsys.readouterr().out


def test_windows_of_vertices_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.toml").write_text(
        'ranks_per_host = 1\nthreads = 8\ndisk_bytes = 3e9\nhost_memory = "16GiB"\nkernel_edges = 2.4e9\n'
        "network_bytes = 1e9\nnetwork_latency = 1e-5\n"
    )
    arguments = ["--vertices", "3.56e9", "--edges", "128.7e9", "--bytes-per-edge", "0.85", "--machine", "m.toml"]
    (one,) = answered(capsys, "plan", *arguments, "--ranks", 1)["ranks"]
    assert (one["windows"], one["fits"]) == (2, True)
    assert cli.run_command(["plan", *arguments, "--ranks", "1"]) == 0
    assert (
        "1 rank: 2 windows of vertices, whose values are in a file: edges are read 2 times" in capsys.readouterr().out
    )
    _, two = answered(capsys, "plan", *arguments, "--ranks", "1,2")["ranks"]
    assert two["fits"]
    assert two["value_bytes"] < 0.6 * one["value_bytes"]
    assert cli.run_command(["plan", *arguments, "--ranks", "2"]) == 0
    assert "2 ranks: 2 windows of vertices, whose values are in a file of each: edges" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([*GRAPH], "--write-example"),
        (["--edges", "5", "--machine", "m.toml"], "--vertices is missing"),
        ([*GRAPH, "--edges", "inf", "--machine", "m.toml"], "--edges is inf"),
        ([*GRAPH, "--machine", "absent.toml"], "absent.toml does not exist; --write-example"),
        ([*GRAPH, "--machine", "bad.toml"], "bad.toml is no TOML"),
        ([*GRAPH, "--machine", "m.toml", "--ranks", "two"], "--ranks two"),
        ([*GRAPH, "--machine", "m.toml", "--program", "wcc"], "does not walk every edge"),
    ],
)
def test_what_is_refused(capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    Path("bad.toml").write_text("disk_bytes = = 3")
    assert cli.run_command(["plan", *arguments]) == 2
    assert words in capsys.readouterr().err
