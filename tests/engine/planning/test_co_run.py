"""When a rank of cores beside GPUs pays, and that its forecast is what its parts add up to."""

from __future__ import annotations

from dataclasses import replace

import pytest
from penstock.engine.planning.co_run import SharedSweep, co_run
from penstock.transfer.values.rates import Rates

GPU, CORES = Rates.pcie5(4), Rates.host(12)
SWEEP = SharedSweep(edges=1_000_000_000, link_bytes=4.0, exchanged=1_000_000 * 8)


@pytest.mark.parametrize(
    ("gpus", "link", "vertices", "threads", "pays"),
    [
        (1, 53e9, 33_000_000, 12, False),  # the exchange by way of host memory takes longer than the sweep
        (1, 53e9, 100_000, 12, True),  # few vertices: cores take a share of what the link would bring
        (1, 6e9, 1_000_000, 12, True),  # a slow link
        (1, 6e9, 99_000_000, 12, False),
        (1, 53e9, 100_000, 1, False),  # few cores
        (4, 53e9, 1_000_000, 12, False),
    ],
)
def test_when_it_pays(gpus: int, link: float, vertices: int, threads: int, pays: bool) -> None:
    work = replace(SWEEP, exchanged=8 * vertices)
    found = co_run(work, gpus, replace(GPU, copy_bytes=link), 0.0, Rates.host(threads))
    assert found.pays is pays
    assert pays == (found.alone / found.beside > 1.05)


def test_both_end_together() -> None:
    found = co_run(replace(SWEEP, exchanged=0), 2, GPU, 0.0, CORES)
    share = found.share * SWEEP.edges
    assert share / CORES.kernel_edges == pytest.approx((SWEEP.edges - share) / 2 * 4 / GPU.copy_bytes, rel=1e-6)
    assert found.beside < found.alone == pytest.approx(SWEEP.edges / 2 * 4 / GPU.copy_bytes, rel=1e-2)


def test_what_stays_on_gpus_does_not_travel() -> None:
    found = co_run(replace(SWEEP, exchanged=0), 2, GPU, 1e10, CORES)
    assert found.alone == pytest.approx(SWEEP.edges / 2 / GPU.kernel_edges, rel=1e-2)


def test_a_disk_that_limits_both_makes_them_equal() -> None:
    found = co_run(replace(SWEEP, exchanged=0, disk_bytes=4e9), 1, GPU, 0.0, CORES)
    assert (found.alone, found.beside) == pytest.approx((4e9 / GPU.disk_bytes,) * 2, rel=1e-3)
    assert not found.pays
