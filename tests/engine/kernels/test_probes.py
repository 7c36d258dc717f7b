"""The probes do the work whose time is taken: sums and rows are those that NumPy finds, on the host and simulated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.kernels.probes.cuda_probes import CudaProbes
from penstock.engine.kernels.probes.host_probes import RUNS, HostProbes, Runs
from penstock.transfer.devices.emulated import EmulatedDevice

WORDS = 32
RANDOM = np.random.default_rng(7)


def probes_of(kind: str) -> Any:
    if kind == "cuda" and not seam.SIMULATED:
        pytest.skip("there is a device: tests/gpu")
    return CudaProbes(EmulatedDevice()) if kind == "cuda" else HostProbes(2)


def expected_lines(runs: Runs, lines: int) -> list[int]:
    """Numbers of the lines that are read: whole runs, each followed by a gap of its length."""
    length = 1 << runs.run_shift
    return [line // length * 2 * length + line % length for line in range(lines)]


@pytest.mark.parametrize("kind", ["host", "cuda"])
@pytest.mark.parametrize("runs", RUNS, ids=lambda runs: f"{runs.bytes}B")
def test_runs_are_read_where_they_lie(kind: str, runs: Runs) -> None:
    source = RANDOM.integers(0, 1 << 32, 64 * 2 * 3 * WORDS, np.uint32)
    lines = runs.lines_in(source.nbytes)
    assert lines == len(source) // WORDS // 2
    picked = source.reshape(-1, WORDS)[expected_lines(runs, lines), : runs.words]
    assert int(probes_of(kind).read(source, runs, lines).sum()) == int(picked.sum(dtype=np.uint64))


@pytest.mark.parametrize("kind", ["host", "cuda"])
@pytest.mark.parametrize("edges", [1, 200, 333])
def test_a_pull_reads_every_edge_once(kind: str, edges: int) -> None:
    neighbors, values = RANDOM.integers(0, 50, edges, np.uint32), RANDOM.random(50)
    probes = probes_of(kind)
    for threads in (1, 2):
        assert probes.pull(neighbors, values, edges, threads).sum() == pytest.approx(values[neighbors].sum())


@pytest.mark.parametrize("edges", [1, 200, 333])
def test_a_sweep_reads_what_a_pull_does(edges: int) -> None:
    neighbors, values = RANDOM.integers(0, 50, edges, np.uint32), RANDOM.random(50)
    for threads in (1, 2):
        assert HostProbes(2).sweep(neighbors, values, edges, threads).sum() == pytest.approx(values[neighbors].sum())


@pytest.mark.parametrize("kind", ["host", "cuda"])
def test_a_launch_does_nothing(kind: str) -> None:
    probes = probes_of(kind)
    probes.launch()
    probes.close()


def test_runs_are_ascending_and_say_their_bytes() -> None:
    assert [runs.bytes for runs in RUNS] == [32, 128, 256, 1024, 8192]
    assert [runs.lines_in(1 << 20) for runs in RUNS] == [4096] * 5
    assert RUNS[-1].lines_in(8192) == 0
