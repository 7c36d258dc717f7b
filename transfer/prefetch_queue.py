"""One walk through a plan: which task starts next, and which view is handed over next.

Owns what is waiting, what is coming and what the consumer has. Read-ahead is bounded by `ahead` and by the slabs.
In free order a partition that has arrived goes first, so that its slab returns to the disk soon; what is
resident fills the time until the next one arrives; behind a link, what the host keeps travels while the disk is at the
rest, of which some is under way from the start. In fixed order views come as planned. Refuses to let go of anything
halfway: `release` gives back all that was started. What `join` adds during the walk goes before all else.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from penstock.storage.base.errors import RunError
from penstock.transfer.routes import cel
from penstock.transfer.routes.registry import route
from penstock.transfer.staging.in_flight import Transfer
from penstock.transfer.staging.partition_directory import PartitionDirectory
from penstock.transfer.values.options import TransferOptions
from penstock.transfer.values.task import Demand, Plan, Task, TaskRecord

_log = logging.getLogger("penstock.transfer.prefetch_queue")
Numbered = tuple[int, Task]
Started = tuple[int, Transfer]


class PrefetchQueue:
    """The state of one iteration's arrivals."""

    def __init__(self, plan: Plan, demand: Demand, stage: PartitionDirectory, options: TransferOptions) -> None:
        self._demand = demand
        self._stage = stage
        self._options = options
        tasks = list(enumerate(plan.tasks))
        self._here: deque[Numbered] = deque(t for t in tasks if t[1].route == "resident")
        far = [t for t in tasks if t[1].route != "resident"]
        apart = not options.ordered and options.route != cel.name
        self._near: deque[Numbered] = deque(t for t in far if apart and not t[1].cost.disk)
        self._far: deque[Numbered] = deque(t for t in far if not apart or t[1].cost.disk)
        self._reads = {number for number, task in self._far if task.cost.disk}
        self._coming: deque[Started] = deque()
        self._joining: deque[Task] = deque()
        self._joined: deque[Transfer] = deque()
        self._ahead = min(options.ahead, cel.AHEAD) if options.route == cel.name else options.ahead
        self._handed: Transfer | None = None

    def join(self, tasks: Iterable[Task]) -> None:
        """Bring these too, as soon as there is room."""
        self._joining.extend(tasks)

    def read_ahead(self) -> None:
        """Start as many tasks as may be on their way at once."""
        while self._joining:
            joined = route(self._joining[0].route).start(self._joining[0], self._demand, self._stage)
            if joined is None:
                break
            self._joining.popleft()
            self._joined.append(joined)
        while len(self._coming) < self._ahead and self._start_next():
            pass
        if (self._near or self._far or self._joining) and not (self._coming or self._here or self._joined):
            raise RunError("a task needs a slab and there is none: give more --host-memory")

    def _start_next(self) -> bool:
        """Start one task, and return whether there was one, and room: one that reads, until half of `ahead` do."""
        reading = sum(number in self._reads for number, _ in self._coming)
        queues = (self._near, self._far) if reading >= max(1, self._ahead // 2) else (self._far, self._near)
        for queue in queues:
            if not queue:
                continue
            number, task = queue[0]
            parcel = route(task.route).start(task, self._demand, self._stage)
            if parcel is not None:
                queue.popleft()
                self._coming.append((number, parcel))
                return True
        return False

    def hand_over(self) -> Transfer | None:
        """Return the parcel whose turn it is, None at the end. `take_back` must be called before the next."""
        if self._joined:
            self._handed = self._joined.popleft()
            return self._handed
        arrived = self._arrived()
        if arrived is not None:
            self._coming.remove(arrived)
            self._handed = arrived[1]
        elif self._here:
            _, task = self._here.popleft()
            self._handed = route(task.route).start(task, self._demand, self._stage)
        self._advance()
        return self._handed

    def _advance(self) -> None:
        """Let what is coming go as far as it can before the consumer is at work, so that copies run beside kernels.

        The rows that `cel` adds travel right behind the next carrier, so carriers do not go ahead of them.
        """
        if self._options.route != cel.name:
            for _, parcel in self._coming:
                parcel.ready()

    def _arrived(self) -> Started | None:
        """Return which started task goes next, None when it is the turn of a resident one."""
        if not self._coming:
            return None
        if self._options.ordered:
            return None if self._here and self._here[0][0] < self._coming[0][0] else self._coming[0]
        ready = next((started for started in self._coming if started[1].ready()), None)
        if ready is not None or self._here:
            return ready
        return next((started for started in self._coming if started[0] not in self._reads), self._coming[0])

    def take_back(self) -> None:
        """Free what the parcel held that was handed over last."""
        parcel, self._handed = self._handed, None
        if parcel is not None:
            parcel.release()

    def abandon(self) -> list[TaskRecord]:
        """Wait for what was started for nothing, and free it; returns what it moved, in records of no partitions."""
        found = []
        try:
            for _, parcel in self._coming:
                try:
                    record = parcel.view().record
                except RunError as error:
                    _log.debug("what was read ahead and is not wanted any more could not be read: %s", error)
                else:
                    none: dict[str, Any] = {"partitions": (), "wanted": 0, "edges": 0, "lines": 0, "predicted": None}
                    found.append(replace(record, **none, spans=()))
        finally:
            self.release()
        return found

    def release(self) -> None:
        """Free everything that was started, cancelling what has not arrived."""
        with ExitStack() as stack:
            for parcel in (*self._joined, *(parcel for _, parcel in self._coming)):
                stack.callback(parcel.release)
            stack.callback(self.take_back)
        self._coming.clear()
        self._joined.clear()
