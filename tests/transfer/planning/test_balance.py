"""The greedy pass: better than each partition's own best, and near the best of all."""

from itertools import product

import numpy as np
import pytest
from penstock.transfer.planning.balance import alone, balance


def makespan(costs, routes):
    return costs[routes, np.arange(costs.shape[1])].sum(axis=0).max()


def test_balancing_beats_choosing_alone():
    # by itself every partition prefers 2 s of link to 3 s of gather; together they take turns on both
    link, gather = [0, 0, 0, 2.0, 0], [0, 0, 3.0, 0, 0]
    costs = np.array([[link] * 5, [gather] * 5])
    allowed = np.ones((2, 5), bool)
    assert makespan(costs, alone(costs, allowed)) == 10
    assert makespan(costs, balance(costs, allowed)) == 6


def test_a_route_that_does_not_serve_is_not_taken():
    costs = np.array([np.full((3, 5), 1.0), np.zeros((3, 5))])
    allowed = np.array([[True, True, True], [False, True, False]])
    assert balance(costs, allowed).tolist() == [0, 1, 0]


def test_a_partition_without_a_route_is_refused():
    with pytest.raises(ValueError, match=r"no route serves partitions \[1\]"):
        balance(np.zeros((1, 2, 5)), np.array([[True, False]]))


@pytest.mark.parametrize("seed", range(20))
def test_never_worse_than_alone_and_no_single_move_helps(seed):
    random = np.random.default_rng(seed)
    costs = random.random((3, 6, 5)) * (random.random((3, 1, 5)) > 0.4)
    allowed = random.random((3, 6)) > 0.2
    allowed[0] = True
    routes = balance(costs, allowed)
    best = makespan(costs, routes)
    assert best <= makespan(costs, alone(costs, allowed)) + 1e-12
    for number, route in product(range(6), range(3)):
        if allowed[route, number]:
            moved = routes.copy()
            moved[number] = route
            assert makespan(costs, moved) >= best * (1 - 1e-8)
    least = min(
        makespan(costs, np.array(all_routes))
        for all_routes in product(range(3), repeat=6)
        if allowed[list(all_routes), range(6)].all()
    )
    assert best <= 1.5 * least + 1e-12
