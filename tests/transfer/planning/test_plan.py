"""Plans: every partition with demand exactly once, by a route that serves it, in a sensible order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.storage.base.errors import InputError
from penstock.transfer.planning.plan import COUNT_SECONDS, make_plan, pays
from penstock.transfer.values.options import TransferOptions
from penstock.transfer.values.rates import TASK_SECONDS, Rates
from penstock.transfer.values.residency import Residency
from penstock.transfer.values.task import Demand, PartitionTable

STEP = 1 << 20
ALL = ("resident", "filter", "compaction", "zero-copy")


def table_of(count):
    e0 = np.arange(count, dtype=np.int64) * STEP
    return PartitionTable("out", STEP, e0, e0 + STEP, e0 // 16, (e0 + STEP) // 16)


def demand_of(active, vertices=None, lines=None, pending=None):
    active = np.asarray(active, np.int64)
    vertices = active // 16 + (active > 0) if vertices is None else np.asarray(vertices, np.int64)
    lines = active // 16 + vertices if lines is None else np.asarray(lines, np.int64)
    pending = np.zeros(len(active)) if pending is None else np.asarray(pending, float)
    return Demand("out", vertices, active, lines, pending)


def residency_of(count, resident=(), places=None, disk=None, whole=False):
    mask = np.zeros(count, bool)
    mask[list(resident)] = True
    places = np.full(count, -1) if places is None else np.asarray(places)
    disk = np.where(mask, 0, STEP) if disk is None else np.asarray(disk)
    return Residency(mask, places.astype(np.int64), disk, 4 * disk, 4, whole)


def options(**changes):
    return TransferOptions(**{"partition_edges": STEP, "routes": ALL, **changes})


def flat(plan):
    return [n for task in plan.tasks for n in task.partitions]


@given(
    st.lists(st.tuples(st.integers(0, STEP), st.booleans(), st.booleans()), min_size=1, max_size=30),
    st.sampled_from(["measured", "published"]),
    st.sampled_from(["auto", *ALL]),
    st.integers(1, 4),
    st.booleans(),
)
def test_every_partition_with_demand_is_planned_exactly_once(rows, model, route, k, priority):
    active = [row[0] for row in rows]
    resident = [i for i, row in enumerate(rows) if row[1]]
    places = [i * STEP if row[1] or row[2] else -1 for i, row in enumerate(rows)]
    chosen = options(model=model, route=route, combine=k, priority=priority)
    residency = residency_of(len(rows), resident, places)
    plan = make_plan(demand_of(active), table_of(len(rows)), residency, Rates.pcie5(16), chosen)
    numbers = flat(plan)
    assert len(numbers) == len(set(numbers))
    assert {n for n in numbers if active[n]} == {i for i, edges in enumerate(active) if edges}
    for task in plan.tasks:
        known = {n for n in task.partitions if active[n]}
        assert known, "no task without demand"
        assert task.route != "resident" or known <= set(resident)
        in_place = (route, model, task.route) == ("auto", "measured", "zero-copy")  # as is what surrounds it
        assert in_place or task.route == "resident" or not known & set(resident)
        if route not in ("auto", "resident"):
            assert task.route in ("resident", route) or (route, task.route) == (
                "compaction",
                "filter",
            )  # a slab's worth
        assert min(task.cost.disk, task.cost.decode, task.cost.gather, task.cost.link, task.cost.kernel) >= 0


def test_a_host_takes_resident_and_filter_only():
    host = options(routes=("resident", "filter"))
    plan = make_plan(demand_of([10, 10, STEP]), table_of(3), residency_of(3, [1]), Rates.host(2), host)
    assert [(t.route, t.partitions) for t in plan.tasks] == [
        ("resident", (1,)), ("filter", (0,)), ("filter", (2,)),
    ]  # fmt: skip


def test_resident_first_then_without_disk_then_the_rest():
    residency = residency_of(5, [3], disk=[9, 0, 9, 0, 0])
    plan = make_plan(demand_of([STEP] * 5), table_of(5), residency, Rates.pcie5(4), options(route="filter"))
    assert flat(plan) == [3, 1, 4, 0, 2]


def test_a_small_resident_part_is_read_in_place_with_what_surrounds_it():
    few = demand_of([64] * 5, vertices=[8] * 5)
    at_hand = residency_of(5, [2], disk=[0] * 5)
    plan = make_plan(few, table_of(5), at_hand, Rates.pcie5(16), options())
    assert [(t.route, t.partitions) for t in plan.tasks] == [("zero-copy", (0, 1, 2, 3, 4))]
    slow = replace(Rates.pcie5(16), line_rate=2e4, sector_rate=2e4)  # one line takes 50 us
    plan = make_plan(few, table_of(5), at_hand, slow, options(routes=("resident", "zero-copy")))
    assert [t.partitions for t in plan.tasks if t.route == "resident"] == [(2,)]
    published = make_plan(few, table_of(5), at_hand, Rates.pcie5(16), options(model="published"))
    assert (2,) in [t.partitions for t in published.tasks if t.route == "resident"]


def test_priority_brings_the_largest_pending_value_first():
    demand = demand_of([STEP] * 4, pending=[1, 5, 2, 9])
    forced = options(route="filter", priority=True)
    assert flat(make_plan(demand, table_of(4), residency_of(4), Rates.pcie5(4), forced)) == [3, 1, 2, 0]
    forced = options(route="filter", priority=False)
    assert flat(make_plan(demand, table_of(4), residency_of(4), Rates.pcie5(4), forced)) == [0, 1, 2, 3]


def test_dense_partitions_are_copied_and_sparse_ones_read_in_place():
    demand = demand_of([STEP, 64, STEP, 64], vertices=[STEP // 16, 4, STEP // 16, 4])
    slow = replace(Rates.pcie5(16), copy_bytes=5e7, line_rate=4e5, sector_rate=7e5)  # a copy takes longer than a launch
    for model in ("measured", "published"):
        plan = make_plan(demand, table_of(4), residency_of(4, disk=[0] * 4), slow, options(model=model))
        routes = {n: task.route for task in plan.tasks for n in task.partitions}
        assert routes[0] == routes[2] == "filter"
        assert routes[1] in ("zero-copy", "compaction")


def test_where_kernels_are_the_limit_one_launch_in_place_beats_many_copies():
    everything, held = demand_of([STEP] * 40, vertices=[1] * 40), residency_of(40, disk=[0] * 40)
    fast, slow = (
        Rates(copy_bytes=5e10, line_rate=3e8, kernel_edges=edges, kernel_latency=1e-5) for edges in (1e12, 1e9)
    )
    for rates, routes in ((fast, {"filter"}), (slow, {"zero-copy"})):
        plan = make_plan(everything, table_of(40), held, rates, options(routes=("filter", "zero-copy")))
        assert {task.route for task in plan.tasks} == routes


def test_reading_in_place_keeps_other_kernels_waiting():
    """What is resident can be worked on while copies travel, and not while a kernel reads over the link."""
    rates = Rates(
        copy_bytes=4e9, line_rate=3.3e7, kernel_edges=1e9
    )  # a partition: 1.05 ms to copy, 1.99 to read, 1.05 to walk
    everything, held = demand_of([STEP] * 8, vertices=[1] * 8), residency_of(8, [0, 1, 2, 3], disk=[0] * 8)
    plan = make_plan(everything, table_of(8), held, rates, options(routes=("resident", "filter", "zero-copy")))
    assert {task.route for task in plan.tasks} == {"resident", "filter"}


def test_a_combined_task_pays_one_copy_latency():
    rates = Rates(copy_bytes=1e9, copy_latency=1.0, kernel_edges=1e9, kernel_latency=0.5)
    plan = make_plan(demand_of([STEP] * 4), table_of(4), residency_of(4), rates, options(route="filter", combine=4))
    (task,) = plan.tasks
    assert task.cost.link == pytest.approx(1.0 + 4 * STEP * 4 / 1e9)
    assert task.cost.kernel == pytest.approx(0.5 + 4 * STEP / 1e9)


def test_a_wholly_resident_adjacency_is_one_task_and_totals_will_do():
    totals = Demand("out", *(np.array([7]) for _ in range(3)), np.zeros(1))
    plan = make_plan(totals, table_of(5), residency_of(5, whole=True), Rates.host(1), options())
    assert plan.whole
    assert [(t.route, t.partitions) for t in plan.tasks] == [("resident", (0, 1, 2, 3, 4))]
    nothing = Demand("out", *(np.array([0]) for _ in range(3)), np.zeros(1))
    assert make_plan(nothing, table_of(5), residency_of(5, whole=True), Rates.host(1), options()).tasks == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"route": "cel"}, "does not serve"), ({"model": "guess"}, "measured, published"), ({"slabs": -1}, "slabs"),
        ({"combine": 0}, "combine"), ({"ahead": 0}, "ahead"), ({"partition_edges": 0}, "partition_edges"),
    ],
)  # fmt: skip
def test_options_refuse_what_they_do_not_know(change, message):
    with pytest.raises(InputError, match=message):
        options(**change)


@pytest.mark.parametrize(
    ("saved", "tasks", "counted", "expected"),
    [
        (0.0, 1, True, False),
        (TASK_SECONDS, 1, True, True),
        (TASK_SECONDS, 2, True, False),
        (TASK_SECONDS, 1, False, False),
        (TASK_SECONDS + COUNT_SECONDS, 1, False, True),
        (1.0, 3, False, True),
    ],
)
def test_what_is_saved_must_outweigh_tasks_and_counting(
    saved: float, tasks: int, counted: bool, expected: bool
) -> None:
    assert pays(saved, tasks, counted=counted) is expected
