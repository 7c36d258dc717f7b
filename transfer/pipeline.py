"""The pipeline: a plan goes in, views come out, and disk, decoding and kernels work at the same time.

Owns the walk of one iteration's edges: `arrivals` starts tasks in the order of the plan, as many ahead as slabs
and `ahead` allow, and yields each view when its edges are there. A slab goes back when the consumer asks for
the next view: that is the back-pressure. Refuses to leave anything behind: whatever ends the walk (a read
error, the consumer's exception, closing the generator), what has not arrived is cancelled and every slab freed.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError
from penstock.storage.base.timeline import Timeline, during
from penstock.storage.read.partition_cache import HostCache
from penstock.transfer.devices.device import Device
from penstock.transfer.planning.plan import make_plan
from penstock.transfer.prefetch_queue import PrefetchQueue
from penstock.transfer.routes import cel
from penstock.transfer.staging.fetch import ChunkReader
from penstock.transfer.staging.gather_buffers import GatherBuffers
from penstock.transfer.staging.host_to_device import Link
from penstock.transfer.staging.partition_directory import AdjacencyArrays, PartitionDirectory
from penstock.transfer.staging.slab_pool import Slabs
from penstock.transfer.staging.staged_reader import StagedReader
from penstock.transfer.values.options import TransferOptions
from penstock.transfer.values.rates import Rates
from penstock.transfer.values.residency import Residency
from penstock.transfer.values.task import Demand, Direction, Ints, PartitionTable, Plan, TaskRecord
from penstock.transfer.values.view import View

_log = logging.getLogger("penstock.transfer.pipeline")


class GraphLike(Protocol):
    """What transfer asks of a graph: its adjacencies."""

    @property
    def out(self) -> AdjacencyArrays:
        """Return the out-adjacency."""

    @property
    def into(self) -> AdjacencyArrays | None:
        """Return the in-adjacency, None where the graph has none."""


class Pipeline:
    """Brings the edges of one graph to one device.

    `reader` and `cache` may be None for a graph in memory. Pipelines of several devices may share both.
    `source`: the host's own pipeline, where a device behind a link is fed from a host that does not hold every edge,
    and `reader` is a Relay. `records`: the records of the last plan's views, in the order in which they were yielded.
    One thread uses a pipeline.
    """

    def __init__(
        self,
        graph: GraphLike,
        reader: ChunkReader | None,
        device: Device,
        cache: HostCache | None,
        options: TransferOptions,
        source: Pipeline | None = None,
    ) -> None:
        self.device = device
        self.source = source
        self.cache = cache
        self.options = options
        self.records: list[TaskRecord] = []
        self._graph = graph
        self._reader = reader
        self._stages: dict[Direction, PartitionDirectory] = {}
        self._fast: dict[tuple[Direction, bool], Callable[[TaskRecord], View]] = {}
        self._pinned: Ints | None = None
        self._walking: PrefetchQueue | None = None
        self._started: PrefetchQueue | None = None
        self._timeline: Timeline | None = None
        self._slabs = self._make_slabs()
        self._packs = self._make_packs() if "compaction" in self.options.routes else None

    def _make_slabs(self) -> Slabs:
        out, options = self._graph.out, self.options
        edges = options.partition_edges * options.combine
        return Slabs(self.device, options.slabs, edges, out.neighbor_dtype, out.weight_dtype)

    def _make_packs(self) -> GatherBuffers:
        out, options = self._graph.out, self.options
        edges = options.partition_edges * options.combine
        types = out.neighbor_dtype, out.weight_dtype
        return GatherBuffers(self.device, options.slabs, edges, types, options.gather_threads)

    def watch(self, timeline: Timeline) -> None:
        """Stamp plans, waits and gatherings from now on."""
        self._timeline = timeline
        if self._packs is not None:
            self._packs.timeline = timeline

    @property
    def free_packs(self) -> int:
        """Packs that hold nothing; all of them between two plans, once the device has done."""
        return 0 if self._packs is None else self._packs.free

    @property
    def free_slabs(self) -> int:
        """Slabs that hold nothing; all of them between two plans."""
        return self._slabs.free

    def table(self, direction: Direction) -> PartitionTable:
        """Return the partitions of one adjacency; InputError when the graph does not have it."""
        return self.stage(direction).table

    def whole(self, direction: Direction, with_weights: bool) -> bool:
        """Return whether an adjacency lies entirely in one array: then demand may hold totals only."""
        return self.stage(direction).whole(with_weights)

    def here(self, direction: Direction, with_weights: bool) -> NDArray[np.bool_]:
        """Return which partitions are entirely where the device reads them, bool[p]."""
        return self.stage(direction).here(with_weights)

    def residency(self, demand: Demand, elsewhere: NDArray[np.bool_] | None = None) -> Residency:
        """Return where the edges of a demand lie, after choosing what the cache keeps from now on.

        Kept partitions of this demand stay where they are until the next call or `close`. elsewhere: partitions
        that the device behind a link holds, bool[p], so that they need not be kept here as well.
        """
        stage = self.stage(demand.direction)
        self._let_go()
        self._unpin()
        answer = stage.residency(demand, elsewhere)
        if self.source is not None and not answer.whole:
            answer = self._with_source(demand, stage, answer)
        cache = self.cache
        if cache is not None and not cache.whole and not answer.whole:
            kept = (answer.places >= 0) & demand.wanted
            self._pinned = kept.nonzero()[0] + cache.entry(stage.key, 0)
            cache.pins[self._pinned] += 1
        return answer

    @staticmethod
    def _lacking(demand: Demand, stage: PartitionDirectory, absent: NDArray[np.bool_]) -> Demand:
        """What a demand on the device is for the host behind it: the chunks that the device lacks."""
        edges = np.where(stage.partitions_of(absent), stage.table.lengths, 0)
        return replace(demand, active_edges=edges, wanted_chunks=absent.astype(np.uint8), whole=False)

    def _with_source(self, demand: Demand, stage: PartitionDirectory, answer: Residency) -> Residency:
        """The same, with what the host must read from disk for what the device lacks; the host's cache chooses too."""
        assert self.source is not None
        self._settle()
        theirs = self.source.residency(self._lacking(demand, stage, stage.absent(demand)), stage.held_partitions)
        if theirs.whole:
            return replace(answer, host_places=stage.table.e0)
        return replace(
            answer, disk_bytes=theirs.disk_bytes, decode_bytes=theirs.decode_bytes, host_places=theirs.places
        )

    def _settle(self) -> None:
        """Wait until the device reads nothing of the host that may now lose its place."""
        if isinstance(self._reader, StagedReader):
            self._reader.shelf.settle()

    def plan(self, demand: Demand, rates: Rates) -> Plan:
        """Return the plan of a demand by this pipeline's options: `make_plan` after `residency`."""
        table = self.table(demand.direction)
        with during(self._timeline, "engine", "plan"):
            if self.source is None and not (demand.whole or demand.wanted.any()):
                self._let_go()  # what a cache keeps changes with what is wanted: here it stays as it is
                self._unpin()
                plan = Plan(demand.direction, ())
            else:
                plan = make_plan(demand, table, self.residency(demand), rates, self.options)
        if _log.isEnabledFor(logging.DEBUG):
            tasks = Counter(task.route for task in plan.tasks)
            told = ", ".join(f"{count} {route}" for route, count in tasks.items())
            _log.debug("plan for %s of the %s-edges: tasks %s", self.device.name, plan.direction, told or "none")
        return plan

    def start(self, plan: Plan, demand: Demand, free: Any = None) -> PrefetchQueue:
        """Start what may be on its way at once of a plan that is not whole, before its views are asked for.

        The walk is for `arrivals`; another plan, or `close`, lets it go. free: the event of the device behind which no
        kernel reads what the last walk brought; None: all that were launched so far may.
        """
        walk = PrefetchQueue(plan, demand, self.stage(plan.direction), self.options)
        try:
            with self._reader.freed(free) if isinstance(self._reader, Link) else nullcontext():
                walk.read_ahead()
        except BaseException:
            walk.release()
            raise
        self._started = walk
        return walk

    def has_started(self, walk: PrefetchQueue) -> bool:
        """Whether a walk that `start` gave still has what it started."""
        return walk is self._started

    def _let_go(self) -> None:
        """Release a walk that was started and whose views nobody asked for."""
        started, self._started = self._started, None
        if started is not None:
            started.release()

    def arrivals(self, plan: Plan, demand: Demand, started: PrefetchQueue | None = None) -> Iterator[View]:
        """Yield the views of a plan; `records` fills as they are yielded. started: what `start` gave for it.

        A view's arrays are valid until the next one is asked for. Raises RunError when edges cannot be read;
        any exception here or in the consumer ends the walk and frees everything.
        """
        self.records = []
        if plan.whole:
            return iter((self._whole_view(plan, demand),))
        return self._walk(plan, demand, started)

    def close(self) -> None:
        """Let the cache drop what this pipeline had kept in place, and the host what it had lent."""
        self._let_go()
        self._unpin()
        if self._packs is not None:
            self._packs.close()
        if self.source is not None:
            self._settle()
            self.source.close()

    def _walk(self, plan: Plan, demand: Demand, started: PrefetchQueue | None) -> Iterator[View]:
        if started is None:
            started = PrefetchQueue(plan, demand, self.stage(plan.direction), self.options)
        walk = self._walking = started
        self._started = None
        try:
            walk.read_ahead()
            while (parcel := walk.hand_over()) is not None:
                with during(self._timeline, "engine", "wait"):
                    view = parcel.view()
                self.records.append(view.record)
                yield view
                walk.take_back()
                walk.read_ahead()
        finally:
            self._walking = None
            walk.release()

    def follow(self, demand: Demand) -> None:
        """Bring the marked rows of a demand too, by route `cel`, before what comes next in this walk.

        demand: exact counts of the marked rows, whose chunks are all `complete`. Raises RuntimeError between walks.
        """
        if self._walking is None:
            raise RuntimeError("rows can follow a walk only while it lasts")
        self._walking.join(cel.bundles(demand, self.stage(demand.direction)))

    def _whole_view(self, plan: Plan, demand: Demand) -> View:
        """Return the one view of a wholly resident adjacency: the short cut of tiny iterations."""
        key = plan.direction, demand.with_weights
        known = self._fast.get(key)
        table = self.table(plan.direction)
        if known is None:
            rows = (int(table.v0[0]), int(table.v1[-1])) if len(table) else (0, 0)
            arrays = self.stage(plan.direction).whole_arrays(demand.with_weights)
            known = partial(View, 0, table.edges, *rows, *arrays)
            self._fast[key] = known
        record = TaskRecord("resident", plan.direction, plan.tasks[0].partitions, predicted=plan.tasks[0].cost)
        record.edges = table.edges if demand.whole else int(demand.active_edges.sum())
        record.lines = int(demand.lines.sum())
        record.hits = self.stage(plan.direction).hits(demand)
        self.records.append(record)
        return known(record)

    def stage(self, direction: Direction) -> PartitionDirectory:
        """Return one adjacency as this pipeline sees it; InputError when the graph does not have it."""
        stage = self._stages.get(direction)
        if stage is None:
            adjacency = self._graph.out if direction == "out" else self._graph.into
            if adjacency is None:
                raise InputError(
                    "the graph has no in-adjacency: convert it again with --direction both, or run with push"
                )
            options = self.options
            stage = PartitionDirectory(adjacency, direction, self.device, options.partition_edges, options.moving)
            stage.cache, stage.reader, stage.slabs = self.cache, self._reader, self._slabs
            stage.packs = self._packs
            if self.source is not None:
                stage.source = self.source.stage(direction)
            self._stages[direction] = stage
        return stage

    def _unpin(self) -> None:
        if self._pinned is not None and self.cache is not None:
            self.cache.pins[self._pinned] -= 1
        self._pinned = None
