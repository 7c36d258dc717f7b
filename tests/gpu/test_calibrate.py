"""On a real device the probes read what they should, and a quick calibration fills every table of the link."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from penstock.engine.calibration.calibrate import Effort, calibrate
from penstock.engine.calibration.material import Material
from penstock.engine.kernels.probes.cuda_probes import CudaProbes
from penstock.engine.kernels.probes.host_probes import RUNS, Runs
from penstock.transfer.devices.cuda import CudaDevice

pytestmark = pytest.mark.gpu


@pytest.fixture
def device() -> Iterator[CudaDevice]:
    made = CudaDevice(0)
    yield made
    made.close()


@pytest.mark.parametrize("runs", RUNS, ids=lambda runs: f"{runs.bytes}B")
def test_runs_are_read_in_place(device: CudaDevice, runs: Runs) -> None:
    source = device.host_array(1 << 20, np.uint32)
    source[:] = np.random.default_rng(7).integers(0, 1 << 32, len(source), np.uint32)
    lines, length = runs.lines_in(source.nbytes), 1 << runs.run_shift
    at = np.arange(lines) // length * 2 * length + np.arange(lines) % length
    expected = int(source.reshape(-1, 32)[at, : runs.words].sum(dtype=np.uint64))
    sums = CudaProbes(device).read(device.mapped(source), runs, lines)
    assert int(device.to_host(sums).sum()) == expected


def test_a_pull_reads_every_edge_once(device: CudaDevice) -> None:
    neighbors = np.random.default_rng(7).integers(0, 5000, 1_000_003, np.uint32)
    values = np.random.default_rng(8).random(5000)
    placed = device.to_device(neighbors), device.to_device(values)
    sums = CudaProbes(device).pull(*placed, len(neighbors), 0)
    assert device.to_host(sums).sum() == pytest.approx(values[neighbors].sum())


def test_a_calibration_fills_every_table_of_the_link(device: CudaDevice) -> None:
    found = calibrate(device, Effort(None, 0.05, 8 << 20), Material())
    assert {"copy", "lines", "kernel", "launch", "unpack", "gather", "decode"} <= set(found.tables)
    assert found.machine["device"]["kind"] == "cuda"
    assert found.machine["device"]["name"]
    assert found.rates.copy_bytes > 0
    assert [length for length, _ in found.rates.line_runs] == [32, 128, 256, 1024, 8192]
