"""The profile of a run: kernels, iterations and the host's own steps, added to a timeline as they happen.

Owns what is stamped by the engine: every kernel call by the device's events around it (and on a GPU as an NVTX range
where CuPy has them, so that Nsight shows the same names); every iteration; the frontier and the bytes
moved so far as levels. Without a timeline none of this exists: kernels are called as they are. Refuses to change what
is called or in which order.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from penstock.storage.base.timeline import NO_WORK, Timeline, Work
from penstock.transfer.devices.timestamps import DeviceTimestamps, work_of
from penstock.transfer.values.view import View

if TYPE_CHECKING:
    from penstock.engine.kernels.interface import Kernels
    from penstock.engine.state.records import IterationRecord
    from penstock.transfer.devices.device import Device

UNSEEN = frozenset({"use", "close", "can_fuse", "mark", "marks", "placed", "exchange_kernels"})
"""What kernels do that takes no time worth a span, or is part of another call."""


class KernelProfiler:
    """Watches the runs of one session, on one device."""

    def __init__(self, timeline: Timeline, device: Device) -> None:
        self.timeline, self._device = timeline, device
        self.stamps = DeviceTimestamps(timeline, device)
        self._moved = [0, 0]

    def kernels(self, kernels: Kernels[Any]) -> Kernels[Any]:
        """The same kernels, every call of which is stamped on the device's track."""
        profiled = _ProfiledKernels(kernels, partial(self._stamped, self.timeline.track("kernel", self._device.name)))
        return cast("Kernels[Any]", profiled)

    def begin(self, program: str) -> None:
        """Count iterations of a program from 0; what comes before the first belongs to it."""
        self.timeline.iteration = 0
        self.timeline.add(self.timeline.track("engine", "programs"), program, time.perf_counter(), 0.0)

    def note(self, record: IterationRecord) -> None:
        """Take an iteration that is over, and what the device has passed since the last one."""
        timeline, now = self.timeline, time.perf_counter()
        began = record.began or now - record.seconds
        what = Work(items=record.edges, first=record.number)
        timeline.add(timeline.track("engine", "iterations"), record.direction, began, record.seconds, what)
        for task in record.moving:
            self._moved[0] += task.bytes_disk
            self._moved[1] += task.bytes_link
        timeline.level("frontier vertices", began, record.vertices)
        timeline.level("frontier edges", began, record.edges)
        for name, moved in zip(("bytes from disk", "bytes over the link"), self._moved, strict=True):
            if moved:
                timeline.level(name, began + record.seconds, moved)
        timeline.iteration = record.number + 1
        self.settle()

    def settle(self) -> None:
        """Take what the device has passed."""
        self.stamps.take()

    def _stamped(self, track: int, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        device, stamps = self._device, self.stamps

        def called(*arguments: Any, **named: Any) -> Any:
            label, work = name, NO_WORK
            if arguments and isinstance(arguments[0], View):  # `push filter`, and the partitions that it walks
                record = arguments[0].record
                label, work = f"{name} {record.route}", work_of(record)
            with device.range(label):
                first = device.launched()
                result = function(*arguments, **named)
            stamps.add(track, label, (first, device.launched()), work)
            return result

        return called


class _ProfiledKernels:
    """Kernels whose calls are stamped; all else is theirs."""

    def __init__(self, kernels: Kernels[Any], stamped: Callable[[str, Callable[..., Any]], Callable[..., Any]]) -> None:
        self._kernels, self._stamped = kernels, stamped

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("_kernels", "_stamped"):
            self.__dict__[name] = value
        else:
            setattr(self._kernels, name, value)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._kernels, name)
        if name in UNSEEN or not hasattr(found, "__func__"):
            return found
        return self.__dict__.setdefault(name, self._stamped(name, found))
