"""One calibration: the emulated link is found, every table is filled, and time is kept, by clocks of the tests."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from penstock.engine.calibration import calibrate as story
from penstock.engine.calibration import probes
from penstock.engine.calibration.calibrate import Effort, calibrate, disk_rates
from penstock.engine.calibration.material import Material
from penstock.engine.kernels.cuda import driver as seam
from penstock.storage.base import hardware_info
from penstock.storage.base.errors import InputError
from penstock.storage.base.measurement import TimeBudget
from penstock.transfer.devices import emulated
from penstock.transfer.devices.device import Device
from penstock.transfer.devices.emulated import EmulatedDevice
from penstock.transfer.values.rates import Rates
from support.fakes import SleepingClock
from support.graphs import in_memory, on_disk, shape

ARENA = 1 << 16


@pytest.fixture(autouse=True)
def once(monkeypatch: pytest.MonkeyPatch) -> None:
    """One timed run of each probe."""
    monkeypatch.setattr(probes, "REPEATS", 1)
    monkeypatch.setattr(probes, "BATCH", 2)


def ticking(step: float, limit: float | None = None) -> TimeBudget:
    """A clock on which looking at it takes `step` seconds."""
    ticks = count()
    return TimeBudget(limit, lambda: step * next(ticks))


@pytest.mark.parametrize("kernels", ["host", "cuda"])
def test_an_emulated_link_is_found_and_every_table_filled(kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if kernels == "cuda" and not seam.SIMULATED:
        pytest.skip("there is a device: tests/gpu")
    monkeypatch.setattr(emulated, "time", SleepingClock())
    device = EmulatedDevice(link_bytes=20e6)
    effort = Effort(None, 0.01, ARENA)
    found = calibrate(device, effort, Material(), kernels=kernels, clock=ticking(1e-3))
    assert found.rates.copy_bytes == pytest.approx(20e6)
    assert set(found.tables) == {"copy", "lines", "kernel", "launch", "unpack", "decode", "gather"}
    assert set(found.missing) == {"disk"}
    assert [sample.at for sample in found.tables["kernel"]][:1] == [0 if kernels == "cuda" else 1]
    assert [sample.amount for sample in found.tables["lines"]] == [ARENA // 256] * 5
    assert found.rates.line_runs[0][0] == 32
    assert 0 < found.rates.unpack_edges < float("inf")
    assert found.threads == hardware_info.facts()["cores"]
    assert found.machine["device"] == {"kind": "emulated", "link_bytes": 20e6}
    assert not found.quick


def test_a_host_has_no_link_to_measure() -> None:
    found = calibrate(Device(), Effort(None, 0.01, ARENA), Material(), clock=ticking(1e-3))
    assert set(found.tables) == {"kernel", "sweep", "launch", "decode", "gather"}
    assert found.rates.sweep_edges == max(sample.rate for sample in found.tables["sweep"])
    assert found.rates.copy_bytes == found.rates.line_rate == float("inf")
    assert found.rates.kernel_edges == max(sample.rate for sample in found.tables["kernel"])


def test_a_probe_that_has_no_time_is_left_out_and_said() -> None:
    found = calibrate(Device(), Effort(1.5, 0.01, ARENA), Material(), clock=TimeBudget(0.0))
    assert found.tables == {}
    assert set(found.missing) == {"disk", "decode", "kernel", "sweep", "launch", "gather"}
    assert found.rates == Rates.host(found.threads)
    assert found.quick


@pytest.mark.parametrize("step", [0.003, 0.02, 0.06])
@pytest.mark.parametrize("device", [Device, EmulatedDevice])
def test_the_limit_is_kept_however_slow_the_machine(step: float, device: Callable[[], Device]) -> None:
    """Looking at the clock takes `step`; what has begun ends, which takes a few looks for each row of a table."""
    clock = ticking(step, 1.5)
    found = calibrate(device(), Effort(1.5, 0.05, ARENA), Material(), clock=clock)
    assert found.seconds < 1.5 + 12 * step
    assert set(found.tables) | set(found.missing) >= {"kernel", "launch", "decode", "gather", "disk"}


def test_an_emulated_link_too_slow_for_the_sweep_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """64 KiB at 10 KB/s take 6.5 s: one copy of them is timed, the sweep's is not made."""
    monkeypatch.setattr(emulated, "time", SleepingClock())
    device = EmulatedDevice(link_bytes=1e4)
    found = calibrate(device, Effort(1.5, 0.05, ARENA), Material(), clock=ticking(1e-3, 1.5))
    assert found.rates.copy_bytes == pytest.approx(1e4)
    assert found.missing["kernel"] == found.missing["launch"] == story.LEFT_OUT


def test_a_graph_on_disk_gives_its_own_chunks(tmp_path: Path) -> None:
    graph = on_disk(shape("skewed"), tmp_path / "g.h5", chunk_edges=64)
    material = Material.of(graph)
    assert list(material.files) == [tmp_path / "g.h5"]
    assert material.disk == hardware_info.disk_of(tmp_path)
    found = calibrate(Device(), Effort(1.5, 0.01, ARENA), material, clock=ticking(1e-3, 10.0))
    assert found.tables["decode"][0].amount % 4 == 0
    assert "too short" in found.missing["disk"]
    (tmp_path / "g.h5").unlink()
    assert material.disk == hardware_info.disk_of(tmp_path), "of the file, whatever becomes of its name"


def test_a_quick_calibration_encodes_nothing() -> None:
    found = calibrate(Device(), Effort(1.5, 0.01, ARENA), Material.of(in_memory(shape("skewed"))), clock=TimeBudget())
    assert "no graph file" in found.missing["decode"]


def test_a_disk_is_read_by_reads_in_flight(tmp_path: Path) -> None:
    probe = tmp_path / "probe"
    probe.write_bytes(bytes(16 << 20))
    try:
        samples = disk_rates(Material(files=[probe]), Effort(None, 60.0, 4 << 20), TimeBudget())
    except InputError as error:
        pytest.skip(str(error))
    assert [sample.at for sample in samples] == [1, 2]  # each holds 2 MiB, and two fit
    assert all(0 < sample.amount <= 16 << 20 and sample.amount % (1 << 20) == 0 for sample in samples)


def test_efforts_fit_the_memory_there_is() -> None:
    assert Effort.quick(1 << 40).arena_bytes == story.QUICK_ARENA
    assert Effort.quick(100 << 20).arena_bytes == 8 << 20
    assert Effort.quick(1).arena_bytes == story.LEAST_ARENA
    assert Effort.full(1 << 40).arena_bytes == story.ARENA
    assert Effort.quick().seconds < 2
