"""Device work in this host's clock: spans between two events of the device, kept until it has passed them.

Owns the conversion. The device's events tell the seconds between any two of them; one, waited for when the stamps
begin, ties them to the clock. It is replaced by a later one every second, because a GPU tells times as 32-bit floats of
milliseconds, which are good to a microsecond for no longer than a few seconds. Refuses to wait for anything else: what
the device has not passed is taken later.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from typing import Any

from penstock.storage.base.timeline import NO_WORK, Timeline, Work
from penstock.transfer.devices.device import Device
from penstock.transfer.values.cost import LINK, UNPACK
from penstock.transfer.values.task import TaskRecord

RENEW = 1.0
"""Seconds after which another event ties the device to the clock."""


class DeviceTimestamps:
    """Spans of one device on their way into a timeline. One thread uses it."""

    def __init__(self, timeline: Timeline, device: Device) -> None:
        self.timeline = timeline
        self._device = device
        self._pending: deque[tuple[int, str, tuple[Any, Any], Work, int]] = deque()
        self._tie = device.event(None)
        device.wait(self._tie)
        self._at = time.perf_counter()

    def add(self, track: int, name: str, span: tuple[Any, Any], work: Work = NO_WORK) -> None:
        """Keep a span between two events for `take`."""
        self._pending.append((track, name, span, work, self.timeline.iteration))

    def note(self, records: Iterable[TaskRecord]) -> None:
        """Keep what the tasks of a walk sent over the link, and what the device unpacked for them.

        Called before the seconds of their events are taken.
        """
        for record in records:
            size = record.bytes_link
            for resource, first, last in record.spans:
                if resource == LINK:
                    track = self.timeline.track("link", f"to {self._device.name}")
                    self.add(track, record.route, (first, last), work_of(record, size))
                    size = 0  # the bytes of a task of several copies are counted once
                elif resource == UNPACK:
                    lane = self.timeline.track("unpack", f"on {self._device.name}")
                    self.add(lane, record.route, (first, last), work_of(record, record.bytes_unpacked))

    def take(self) -> None:
        """Put into the timeline what the device has passed, in the order in which it was added."""
        while self._pending and self._device.done(self._pending[0][2][1]):
            track, name, (began, ended), work, iteration = self._pending.popleft()
            seconds = max(0.0, self._device.seconds(began, ended))
            self.timeline.add(track, name, self._moment(began), seconds, work, iteration)

    def _moment(self, event: Any) -> float:
        since = self._device.seconds(self._tie, event)
        moment = self._at + since
        if since > RENEW:
            self._tie, self._at = event, moment
        return moment


def work_of(record: TaskRecord, size: int = 0) -> Work:
    """What a task was for: its active edges, its partitions, and `size` bytes."""
    first = record.partitions[0] if record.partitions else -1
    return Work(size, record.edges, first, len(record.partitions))
