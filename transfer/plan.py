"""From demand to a plan: which route brings each partition, which travel together, and in what order.

Owns the decision, as one pure function: numbers in, tasks out. Refuses to touch a device, a file or a clock.
Every partition with demand is in exactly one task. Order: what is resident first, so that kernels have work
while the disk starts; then what needs no disk; then the rest, ascending or by pending value.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from penstock.transfer.balance import balance
from penstock.transfer.combine import Group, combine
from penstock.transfer.cost import KERNEL, LINK, Cost, Counts, measured, published
from penstock.transfer.options import TransferOptions
from penstock.transfer.rates import Rates
from penstock.transfer.residency import Residency
from penstock.transfer.task import Demand, Floats, Ints, PartitionTable, Plan, Task


def make_plan(
    demand: Demand, table: PartitionTable, residency: Residency, rates: Rates, options: TransferOptions
) -> Plan:
    """Return the tasks of one iteration over one adjacency.

    `residency` says where its edges lie for this very demand. A wholly resident adjacency is one task; its
    demand may then hold totals (arrays of one item) instead of one item per partition.
    """
    if residency.whole:
        return whole_plan(demand, table, rates)
    numbers = np.flatnonzero(demand.wanted)
    if not len(numbers):
        return Plan(demand.direction, ())
    counts = _counts(demand, table, residency, numbers)
    costs = measured(counts, rates)
    routes = _routes(counts, costs, residency.resident[numbers], options)
    unbounded = ("resident", "zero-copy") if "zero-copy" in options.routes else ()
    groups = combine(numbers.tolist(), routes, residency.places, table.partition_edges, options.combine, unbounded)
    position = {int(number): i for i, number in enumerate(numbers)}
    members = [[position[n] for n in group if n in position] for _, group in groups]
    tasks = [
        Task(group[0], group[1], _cost(group, costs[group[0]][rows], rates))
        for group, rows in zip(groups, members, strict=True)
    ]
    order = _order(groups, members, counts.disk_bytes, demand.pending[numbers], options.priority)
    return Plan(demand.direction, tuple(tasks[i] for i in order))


def whole_plan(demand: Demand, table: PartitionTable, rates: Rates) -> Plan:
    """Return the one task of a wholly resident adjacency; it asks nothing of the demand but its edges."""
    if not len(table):
        return Plan(demand.direction, ())
    active = table.edges if demand.whole else int(demand.active_edges.sum())
    if not active:
        return Plan(demand.direction, ())
    cost = Cost(kernel=rates.kernel_latency + active / rates.kernel_edges)
    return Plan(demand.direction, (Task("resident", table.numbers, cost),), whole=True)


def _counts(demand: Demand, table: PartitionTable, residency: Residency, numbers: Ints) -> Counts:
    active = table.lengths if demand.whole else demand.active_edges
    read = active if demand.read_edges is None else demand.read_edges

    def of(values: NDArray[np.int64] | Floats) -> Floats:
        return values[numbers].astype(np.float64)

    return Counts(
        edges=of(table.lengths),
        active_edges=of(active),
        active_vertices=np.ones(len(numbers)) if demand.whole else of(demand.active_vertices),  # a sweep is one run
        lines=of(demand.lines),
        read_edges=of(read),
        disk_bytes=of(residency.disk_bytes),
        decode_bytes=of(residency.decode_bytes),
        edge_bytes=residency.edge_bytes,
    )


def _routes(
    counts: Counts, costs: dict[str, Floats], resident: NDArray[np.bool_], options: TransferOptions
) -> list[str]:
    """Name the route of every wanted partition: what is resident stays so, whatever is forced."""
    carried = tuple(name for name in options.routes if name != "resident" and name in costs)
    if options.route not in ("auto", "resident"):
        chosen = np.full(len(resident), options.route)
    elif len(carried) == 1:
        chosen = np.full(len(resident), carried[0])
    elif options.model == "published":
        chosen = published(counts).routes(carried)
    else:
        allowed = np.ones((len(carried), len(resident)), dtype=bool)
        table = np.stack([costs[name] for name in carried])
        table[:, resident] = costs["resident"][resident]
        chosen = np.array(carried)[balance(table, allowed)]
    return [str(name) for name in np.where(resident, "resident", chosen)]


def _cost(group: Group, rows: Floats, rates: Rates) -> Cost:
    """Add up the partitions of a task: one launch, one copy."""
    seconds = rows.sum(axis=0)
    spared = len(rows) - 1
    seconds[KERNEL] = max(0.0, seconds[KERNEL] - spared * rates.kernel_latency)
    if group[0] in ("filter", "compaction"):
        seconds[LINK] = max(0.0, seconds[LINK] - spared * rates.copy_latency)
    return Cost.of(seconds)


def _order(
    groups: list[Group], members: list[list[int]], disk_bytes: Floats, pending: Floats, priority: bool
) -> list[int]:
    """Return the order of the groups: resident, then without disk, then the rest."""
    keys = []
    for i, (route, numbers) in enumerate(groups):
        rank = 0 if route == "resident" else 1 if disk_bytes[members[i]].sum() == 0 else 2
        value = float(pending[members[i]].sum()) if priority else 0.0
        keys.append((rank, -value, numbers[0]))
    return sorted(range(len(groups)), key=keys.__getitem__)
