"""Ranks that are processes, over MPI, with compiled kernels: the same answers as one process, for 2 and 3 ranks."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from penstock.engine import Graph
from penstock.storage.base.errors import InputError
from penstock.tools.run import launch_ranks
from support.graphs import on_disk
from support.mpi_programs import RUNS, answers
from support.program_cases import tangle

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None, reason='ranks need MPI: pip install ".[ranks]"'
)
SCRIPT = Path(__file__).resolve().parents[2] / "support" / "mpi_programs.py"
PATIENCE_SECONDS = 240
FEW = ("bfs", "sssp", "pagerank", "pagerank-little-memory", "cdlp")
"""Programs of each kind: frontiers, weights, sums, edges from disk, whole rows. test_ranks_programs.py has all."""


def on_processes(count: int, *command: object) -> subprocess.CompletedProcess[str]:
    """Run a Python script in so many ranks, within a time limit."""
    try:
        mpiexec = launch_ranks.find_mpiexec()
    except InputError as error:
        pytest.skip(str(error))
    arguments = [mpiexec, "-n", str(count), sys.executable, *map(str, command)]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    edges = tangle(directed=True, core=3000, tail=20, count=40_000)
    return on_disk(edges, tmp_path_factory.mktemp("graph") / "tangle.h5", chunk_edges=1024)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "count", "how"),
    [
        pytest.param(FEW, 2, [], id="few-2"),
        pytest.param(FEW[2:4], 3, ["moving"], id="sums-3 whose bounds move"),
        pytest.param((*RUNS,), 2, [], id="all-2", marks=pytest.mark.full),
        pytest.param((*RUNS,), 3, ["moving"], id="all-3 whose bounds move", marks=pytest.mark.full),
    ],
)
def test_answers_are_those_of_one_process(
    graph: Graph, tmp_path: Path, names: tuple[str, ...], count: int, how: list[str]
) -> None:
    answers(graph, None, 1, names)  # compiles once what each rank, of one thread, would compile for itself
    wanted = answers(graph, None, count, names)
    done = on_processes(count, SCRIPT, graph.path, tmp_path / "answers.npz", ",".join(names), *how)
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "answers.npz") as found:
        assert set(found.files) == set(wanted)
        for name, values in wanted.items():
            np.testing.assert_array_equal(found[name], values, err_msg=name)


VERBS = """
import numpy as np
from penstock.engine.ranks.communicator import broadcast, gather_parts, ranks_of_host
from penstock.engine.ranks.mpi import MpiCommunicator
world = MpiCommunicator()
rank, size = world.rank, world.size
assert (size, ranks_of_host(world)) == (3, (0, 1, 2))
assert world.gather_numbers(np.array([rank, 7])).tolist() == [[0, 7], [1, 7], [2, 7]]
part = np.full((rank, 2), rank, np.float32)
assert gather_parts(world, part, np.arange(3)).tolist() == [[1, 1], [2, 2], [2, 2]]
bounds = np.array([0, 2, 2, 5])
whole = np.full(5, rank)
world.gather_slices(whole, bounds)
assert whole.tolist() == [0, 0, 2, 2, 2]
mine = np.empty((3, bounds[rank + 1] - bounds[rank]), np.int64)
world.exchange_slices(np.arange(5) + 10 * rank, bounds, mine)
assert mine.tolist() == [(np.arange(5) + 10 * r)[bounds[rank]:bounds[rank + 1]].tolist() for r in range(3)]
array = np.full(3, rank, np.uint8)
broadcast(world, array, 2)
assert array.tolist() == [2, 2, 2]
parts = [np.random.default_rng(r).random((300_000 + 7 * r, 2)) for r in range(3)]  # some 5 MB each: in pieces
lengths = np.array([len(part) for part in parts])
assert (gather_parts(world, parts[rank], lengths) == np.concatenate(parts)).all()
bounds = np.concatenate([[0], np.cumsum(lengths)])
for turn in range(3):  # a half of the window is written to again
    whole = np.concatenate([part + turn * (at == rank) for at, part in enumerate(parts)])
    mine = np.empty((3, *parts[rank].shape))
    world.exchange_slices(whole, bounds, mine)
    assert all((mine[r] == parts[rank] + turn * (r == rank)).all() for r in range(3))
    world.gather_slices(whole, bounds)
    assert (whole == np.concatenate(parts) + turn).all()
whole = np.full(900_000, rank)
world.gather_slices(whole, np.array([200_000, 300_000, 500_000, 500_000]))  # of a range: what lies outside stays
assert all((whole[a:b] == r).all() for a, b, r in ((0, 200_000, rank), (200_000, 300_000, 0), (300_000, 500_000, 1)))
assert (whole[500_000:] == rank).all()
numbers = world.gather_numbers(parts[rank][:9000])
assert (numbers == np.stack([part[:9000] for part in parts])).all()
array = parts[rank][:300_000].copy()
broadcast(world, array, 1)
assert (array == parts[1][:300_000]).all()
world.wait()
"""


def test_verbs_over_mpi(tmp_path: Path) -> None:
    (tmp_path / "verbs.py").write_text(VERBS)
    done = on_processes(3, tmp_path / "verbs.py")
    assert done.returncode == 0, done.stderr


KILLED = """
import os, re, signal
from pathlib import Path
from penstock.engine.ranks.mpi import MpiCommunicator
world = MpiCommunicator()
maps = Path("/proc/self/maps").read_text()
print("segments", *sorted(set(re.findall(r"/dev/shm/mpich_shm_\\w+", maps))), flush=True)
world.wait()
if world.rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
world.wait()
"""


@pytest.mark.slow
def test_a_killed_rank_leaves_no_shared_memory(tmp_path: Path) -> None:
    """Also where MPICH does not reach its end; memory of other jobs stays."""
    (tmp_path / "killed.py").write_text(KILLED)
    other = Path(f"/dev/shm/mpich_shm_{os.getpid()}_other")
    other.write_bytes(b"of another job")
    try:
        done = on_processes(3, tmp_path / "killed.py")
        assert done.returncode != 0
        lines = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("segments")]
        segments = {Path(name) for names in lines for name in names}
        assert segments, done.stdout + done.stderr
        assert [path for path in segments if path.exists()] == []
        assert other.exists()
    finally:
        other.unlink()
