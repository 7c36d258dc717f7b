"""What the environment says about ranks, and what a process without them does not import."""

from __future__ import annotations

import subprocess
import sys

import pytest
from penstock.storage.base.errors import InputError
from penstock.tools.base import joined_ranks


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*joined_ranks.SIZES, *joined_ranks.NUMBERS):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("name", "text", "size"),
    [
        ("PMI_SIZE", "2", 2),
        ("OMPI_COMM_WORLD_SIZE", "3", 3),
        ("SLURM_STEP_NUM_TASKS", "4", 4),
        ("WORLD_SIZE", "5", 5),
        ("PMI_SIZE", "1", None),
        ("WORLD_SIZE", "many", None),
        ("SLURM_NTASKS", "8", None),  # of a batch script, which srun has not started
    ],
)
def test_how_many_were_started(monkeypatch: pytest.MonkeyPatch, name: str, text: str, size: int | None) -> None:
    monkeypatch.setenv(name, text)
    found = joined_ranks.started_by()
    assert (None if found is None else found[0]) == size


def test_without_mpi4py_several_processes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setattr(joined_ranks.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"mpiexec has started 2 processes, and mpi4py is not installed: .*ranks"):
        joined_ranks.join()


def test_the_first_rank_alone_speaks_before_they_join(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not joined_ranks.is_silent()
    monkeypatch.setenv("PMI_SIZE", "2")
    monkeypatch.setenv("PMI_RANK", "0")
    assert not joined_ranks.is_silent()
    monkeypatch.setenv("PMI_RANK", "1")
    assert joined_ranks.is_silent()


def test_alone_nothing_is_said_or_ended() -> None:
    assert joined_ranks.join() is None
    assert joined_ranks.speaker("words") == "words"
    joined_ranks.end_all(1)
    joined_ranks.end_all_crashed()


def test_one_process_imports_no_byte_of_mpi(tmp_path) -> None:
    program = (
        "import sys\n"
        "from penstock.engine import from_edges, run\n"
        "from penstock.tools import cli\n"
        "run('bfs', from_edges([(0, 1), (1, 2)]), source=0, kernels='reference', device='cpu')\n"
        "cli.run_command(['run', 'bfs', 'no.h5', '--source', '1'])\n"
        "print([name for name in sys.modules if 'mpi' in name.lower() and 'impl' not in name and 'comp' not in name])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.strip() == "[]"
