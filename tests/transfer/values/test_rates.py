"""Rates: what they refuse, and lines by the length of a run."""

import numpy as np
import pytest
from penstock.storage.base.errors import InputError
from penstock.transfer.values.rates import Rates


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan")])
def test_rates_must_be_positive(bad):
    with pytest.raises(InputError, match=r"disk_bytes.*penstock calibrate"):
        Rates(disk_bytes=bad)


def test_latency_may_be_zero_but_not_negative():
    assert Rates(copy_latency=0.0).copy_latency == 0
    with pytest.raises(InputError, match="copy_latency"):
        Rates(copy_latency=-1e-9)


def test_decode_grows_with_threads_up_to_what_was_measured():
    assert Rates.host(2).decode_bytes == 2 * Rates.host(1).decode_bytes
    assert Rates.host(64).decode_bytes == Rates.host(16).decode_bytes


def test_short_runs_cost_a_sector_long_ones_a_line():
    rates = Rates(line_rate=4e8, sector_rate=8e8)
    seconds = rates.line_seconds(np.full(4, 1e6), np.array([4.0, 32.0, 80.0, 5000.0]))
    np.testing.assert_allclose(seconds, [1.25e-3, 1.25e-3, 1.875e-3, 2.5e-3])


def test_measured_runs_say_more_than_sector_and_line():
    rates = Rates(line_rate=1.0, sector_rate=1.0, line_runs=((32.0, 8e8), (128.0, 4e8), (256.0, 5e8)))
    seconds = rates.line_seconds(np.full(5, 1e6), np.array([8.0, 80.0, 128.0, 192.0, 5000.0]))
    np.testing.assert_allclose(seconds, [1.25e-3, 1.875e-3, 2.5e-3, 2.25e-3, 2e-3])


@pytest.mark.parametrize("runs", [((0.0, 1.0),), ((32.0, 0.0),), ((128.0, 1.0), (32.0, 1.0)), ((32.0, float("nan")),)])
def test_runs_must_ascend_and_be_positive(runs):
    with pytest.raises(InputError, match=r"line_runs.*penstock calibrate"):
        Rates(line_runs=runs)


def test_an_emulated_link_carries_lines_like_copies():
    rates = Rates.emulated(2, 128e6)
    assert rates.copy_bytes == 128e6
    assert rates.copy_latency == 0
    for run_bytes in (8.0, 4096.0):
        assert rates.line_seconds(np.float64(1e6), np.float64(run_bytes)) == pytest.approx(1.0)
    assert (rates.kernel_edges, rates.decode_bytes) == (Rates.host(2).kernel_edges, Rates.host(2).decode_bytes)
    assert Rates.emulated(2, None) == Rates.pcie5(2)
