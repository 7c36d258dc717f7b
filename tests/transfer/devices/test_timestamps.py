"""Spans of a device in this host's clock: converted by its events, taken when it has passed them."""

from __future__ import annotations

from typing import Any

import pytest
from penstock.storage.base.timeline import Timeline
from penstock.transfer.devices.emulated import EmulatedDevice
from penstock.transfer.devices.timestamps import DeviceTimestamps, work_of
from penstock.transfer.values.cost import KERNEL, LINK, UNPACK
from penstock.transfer.values.task import TaskRecord


class Clocked(EmulatedDevice):
    """A device whose events count milliseconds of a clock of its own, as 32-bit floats do not beyond some seconds."""

    passed = 0.0

    def event(self, stream: Any) -> Any:
        return 0.0

    def done(self, event: Any) -> bool:
        return bool(event <= self.passed)

    def wait(self, event: Any) -> None:
        assert event <= self.passed

    def seconds(self, first: Any, last: Any) -> float:
        return float(round(last - first, 3))


def test_spans_lie_where_the_device_says_and_wait_for_it() -> None:
    timeline, device = Timeline(), Clocked()
    stamps = DeviceTimestamps(timeline, device)
    track = timeline.track("kernel", "it")
    timeline.iteration = 3
    for began, ended in ((0.5, 1.5), (1.5, 2.25), (9.0, 9.5)):
        stamps.add(track, "push", (began, ended))
    timeline.iteration = 4
    device.passed = 3.0
    stamps.take()
    spans = list(timeline.spans())
    assert [span.seconds for span in spans] == [1.0, 0.75]
    assert spans[1].began - spans[0].began == pytest.approx(1.0, abs=1e-9)
    assert {span.iteration for span in spans} == {3}
    device.passed = 10.0
    stamps.take()
    late = list(timeline.spans())[2]
    assert late.began - spans[0].began == pytest.approx(8.5, abs=1e-9)
    stamps.take()
    assert len(list(timeline.spans())) == 3


def test_copies_of_a_walk_are_told_with_their_bytes_once() -> None:
    timeline, device = Timeline(), Clocked()
    stamps = DeviceTimestamps(timeline, device)
    record = TaskRecord("compaction", "out", (4, 5), edges=12, bytes_link=100)
    record.spans = ((LINK, 0.0, 1.0), (KERNEL, 0.0, 9.0), (LINK, 1.0, 1.5))
    stamps.note([record])
    device.passed = 9.0
    stamps.take()
    spans = list(timeline.spans())
    assert [(span.group, span.name, span.seconds) for span in spans] == [
        ("link", "compaction", 1.0),
        ("link", "compaction", 0.5),
    ]
    assert sum(span.work.bytes for span in spans) == 100
    assert (spans[0].work.first, spans[0].work.parts, spans[0].work.items) == (4, 2, 12)
    assert work_of(TaskRecord("resident", "out", ())).first == -1


def test_unpacking_has_a_lane_of_its_own() -> None:
    timeline, device = Timeline(), Clocked()
    stamps = DeviceTimestamps(timeline, device)
    record = TaskRecord("filter", "out", (4,), edges=12, bytes_link=100, bytes_unpacked=260)
    record.spans = ((LINK, 0.0, 1.0), (UNPACK, 1.0, 1.25))
    stamps.note([record])
    device.passed = 9.0
    stamps.take()
    spans = [(span.group, span.name, span.seconds, span.work.bytes) for span in timeline.spans()]
    assert spans == [("link", "filter", 1.0, 100), ("unpack", "filter", 0.25, 260)]
