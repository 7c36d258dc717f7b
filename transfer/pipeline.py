"""The pipeline: views of a plan, while disk, decoding and kernels work at the same time.

A walk is one pass over the tasks of a plan. `arrivals` starts tasks in the order of `prefetch_queue.py`, as many ahead
as slabs and `ahead` allow, and yields each view when its edges are there. A slab goes back when the consumer asks for
the next view: that is the back-pressure. Nothing is left behind: whatever ends the walk (a read error, the consumer's
exception, closing the generator), what has not arrived is cancelled and every slab freed.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from penstock.storage.base.errors import InputError
from penstock.storage.base.timeline import Timeline, during
from penstock.transfer.devices.device import Event
from penstock.transfer.planning.plan import make_plan, whole_plan
from penstock.transfer.prefetch_queue import PrefetchQueue
from penstock.transfer.staging.partition_directory import PartitionDirectory
from penstock.transfer.staging.staging import Staging
from penstock.transfer.values.rates import LINE_BYTES, Rates
from penstock.transfer.values.residency import Residency
from penstock.transfer.values.task import Demand, Direction, Plan, TaskRecord
from penstock.transfer.values.view import View

if TYPE_CHECKING:
    from penstock.storage.format.graph import Graph

KEPT_WALKS = 8
"""Sweeps after which a plan is made anew at the latest: it takes 1 ms between two sweeps (on an H200's host)."""
_log = logging.getLogger("penstock.transfer.pipeline")


@dataclass(slots=True)
class _Sweep:
    """The last plan, of a demand of every edge; changes: of the cache until then; walks: of this demand so far."""

    demand: Demand
    plan: Plan
    changes: int
    walks: int = 0


class Pipeline:
    """Brings the edges of one graph to one device.

    source: where the edges come from that are not in `cache`. directories: the kind of those of its adjacencies.
    `records`: those of the last plan's views, in the order in which they were yielded. One thread uses a pipeline.
    """

    def __init__(
        self, graph: Graph, staging: Staging, directories: type[PartitionDirectory] = PartitionDirectory
    ) -> None:
        self.device, self.source, self.cache, self.options = (
            staging.device, staging.source, staging.cache, staging.options,
        )  # fmt: skip
        self.staging = staging
        self.records: list[TaskRecord] = []
        self._graph, self._directory_type = graph, directories
        self._directories: dict[Direction, PartitionDirectory] = {}
        self._whole_views: dict[tuple[Direction, bool], Callable[[TaskRecord], View]] = {}
        self._started: PrefetchQueue | None = None
        self._sweep: _Sweep | None = None
        self._timeline: Timeline | None = None

    def watch(self, timeline: Timeline) -> None:
        """Stamp plans, waits and gatherings from now on."""
        self._timeline = timeline
        self.staging.packs.timeline = timeline

    def directory(self, direction: Direction) -> PartitionDirectory:
        """Return where the edges of one adjacency are; InputError when the graph does not have it."""
        found = self._directories.get(direction)
        if found is None:
            adjacency = self._graph.adjacency(direction)
            if adjacency is None:
                raise InputError(
                    "the graph has no in-adjacency: convert it again with --direction both, or run with push"
                )
            found = self._directories[direction] = self._directory_type(adjacency, direction, self.staging)
        return found

    def residency(self, demand: Demand) -> Residency:
        """Return where the edges of a demand are, after choosing what the caches keep from now on.

        Kept partitions of this demand stay where they are until the next call or `close`.
        """
        self._let_go()
        return self.directory(demand.direction).residency(demand)

    def plan(self, demand: Demand, rates: Rates, *, resident: bool = False, whole: bool = False) -> Plan:
        """Return the plan of a demand by this pipeline's options: `make_plan` after `residency`.

        resident: whether all edges are known to be where the device reads them; else it is looked up. whole: whether
        all that is not there is copied, whatever route would be chosen.
        """
        if self._timeline is None:
            plan = self._planned(demand, rates, resident, whole)
        else:
            with during(self._timeline, "engine", "plan"):
                plan = self._planned(demand, rates, resident, whole)
        before, self._sweep = self._sweep, None
        if demand.whole:
            walks = before.walks if before is not None and before.demand is demand else 0
            self._sweep = _Sweep(demand, plan, self.cache.changes, walks + 1)
        if _log.isEnabledFor(logging.DEBUG):
            tasks = Counter(task.route for task in plan.tasks)
            routes = ", ".join(f"{count} {route}" for route, count in tasks.items())
            _log.debug("plan for %s of the %s-edges: tasks %s", self.device.name, plan.direction, routes or "none")
        return plan

    def _planned(self, demand: Demand, rates: Rates, resident: bool, whole: bool) -> Plan:
        directory = self.directory(demand.direction)
        if resident:
            self._let_go()
            return whole_plan(demand, directory.table, rates)
        if not self.source.staged and not (demand.whole or demand.wanted.any()):
            self._let_go()  # what a cache keeps changes with what is wanted: here it stays as it is
            self.staging.unpin()
            return Plan(demand.direction, ())
        options = replace(self.options, route="filter") if whole else self.options
        return replace(make_plan(demand, directory.table, self.residency(demand), rates, options), carriers=whole)

    def kept_plan(self, demand: Demand) -> Plan | None:
        """Return the plan of the last walk once more, None where it is to be made anew.

        It stays while the same sweep follows, all edges are in host memory, and the cache holds what it held. What was
        learnt of the rates meanwhile counts after walks 1, 2, 4, and then after every KEPT_WALKS.
        """
        sweep = self._sweep
        if sweep is None or sweep.demand is not demand or self.source.staged or sweep.changes != self.cache.changes:
            return None
        walks = sweep.walks
        if walks & (walks - 1) == 0 or walks % KEPT_WALKS == 0:
            return None
        self._let_go()
        sweep.walks += 1
        return sweep.plan

    def start(self, plan: Plan, demand: Demand, free: Event = None) -> PrefetchQueue:
        """Start as many tasks of a plan that is not `whole` as may be in flight, before its views are asked for.

        The queue is for `arrivals`; another plan, or `close`, releases it. free: the event of the device after which no
        kernel reads the edges of the last walk; None: every kernel launched so far may read them.
        """
        queue = PrefetchQueue(plan, demand, self.directory(plan.direction))
        try:
            with self.source.freed(free):
                queue.read_ahead()
        except BaseException:
            queue.release()
            raise
        self._started = queue
        return queue

    def has_started(self, queue: PrefetchQueue) -> bool:
        """Whether `queue` is the one that `start` made last, and neither a walk has taken it nor a plan released it."""
        return queue is self._started

    def _let_go(self) -> None:
        """Release the queue that `start` made, if no walk has taken it."""
        started, self._started = self._started, None
        if started is not None:
            started.release()

    def arrivals(self, plan: Plan, demand: Demand, started: PrefetchQueue | None = None) -> Generator[View]:
        """Yield the views of a plan; `records` fills as they are yielded. started: what `start` gave for it.

        A view's arrays are valid until the next one is asked for. Raises RunError when edges cannot be read;
        any exception here or in the consumer ends the walk and frees everything.
        """
        self.records = []
        return self._whole(plan, demand) if plan.whole else self._walk(plan, demand, started)

    def check(self) -> None:
        """Raise RunError where packed edges that the device has unpacked so far were malformed."""
        if self.staging.unpacking is not None:
            self.staging.unpacking.unpacker.check()

    def close(self) -> None:
        """Release a started queue, unpin what the caches keep, free the gather buffers, and close the source."""
        self._let_go()
        self.staging.close()
        self.source.close()

    def _walk(self, plan: Plan, demand: Demand, started: PrefetchQueue | None) -> Generator[View]:
        queue = started or PrefetchQueue(plan, demand, self.directory(plan.direction))
        self._started = None
        try:
            while (transfer := queue.next_ready()) is not None:
                if self._timeline is None:
                    view = transfer.view()
                else:
                    with during(self._timeline, "engine", "wait"):
                        view = transfer.view()
                self.records.append(view.record)
                yield view
        finally:
            queue.release()

    def _whole(self, plan: Plan, demand: Demand) -> Generator[View]:
        """Yield the one view of an adjacency that is in one array; it needs no queue."""
        task, directory = plan.tasks[0], self.directory(plan.direction)
        record = TaskRecord(task.route, plan.direction, task.partitions, predicted=task.cost)
        record.edges = directory.table.edges if demand.whole else int(demand.active_edges.sum())
        record.lines = int(demand.lines.sum())
        if task.route == "resident":
            record.hits = directory.hits(demand)
            self.records.append(record)
            key = plan.direction, demand.with_weights
            if key not in self._whole_views:
                where = 0, directory.table.edges, *directory.all_rows, *directory.whole_arrays(demand.with_weights)
                self._whole_views[key] = partial(View, *where)
            yield self._whole_views[key](record)
            return
        record.wanted, record.rows = 1, int(demand.active_vertices.sum())
        record.bytes_link = record.lines * LINE_BYTES
        transfer = self.staging.link.in_place(directory.whole_request(demand.with_weights, record))
        assert transfer is not None, "all edges are in page-locked host memory"
        try:
            self.records.append(record)
            yield transfer.view()
        finally:
            transfer.release()
