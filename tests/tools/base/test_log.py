"""Log lines: nobody's unless asked, on stderr with --verbose, never twice."""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from penstock.tools import cli
from penstock.tools.base import log
from support.faults import break_disk
from support.graphs import on_disk, skewed
from support.oracles import EdgeList

EDGES = EdgeList(200, *skewed(200, 3000, 5), None, True)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Take away the handler that a command attached."""
    yield
    log.show(quiet=True)


@pytest.mark.parametrize(("verbose", "seen"), [(0, "w"), (1, "wi"), (2, "wid"), (7, "wid")])
def test_verbose_says_more(capsys: pytest.CaptureFixture[str], verbose: int, seen: str) -> None:
    for _ in range(2):
        log.show(verbose)
    logger = logging.getLogger("penstock.transfer.somewhere")
    logger.warning("w")
    logger.info("i")
    logger.debug("d")
    assert [line[-1] for line in capsys.readouterr().err.splitlines()] == list(seen)


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    log.show(quiet=True)
    logging.getLogger("penstock.storage").warning("w")
    assert capsys.readouterr().err == ""


def test_what_stderr_does_not_take_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_disk(EDGES, tmp_path / "g.h5")
    run = ["run", "bfs", str(tmp_path / "g.h5"), "--source", "0", "--output", "-"]
    for arguments, code in ((["info", str(tmp_path / "none.h5")], 2), (["info"], 2), (run, 0)):
        with io.FileIO("/dev/full", "w") as full, monkeypatch.context() as patch:
            patch.setattr("sys.stderr", io.TextIOWrapper(full, write_through=True))
            assert cli.run_command(arguments) == code
    with open(os.devnull) as unwritable, monkeypatch.context() as patch:
        patch.setattr("sys.stderr", unwritable)
        with pytest.raises(OSError, match="not writable"):
            log.write_line("w")


def test_a_command_tells_on_stderr_what_happens_below(tmp_path, capsys, monkeypatch) -> None:
    on_disk(EDGES, tmp_path / "g.h5")
    arguments = ["run", "bfs", str(tmp_path / "g.h5"), "--source", "0", "--json"]
    assert cli.run_command([*arguments, "-vv"]) == 0
    told = capsys.readouterr()
    assert told.out.count("\n") == 1
    for words in ("penstock.engine.resources.host_resources: cpu", "plan for cpu", "BFS:"):
        assert words in told.err, words
    assert cli.run_command(arguments) == 0
    assert capsys.readouterr().err == ""


def test_a_read_that_is_tried_again_is_told(tmp_path, capsys, monkeypatch) -> None:
    on_disk(EDGES, tmp_path / "g.h5")
    break_disk(monkeypatch, "eio", lambda number: number == 0)
    assert cli.run_command(["run", "bfs", str(tmp_path / "g.h5"), "--source", "0", "--json"]) == 0
    told = capsys.readouterr().err
    assert "g.h5" in told
    assert "trying again" in told
