"""Waiting threads sleep in every entry, users' settings are respected, and the environment is left as it was.

What libgomp uses is what it says itself (OMP_DISPLAY_ENV), in a fresh process for each case.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from penstock.engine.kernels.host.threads import openmp

GRAPH = "from penstock.engine import from_edges, run\ng = from_edges([(0, 1), (1, 2)])\n"
RUN = GRAPH + "assert run('bfs', g, source=0, device='cpu', **OPTIONS).top(1) == [(0, 0)]\n"
SETTINGS = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "NUMBA_THREADING_LAYER")
ENTRIES = {
    "python": RUN.replace("**OPTIONS", "threads=2"),
    "command": "from penstock.tools.cli import run_command\n"
    "assert run_command(['generate', 'grid', '--rows', '3', '--columns', '3', '--output', 'g.h5', '-q']) == 0\n"
    "assert run_command(['run', 'bfs', 'g.h5', '--source', '0', '--device', 'cpu', '-q']) == 0\n",
    "networkx": "import networkx as nx\n"
    "assert nx.pagerank(nx.path_graph(3), backend='penstock')[1] > 0.4\n",
    "calibrate": "import numpy as np\nfrom penstock.engine.kernels.probes.host_probes import HostProbes\n"
    "assert HostProbes(2).pull(np.zeros(64, np.uint32), np.ones(1), 64, 2).sum() == 64\n",
    "kernel": "import numpy as np\nfrom penstock.engine.kernels.probes.host_probes import pull_rows\n"
    "pull_rows(2, 4, np.zeros(64, np.uint32), np.ones(1), np.zeros(4), 64)\n",
}  # fmt: skip
LAST = "\nimport os, numba, sys\nprint(numba.threading_layer(), {n: os.environ.get(n) for n in sys.argv[1:]})\n"


def child(code: str, folder: os.PathLike[str], **settings: str) -> tuple[str, dict[str, str], str]:
    """Run code; the threading layer and the settings at its end, what libgomp displayed, and what was logged."""
    environment = {name: value for name, value in os.environ.items() if name not in SETTINGS} | settings
    environment |= {"OMP_DISPLAY_ENV": "verbose", "NUMBA_NUM_THREADS": "2"}
    ended = subprocess.run(
        [sys.executable, "-c", code + LAST, *SETTINGS],
        env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    left = dict.fromkeys(SETTINGS) | settings
    layer, _, seen = ended.stdout.splitlines()[-1].partition(" ")
    assert seen == str(left)  # neither children nor the user's code see the policy
    return layer, dict(re.findall(r"(\w+) = '([^']*)'", ended.stderr)), ended.stderr


ROWS = [pytest.param(one, marks=pytest.mark.full) if one == "calibrate" else one for one in ENTRIES]
"""`calibrate` calls the same kernel as `kernel`."""


@pytest.mark.parametrize("entry", ROWS)
def test_waiting_threads_soon_sleep(entry: str, tmp_path: os.PathLike[str]) -> None:
    layer, displayed, _ = child(ENTRIES[entry], tmp_path)
    if layer != "omp" or "GOMP_SPINCOUNT" not in displayed:
        pytest.skip("threads are not those of GNU's OpenMP here")
    assert (displayed["OMP_WAIT_POLICY"], displayed["GOMP_SPINCOUNT"]) == ("PASSIVE", openmp.SPINS)


@pytest.mark.parametrize(
    ("settings", "spins"), [({"GOMP_SPINCOUNT": "77"}, "77"), ({"OMP_WAIT_POLICY": "active"}, "30000000000")]
)
def test_settings_of_the_user_are_respected(settings: dict[str, str], spins: str, tmp_path: os.PathLike[str]) -> None:
    layer, displayed, _ = child(ENTRIES["python"], tmp_path, **settings)
    if layer != "omp" or "GOMP_SPINCOUNT" not in displayed:
        pytest.skip("threads are not those of GNU's OpenMP here")
    assert displayed["GOMP_SPINCOUNT"] == spins


def test_another_threading_layer_is_respected(tmp_path: os.PathLike[str]) -> None:
    layer, _, _ = child(ENTRIES["python"], tmp_path, NUMBA_THREADING_LAYER="workqueue")
    assert layer == "workqueue"


def test_an_openmp_that_is_loaded_already_is_said_with_the_way_out(tmp_path: os.PathLike[str]) -> None:
    before = "import ctypes, logging, pytest\nlogging.basicConfig(level=logging.INFO)\n"
    before += "try:\n    ctypes.CDLL('libgomp.so.1')\nexcept OSError:\n    pass\n"
    layer, displayed, logged = child(before + ENTRIES["python"], tmp_path)
    if layer != "omp" or "GOMP_SPINCOUNT" not in displayed:
        pytest.skip("threads are not those of GNU's OpenMP here")
    assert displayed["GOMP_SPINCOUNT"] != openmp.SPINS
    assert "OMP_WAIT_POLICY=passive" in logged


def test_threads_that_run_already_are_left_alone(tmp_path: os.PathLike[str]) -> None:
    before = "import logging, numba\nlogging.basicConfig(level=logging.INFO)\nnumba.get_num_threads()\n"
    _, _, logged = child(before + ENTRIES["python"], tmp_path)
    assert "OMP_WAIT_POLICY=passive" not in logged
