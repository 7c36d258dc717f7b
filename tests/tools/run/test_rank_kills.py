"""A rank that is killed at a random moment ends the job; any number of ranks resumes it to the same answer.

PENSTOCK_KILLS=20 kills twenty times instead of once.
"""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import psutil
import pytest
from penstock.tools import cli
from support.graphs import on_disk, shape
from support.launched_ranks import SLOW, ended, needs_mpi, ranks_of, started

KILLS = int(os.environ.get("PENSTOCK_KILLS", "1"))
LATEST_SECONDS = 6.0 if KILLS > 1 else 2.0
"""A kill comes so long after the start of the ranks, at most; a run takes about six seconds."""


@needs_mpi
@pytest.mark.slow
def test_a_killed_rank_ends_the_job_and_any_number_resumes_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    graph = on_disk(shape("wide"), tmp_path / "wide.h5", chunk_edges=1024).path
    common = ("slow.py:Patient", graph, "--output", "values.csv", "--quiet")
    monkeypatch.chdir(tmp_path)
    assert cli.run_command(["run", *map(str, common), "--device", "cpu"]) == 0
    wanted = (tmp_path / "values.csv").read_text()
    (tmp_path / "values.csv").unlink()
    chance, killed, resumed, before_joined, slowest = random.Random(16), 0, 0, 0, 0.0
    while killed < KILLS:
        kept = ("--checkpoint", f"state{killed}", "--checkpoint-every", "2")
        count = chance.choice((2, 3))
        process = started(tmp_path, *common, *kept, "--devices", ",".join(["cpu"] * count))
        ranks, victim = ranks_of(process, count), chance.randrange(count)
        time.sleep(chance.uniform(0, LATEST_SECONDS))
        try:
            os.kill(ranks[victim], signal.SIGKILL)
        except ProcessLookupError:
            assert ended(process) == (0, "", "")
            (tmp_path / "values.csv").unlink()
            continue  # the moment came after the run
        now = time.monotonic()
        code, out, err = ended(process)
        slowest = max(slowest, time.monotonic() - now)
        killed += 1
        assert (code, out) == (1, ""), err
        assert err.count("\n") == 1, err
        joined = f"rank {victim} of {count} on " in err or f", or rank {victim} (process " in err
        assert joined or f"one of {count} ranks on " in err, (victim, err)
        assert "was killed" in err
        before_joined += not joined
        if (tmp_path / "values.csv").exists():  # killed after rank 0 had written it
            assert (tmp_path / "values.csv").read_text() == wanted
            (tmp_path / "values.csv").unlink()
        resumed += any((tmp_path / kept[1]).glob("*.penstock"))
        count = chance.choice((1, 2, 3))
        on = ("--devices", ",".join(["cpu"] * count)) if count > 1 else ("--device", "cpu")
        assert ended(started(tmp_path, *common, *kept, "--resume", *on))[0] == 0
        assert (tmp_path / "values.csv").read_text() == wanted
        (tmp_path / "values.csv").unlink()
        assert not list(tmp_path.glob(".*")), "debris"
    print(f"{killed} killed, {before_joined} of them before they had joined; {resumed} resumed from a checkpoint; "
          f"the job ended at most {slowest:.1f} s later")  # fmt: skip


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT] if KILLS > 1 else [signal.SIGKILL])
def test_a_command_that_is_killed_ends_its_ranks_and_any_number_resumes_it(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    graph = on_disk(shape("wide"), tmp_path / "wide.h5", chunk_edges=1024).path
    common = ("slow.py:Patient", graph, "--output", "values.csv", "--quiet")
    monkeypatch.chdir(tmp_path)
    assert cli.run_command(["run", *map(str, common), "--device", "cpu"]) == 0
    wanted = (tmp_path / "values.csv").read_text()
    chance = random.Random(number)
    for kill in range(KILLS):
        (tmp_path / "values.csv").unlink()
        kept = (*common, "--checkpoint", f"state{kill}", "--checkpoint-every", "2")
        process = started(tmp_path, *kept, "--devices", "cpu,cpu")
        ranks = [psutil.Process(pid) for pid in ranks_of(process, 2).values()]
        time.sleep(chance.uniform(0, LATEST_SECONDS))
        os.kill(process.pid, number)
        code, _, err = ended(process)
        assert code in (0, -number, 128 + number), err
        assert "Traceback" not in err
        assert psutil.wait_procs(ranks, timeout=30)[1] == [], "ranks run on"
        assert not (tmp_path / "values.csv").exists() or (tmp_path / "values.csv").read_text() == wanted
        on = chance.choice((("--device", "cpu"), ("--devices", "cpu,cpu,cpu")))
        assert ended(started(tmp_path, *kept, "--resume", "--force", *on))[0] == 0
        assert (tmp_path / "values.csv").read_text() == wanted
