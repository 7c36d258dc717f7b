"""From demand to a plan: which route brings each partition, which travel together, and in what order.

Owns the decision, as one pure function: numbers in, tasks out. Refuses to touch a device, a file or a clock.
Every partition with demand is in exactly one task. Order: what is resident first, so that kernels have work
while the disk starts; then what needs no disk; then the rest, ascending or by pending value.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from penstock.transfer.planning.balance import balance
from penstock.transfer.planning.combine import PartitionGroup, Rules, combine
from penstock.transfer.values.cost import (
    DECODE,
    DISK,
    GATHER,
    KERNEL,
    LINK,
    RESOURCES,
    UNPACK,
    Cost,
    Counts,
    measured,
    published_routes,
)
from penstock.transfer.values.options import TransferOptions
from penstock.transfer.values.rates import TASK_SECONDS, Rates
from penstock.transfer.values.residency import DENSE, Residency
from penstock.transfer.values.task import Demand, Floats, Ints, PartitionTable, Plan, Task

Bools = NDArray[np.bool_]
CARRIERS = {"cel": "filter"}
"""Forced routes that add rows during the walk (routes/cel.py), and the route by which the plan's partitions travel."""
UNPACK_GAIN = {True: 0.85, False: 0.5}
"""Edges that travel packed must bring an iteration below this share of its time with all of them read in place, plain,
in one task; by whether all edges of partitions are wanted. A task for each partition has its price (on an H200 300 us
with a frontier's), of which the model knows only a part."""
GATHER_GAIN = 0.7
"""Gathering must bring an iteration below this share of its time without: it shares the host's memory with the link."""
COUNT_SECONDS = 2e-3
"""What counting a frontier's demand, and making the plan, take: the link waits for them (1.9 to 2.5 ms, H200)."""


def pays(saved: float, tasks: int = 1, *, counted: bool) -> bool:
    """Return whether saving so many seconds over reading all edges in place is worth the host's time for it.

    It takes `tasks` tasks more and, unless the demand is `counted` already, counting it.
    """
    return saved >= tasks * TASK_SECONDS + (0.0 if counted else COUNT_SECONDS)


def routes_of(options: TransferOptions) -> tuple[str, ...]:
    """Return the routes that partitions may take: the forced one, by which they then travel, or all that serve."""
    forced = options.route not in ("auto", "resident")
    return (CARRIERS.get(options.route, options.route),) if forced else options.routes


def make_plan(
    demand: Demand, table: PartitionTable, residency: Residency, rates: Rates, options: TransferOptions
) -> Plan:
    """Return the tasks of one iteration over one adjacency.

    `residency`: where its edges are stored, for this demand. A wholly resident adjacency is one task; its
    demand may then hold totals (arrays of one item) instead of one item per partition.
    """
    if residency.whole:
        return whole_plan(demand, table, rates)
    numbers = np.flatnonzero(demand.wanted)  # the wanted partitions; most arrays below have one item for each
    if not len(numbers):
        return Plan(demand.direction, ())
    counts = _counts(demand, table, residency, numbers)
    costs = measured(counts, rates, options.combine)
    words = _words(demand, table, numbers) if demand.packable else None
    capacity = options.partition_edges * options.combine
    packable = np.zeros(len(numbers), dtype=bool) if words is None else words <= capacity
    routes = _routes(
        (counts, costs, rates), residency.resident[numbers], packable, options, whole=demand.blocks is None
    )
    if options.route == "auto" and "filter" in costs:
        staying = (residency.places[numbers] >= 0) & (counts.disk_bytes > 0) & (routes == "zero-copy")
        # so much wanted that reading it in place would take at least half as long, and again in the next iteration
        dense = costs["filter"][:, LINK] * DENSE <= costs["zero-copy"][:, LINK]
        routes = np.where(staying & dense, "filter", routes)
    in_memory = residency.unpacked_edges is None and residency.host_places is None
    if in_memory and options.route == "auto" and options.model == "measured":
        routes = _undivided(routes, costs, residency.places[numbers], rates)
    unbounded = ("resident", "zero-copy") if "zero-copy" in options.routes else ()
    rules = Rules(options.combine, unbounded, residency.host_places, words, capacity)
    if residency.unpacked_edges is not None:
        rules = replace(rules, unpacked=True)
    groups = combine(numbers, routes, residency.places, table.partition_edges, rules)
    chosen = np.empty((len(numbers), len(RESOURCES)))
    for route in costs:
        chosen[routes == route] = costs[route][routes == route]
    seconds = _task_seconds(groups, chosen, rates, options.combine)
    tasks = [
        Task(group.route, group.partitions, Cost(*row)) for group, row in zip(groups, seconds.tolist(), strict=True)
    ]
    order = _order(groups, counts.disk_bytes, demand.pending[numbers], options.priority)
    return Plan(demand.direction, tuple(tasks[i] for i in order))


def _undivided(routes: NDArray[np.str_], costs: dict[str, Floats], places: Ints, rates: Rates) -> NDArray[np.str_]:
    """The routes, with zero-copy for what else is among partitions read in place and saves less than it costs.

    One launch reads all that is in place, whatever its partitions; what goes by other routes among them are tasks more,
    and cuts that launch in two. Here what has a place in the cache counts as if it were there already. On a web graph
    of 134 M edges one such partition took a pull 0.5 to 0.9 ms, for 3 % of the edges.
    """
    in_place = routes == "zero-copy"
    if in_place.all() or not in_place.any():
        return routes
    copied = np.where(places >= 0, 0.0, costs["filter"][:, LINK])
    saved = costs["zero-copy"][:, LINK] - rates.line_latency - copied
    changes = np.flatnonzero(routes[1:] != routes[:-1]) + 1
    bounds = np.flatnonzero(np.diff(np.concatenate(([True], in_place, [True])).astype(np.int8))).reshape(-1, 2)
    routes = routes.copy()
    for first, last in bounds.tolist():
        tasks = 1 + int(np.count_nonzero((changes > first) & (changes < last))) + (first > 0 and last < len(routes))
        if not pays(float(saved[first:last].sum()), tasks, counted=True):
            routes[first:last] = "zero-copy"
    return routes


def whole_plan(demand: Demand, table: PartitionTable, rates: Rates) -> Plan:
    """Return the one task of a wholly resident adjacency; it asks nothing of the demand but its edges."""
    active = table.edges if demand.whole or not table.edges else int(demand.active_edges.sum())
    if not active:
        return Plan(demand.direction, ())
    cost = Cost(kernel=rates.kernel_latency + active / rates.kernel_edges)
    return Plan(demand.direction, (Task("resident", table.numbers, cost),), whole=True)


def _counts(demand: Demand, table: PartitionTable, residency: Residency, numbers: Ints) -> Counts:
    active = table.lengths if demand.whole else demand.active_edges
    read = active if demand.read_edges is None else demand.read_edges

    def of(values: NDArray[np.int64] | Floats) -> Floats:
        return values[numbers].astype(np.float64)

    def known(values: NDArray[np.int64] | None) -> Floats | None:
        return None if values is None else of(values)

    return Counts(
        edges=of(table.lengths),
        active_edges=of(active),
        active_vertices=np.ones(len(numbers)) if demand.whole else of(demand.active_vertices),  # whole: one run
        lines=of(demand.lines),
        read_edges=of(read),
        disk_bytes=of(residency.disk_bytes),
        decode_bytes=of(residency.decode_bytes),
        edge_bytes=residency.edge_bytes,
        copied_bytes=known(residency.lacking_bytes),
        unpacked_edges=known(residency.unpacked_edges),
        block_bytes=known(residency.block_bytes),
        plain_disk_bytes=known(residency.plain_disk_bytes),
        plain_decode_bytes=known(residency.plain_decode_bytes),
    )


def _routes(
    models: tuple[Counts, dict[str, Floats], Rates],
    resident: Bools,
    packable: Bools,
    options: TransferOptions,
    *,
    whole: bool = False,
) -> NDArray[np.str_]:
    """Name the route of every wanted partition: what is resident stays so, whatever is forced.

    What is resident but packed may rather be read in place in host memory: a few rows are not worth unpacking.
    models: the counts for HyTGraph's model (`published`), the costs and the rates of ours (`measured`). packable: which
    partitions may be compacted; of the others those for which compaction was chosen take `filter`. whole: every edge of
    these partitions is wanted.
    """
    counts, costs, rates = models
    carried = tuple(name for name in options.routes if name != "resident" and name in costs)
    if options.route not in ("auto", "resident"):
        (forced,) = routes_of(options)
        chosen = np.full(len(resident), forced)
    elif len(carried) == 1:
        chosen = np.full(len(resident), carried[0])
    elif options.model == "published":
        chosen = published_routes(counts, carried)
    else:
        chosen = _balanced(_as_run(costs, rates, options), carried, resident, packable, whole=whole)
    chosen = np.where((chosen == "compaction") & ~packable, "filter", chosen)
    if counts.unpacked_edges is not None and options.route == "auto":
        resident = resident & (chosen != "zero-copy")
    return np.where(resident, "resident", chosen)


def _as_run(costs: dict[str, Floats], rates: Rates, options: TransferOptions) -> dict[str, Floats]:
    """The costs with latencies shared as in tasks: one launch for all that is read in place, one for each full slab.

    A kernel that reads in place runs as long as its reads over the link, so its seconds are at least theirs. What
    unpacks needs the processors that kernels run on.
    """
    shares = {"zero-copy": 1 / max(1, len(costs["zero-copy"])), "filter": 1 / options.combine}
    found = dict(costs)
    for route, share in shares.items():
        found[route] = costs[route].copy()
        found[route][:, KERNEL] -= (1 - share) * np.minimum(rates.kernel_latency, costs[route][:, KERNEL])
    link = found["zero-copy"][:, LINK]
    link -= (1 - shares["zero-copy"]) * np.minimum(rates.line_latency, link)
    found["zero-copy"][:, KERNEL] = np.maximum(found["zero-copy"][:, KERNEL], link)
    for route in ("resident", "filter", "blocks"):
        if route in found and found[route][:, UNPACK].any():
            found[route] = found[route].copy()
            waits = np.minimum(rates.unpack_latency, found[route][:, UNPACK])
            found[route][:, KERNEL] += found[route][:, UNPACK] - waits
    return found


def _balanced(
    costs: dict[str, Floats], carried: tuple[str, ...], resident: Bools, packable: Bools, *, whole: bool
) -> NDArray[np.str_]:
    """The routes by `balance`; compaction only if the busiest resource takes below GATHER_GAIN of its time without.

    Packed edges likewise, where plain ones can all be read in place by one kernel: UNPACK_GAIN. What a sweep reads from
    disk stays in host memory then, packed or plain, and does not count.
    """
    allowed = np.ones((len(carried), len(resident)), dtype=bool)
    seconds = np.stack([costs[name] for name in carried])
    stays = [name for name in carried if name != "zero-copy" or not costs["resident"][:, UNPACK].any()]
    for name in stays:
        seconds[carried.index(name), resident] = costs["resident"][resident]
    gathers = [name == "compaction" for name in carried]
    allowed[gathers] = False
    apart = "zero-copy" in carried and "zero-copy" not in stays
    if apart and whole:
        seconds[:, :, [DISK, DECODE]] = 0.0
        allowed[carried.index("zero-copy")] = False
    without = balance(seconds, allowed)
    if apart:
        at, places = carried.index("zero-copy"), np.arange(len(resident))
        plain, packed = seconds[at].sum(axis=0).max(), seconds[without, places].sum(axis=0).max()
        return np.array(carried)[without if packed < UNPACK_GAIN[whole] * plain else np.full(len(resident), at)]
    places = np.arange(len(resident))
    if not (any(gathers) and packable.any() and _may_gather(seconds, without, gathers.index(True))):
        return np.array(carried)[without]
    allowed[gathers] = packable
    with_it = balance(seconds, allowed)
    before, after = (seconds[routes, places].sum(axis=0).max() for routes in (without, with_it))
    return np.array(carried)[with_it if after < GATHER_GAIN * before else without]


def _may_gather(seconds: Floats, without: Ints, compaction: int) -> bool:
    """Whether gathering could bring an iteration below GATHER_GAIN of its time: a bound that costs little to know.

    What is gathered must save more than 1 - GATHER_GAIN of that time on the busiest resource, and take less than
    GATHER_GAIN of it to gather: so must the seconds of at least one partition, in proportion.
    """
    chosen = seconds[without, np.arange(len(without))]
    busiest = int(chosen.sum(axis=0).argmax())
    saved = chosen[:, busiest] - seconds[compaction, :, busiest]
    return bool(np.any(saved > (1 / GATHER_GAIN - 1) * seconds[compaction, :, GATHER]))


def _words(demand: Demand, table: PartitionTable, numbers: Ints) -> Ints:
    """How many words (items as wide as a neighbor) each wanted partition takes of a slab, at most, when compacted.

    One for each edge, two for each row (its vertex and its offset), and one offset more.
    """
    if demand.whole:
        return np.asarray(table.lengths + 2 * (table.v1 - table.v0) + 1)
    return np.asarray((demand.active_edges + 2 * demand.active_vertices + 1)[numbers])


def _task_seconds(groups: list[PartitionGroup], rows: Floats, rates: Rates, together: int) -> Floats:
    """Return the seconds of every task, float64[groups, 6]: its partitions' sums, with one launch and one copy.

    rows: seconds of each wanted partition, float64[p, 6]. together: partitions that fill a slab (`options.combine`);
    each filter partition has only that part of a copy's latency in its seconds, and a task has all of it.
    """
    firsts = np.array([group.first for group in groups])
    counts = np.array([group.last - group.first for group in groups])
    seconds = np.add.reduceat(rows, firsts, axis=0)
    seconds[:, KERNEL] -= (counts - 1) * rates.kernel_latency
    names = np.array([group.route for group in groups])
    seconds[:, LINK] += np.where(names == "filter", rates.copy_latency * (1 - counts / together), 0.0)
    seconds[:, LINK] -= np.where(names == "compaction", rates.copy_latency * (counts - 1), 0.0)
    seconds[:, LINK] -= np.where(names == "zero-copy", rates.line_latency * (counts - 1), 0.0)
    return np.maximum(seconds, 0.0)


def _order(groups: list[PartitionGroup], disk_bytes: Floats, pending: Floats, priority: bool) -> list[int]:
    """Return the order of the groups: resident, then without disk, then the rest."""
    firsts = np.array([group.first for group in groups])
    resident = np.array([group.route == "resident" for group in groups])
    from_disk = np.add.reduceat(disk_bytes, firsts) > 0
    rank = np.where(resident, 0, np.where(from_disk, 2, 1))
    value = np.add.reduceat(pending, firsts) if priority else np.zeros(len(groups))
    return [int(at) for at in np.lexsort((firsts, -value, rank))]
