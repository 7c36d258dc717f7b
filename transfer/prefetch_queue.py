"""Which task of a plan starts next, and which view is delivered next.

Read-ahead is bounded by `ahead` and by the slabs. A partition that has arrived goes first, so that its slab returns to
the disk soon; what is resident fills the time until the next one arrives; behind a link, what the host keeps travels
while the disk is at the rest, of which some is under way from the start. Everything that was started is given back by
`release`.
"""

from __future__ import annotations

import logging
from collections import deque
from contextlib import ExitStack

from penstock.storage.base.errors import RunError
from penstock.transfer.routes.registry import ROUTES
from penstock.transfer.staging.in_flight import Transfer
from penstock.transfer.staging.partition_directory import PartitionDirectory
from penstock.transfer.values.task import Demand, Plan, Task, TaskRecord

_log = logging.getLogger("penstock.transfer.prefetch_queue")
Numbered = tuple[int, Task]


class PrefetchQueue:
    """The tasks of one plan: not started, in flight, and the one whose view is in use."""

    def __init__(self, plan: Plan, demand: Demand, directory: PartitionDirectory) -> None:
        options = directory.staging.options
        self.plan, self.demand = plan, demand
        self._directory = directory
        tasks = list(enumerate(plan.tasks))
        self._here: deque[Numbered] = deque(t for t in tasks if t[1].route == "resident")
        far = [t for t in tasks if t[1].route != "resident"]
        self._near: deque[Numbered] = deque(t for t in far if not t[1].cost.disk)
        self._far: deque[Numbered] = deque(t for t in far if t[1].cost.disk)
        self._reads = {number for number, task in self._far if task.cost.disk}
        self._coming: deque[tuple[int, Transfer]] = deque()
        self._ahead = options.ahead
        self._shown: Transfer | None = None
        self._prepared: Transfer | None = None

    def next_ready(self) -> Transfer | None:
        """Release what was returned last, start what there is room for, and return the next transfer; None: the end."""
        self._release_shown()
        self.read_ahead()
        shown, self._prepared = self._prepared, None
        waits = self.plan.carriers and self._here
        if shown is None and not waits and (arrived := self._arrived()) is not None:
            self._coming.remove(arrived)
            shown = arrived[1]
        self._shown = shown or self._resident()
        if self._directory.unpacks:
            self._prepare()
        return self._shown

    def _resident(self) -> Transfer | None:
        """Start the next resident task; None where there is none."""
        if not self._here:
            return None
        transfer = self._start(self._here.popleft()[1])
        assert transfer is not None, "what is resident needs no place"
        return transfer

    def _prepare(self) -> None:
        """Choose what is shown next, if it is here, and let it be unpacked while kernels are at work on what is shown.

        What takes the last slab is next, whatever arrives meanwhile.
        """
        if self._shown is not None:
            self._shown.begin()  # before it, if that has not happened
        ready = self._poll() if self._coming else None
        if ready is not None:
            self._coming.remove(ready)
        self._prepared = self._resident() if ready is None else ready[1]
        if self._prepared is not None:
            self._prepared.begin()

    def read_ahead(self) -> None:
        """Start as many tasks as may be on their way at once."""
        while len(self._coming) < self._ahead and self._start_next():
            pass
        here = self._here or self._prepared
        if (self._near or self._far) and not (self._coming or here):
            raise RunError("a task needs a slab and there is none: give more --host-memory")

    def _start_next(self) -> bool:
        """Start one task, and return whether there was one, and room: one that reads, until half of `ahead` do."""
        reading = sum(number in self._reads for number, _ in self._coming)
        queues = (self._near, self._far) if reading >= max(1, self._ahead // 2) else (self._far, self._near)
        for queue in queues:
            if not queue:
                continue
            number, task = queue[0]
            transfer = self._start(task) if self._has_room(task) else None
            if transfer is not None:
                queue.popleft()
                self._coming.append((number, transfer))
                return True
        return False

    def _has_room(self, task: Task) -> bool:
        """Whether there is a slab for a task that needs one, or the cache has a place for it."""
        if self._directory.staging.places.free or not ROUTES[task.route].uses_slabs:
            return True
        return self._directory.is_cached(task.partitions[0], task.partitions[-1])

    def _start(self, task: Task) -> Transfer | None:
        return ROUTES[task.route].start(task, self.demand, self._directory)

    def _arrived(self) -> tuple[int, Transfer] | None:
        """Return which started task goes next, None when it is the turn of a resident one."""
        if not self._coming:
            return None
        ready = self._poll()
        if ready is not None or self._here:
            return ready
        return next((started for started in self._coming if started[0] not in self._reads), self._coming[0])

    def _poll(self) -> tuple[int, Transfer] | None:
        """Find the first transfer that is ready, and let the others go as far as they can.

        So their copies run beside kernels.
        """
        ready = None
        for started in self._coming:
            transfer = started[1]
            if ready is None:
                if transfer.is_ready or transfer.ready():
                    ready = started
            elif transfer.advances:
                transfer.ready()
        return ready

    def _release_shown(self) -> None:
        shown, self._shown = self._shown, None
        if shown is not None:
            shown.release()

    def drain(self) -> list[TaskRecord]:
        """Wait for what was started for nothing, and free it; returns what it moved, in records of no partitions."""
        found = []
        try:
            while self._coming:
                transfer = self._coming.popleft()[1]
                try:
                    found.append(transfer.view().record.apart())
                except RunError as error:
                    _log.debug("what was read ahead and is not wanted any more could not be read: %s", error)
                finally:
                    transfer.release()
        finally:
            self.release()
        return found

    def release(self) -> None:
        """Free everything that was started, cancelling what has not arrived."""
        with ExitStack() as stack:
            for _, transfer in self._coming:
                stack.callback(transfer.release)
            if self._prepared is not None:
                stack.callback(self._prepared.release)
            stack.callback(self._release_shown)
        self._coming.clear()
        self._prepared = None
