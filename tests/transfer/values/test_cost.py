"""The two cost models, against partitions computed by hand on both sides of every threshold."""

from dataclasses import replace

import numpy as np
import pytest
from penstock.transfer.values.cost import KERNEL, LINK, Counts, measured, published, published_routes
from penstock.transfer.values.rates import Rates

MILLION = 1_000_000


def counts(a=0, vertices=0, lines=0, edges=MILLION, disk=0, decode=0, read=None, d=4):
    one = [np.atleast_1d(np.asarray(x, dtype=np.float64)) for x in (edges, a, vertices, lines)]
    rest = [np.atleast_1d(np.asarray(x, dtype=np.float64)) for x in (a if read is None else read, disk, decode)]
    return Counts(*one, *rest, edge_bytes=d)


ALL = ("filter", "compaction", "zero-copy")


def test_published_times_by_hand():
    # E d = 4e6 bytes in trips of 256 x 128 = 32768: 122.07 -> 123; a d + A d2 = 480000 -> 14.6 -> 15
    # L = 14592 lines -> 57 trips of 0.625 + 0.375 x 0.1 = 0.6625
    times = published(counts(100_000, 10_000, 14_592))
    assert times["filter"] == [123]
    assert times["compaction"] == [15]
    assert times["zero-copy"] == pytest.approx([57 * 0.6625])


@pytest.mark.parametrize(
    ("a", "vertices", "lines", "route"),
    [
        # beta: 15 < 0.4 x 57 x 0.6625 = 15.1 compacts; one line trip fewer (14.84) does not
        (100_000, 10_000, 57 * 256, "compaction"),
        (100_000, 10_000, 56 * 256, "zero-copy"),
        # alpha: 0.8 x 123 = 98.4; 3211264 bytes are 98 trips, one vertex more makes 99
        (800_000, 1_408, MILLION, "compaction"),
        (800_000, 1_409, MILLION, "filter"),
        # filter against zero-copy, all active (a zero-copy trip is a whole RTT): 123 is not below 123
        (MILLION, 0, 123 * 256, "zero-copy"),
        (MILLION, 0, 124 * 256, "filter"),
    ],
)
def test_published_route_on_both_sides_of_each_threshold(a, vertices, lines, route):
    assert published_routes(counts(a, vertices, lines), ALL).tolist() == [route]


def test_published_passes_over_routes_that_do_not_serve_the_device():
    some = counts(100_000, 10_000, 57 * 256)
    assert published_routes(some, ("filter",)).tolist() == ["filter"]
    assert published_routes(some, ("filter", "zero-copy")).tolist() == ["zero-copy"]


def test_weights_count_as_edge_bytes():
    assert published(counts(d=8))["filter"] == [245]  # 8e6 / 32768 = 244.1


RATES = Rates(
    disk_bytes=1e9, decode_bytes=2e9, gather_bytes=4e9, copy_bytes=10e9, copy_latency=1e-5, line_rate=1e8,
    sector_rate=2e8, kernel_edges=1e9, kernel_latency=1e-6,
)  # fmt: skip


def test_measured_vectors_by_hand():
    costs = measured(counts(1000, 100, 200, edges=100_000, disk=5e5, decode=4e5), RATES)
    base = [5e-4, 2e-4, 0, 0, 1e-6 + 1e-6, 0]
    np.testing.assert_allclose(costs["resident"][0], [0, 0, 0, 0, 2e-6, 0])
    np.testing.assert_allclose(costs["filter"][0], [*base[:3], 1e-5 + 4e5 / 10e9, *base[4:]])
    moved = 1000 * 4 + 100 * 8
    np.testing.assert_allclose(costs["compaction"][0], [*base[:2], moved / 4e9, 1e-5 + moved / 10e9, *base[4:]])
    # runs of 1000 x 4 / 100 = 40 bytes: (40 - 32) / (128 - 32) = 1/12 of the way from a sector to a line
    per_line = 1 / 2e8 + (1 / 1e8 - 1 / 2e8) / 12
    np.testing.assert_allclose(costs["zero-copy"][0], [*base[:3], 200 * per_line, *base[4:]])


def test_a_host_has_no_link_so_reading_in_place_costs_the_kernel_only():
    costs = measured(counts(1000, 100, 200), Rates.host(2))
    assert costs["zero-copy"][0, LINK] == costs["filter"][0, LINK] == 0
    np.testing.assert_array_equal(costs["zero-copy"], costs["resident"])


def test_only_chunks_that_are_wanted_and_not_there_are_copied():
    some = replace(counts(1000, 100, 200, edges=100_000), copied_bytes=np.array([1e5]))
    link = {route: cost[0, LINK] for route, cost in measured(some, RATES).items()}
    whole = {route: cost[0, LINK] for route, cost in measured(counts(1000, 100, 200, edges=100_000), RATES).items()}
    assert link["filter"] == pytest.approx(1e-5 + 1e5 / 10e9)
    assert {route for route in link if link[route] != whole[route]} == {"filter"}


def test_rows_cost_what_was_learnt():
    costs = measured(counts(1000, 100, read=250), replace(RATES, kernel_rows=1e8))
    assert costs["filter"][0, KERNEL] == pytest.approx(1e-6 + 2.5e-7 + 1e-6)
    assert measured(counts(edges=0), replace(RATES, kernel_rows=1e8))["filter"][0, KERNEL] == 0


def test_costs_are_vectorized_and_never_negative():
    random = np.random.default_rng(3)
    edges = random.integers(1, 10**7, 50)
    a = (edges * random.random(50)).astype(int)
    many = measured(counts(a, a // 7, a // 9, edges, a, a), RATES)
    for i in (0, 17, 49):
        one = measured(counts(a[i], a[i] // 7, a[i] // 9, edges[i], a[i], a[i]), RATES)
        for name, seconds in many.items():
            np.testing.assert_allclose(seconds[i], one[name][0])
    assert min(seconds.min() for seconds in many.values()) >= 0
