"""What starts next, and what is handed over next: the disk has work from the start, and what needs none goes first."""

from types import SimpleNamespace

import pytest
from penstock.storage.base.errors import RunError
from penstock.transfer import prefetch_queue
from penstock.transfer.prefetch_queue import PrefetchQueue
from penstock.transfer.values.cost import Cost
from penstock.transfer.values.options import TransferOptions
from penstock.transfer.values.task import Plan, Task, TaskRecord

READ = Cost(disk=1.0, decode=1.0, link=1.0)
CARRIED = Cost(link=1.0)


class Fake:
    """A transfer, and the route that starts it: at most `room` are held at once; numbers in `arrived` are ready."""

    def __init__(self, room=3):
        self.room, self.held, self.started = room, [], []
        self.arrived, self.broken = set(), set()

    def start(self, task, demand, directory):
        number = task.partitions[0]
        if task.route != "resident" and len([n for n in self.held if n >= 100]) >= self.room:
            return None
        self.started.append(number)
        self.held.append(number)
        return FakeTransfer(self, number)


class FakeTransfer:
    advances, is_ready = True, False

    def __init__(self, fake, number):
        self.fake, self.number = fake, number

    def ready(self):
        return self.number in self.fake.arrived

    def view(self):
        if self.number in self.fake.broken:
            raise RunError("the disk is gone")
        record = TaskRecord("filter", "out", (self.number,), edges=5, bytes_link=20, predicted=READ)
        return SimpleNamespace(record=record)

    def release(self):
        self.fake.held.remove(self.number)


def tasks(resident=(), near=(), far=()):
    """In the plan's order: resident 0.., carried from host memory 100.., from disk 200.."""
    return (
        [Task("resident", (n,), Cost(kernel=1.0)) for n in resident]
        + [Task("filter", (n,), CARRIED) for n in near]
        + [Task("filter", (n,), READ) for n in far]
    )


@pytest.fixture
def queue_of(monkeypatch):
    def make(found, *, room=3, ahead=3, carriers=False):
        fake = Fake(room)
        monkeypatch.setattr(prefetch_queue, "ROUTES", dict.fromkeys(("resident", "filter"), fake))
        options = TransferOptions(8, slabs=room, ahead=ahead)
        staging = SimpleNamespace(options=options, places=SimpleNamespace(free=1))
        directory = SimpleNamespace(staging=staging, pieces=None, unpacks=False)
        return PrefetchQueue(Plan("out", tuple(found), carriers=carriers), None, directory), fake

    return make


def follow(queue, seen):
    """Ask for transfers until the end, as the pipeline does."""
    while (transfer := queue.next_ready()) is not None:
        seen(transfer.number)


def test_the_disk_has_work_while_what_the_host_keeps_travels(queue_of):
    near, far = range(100, 106), range(200, 203)
    queue, fake = queue_of(tasks(near=near, far=far))
    fake.arrived.update(near)
    order = []

    def seen(number):
        if not order:
            assert 200 in fake.started, "the disk is at work before anything was handed over"
            assert 100 in fake.started
        order.append(number)

    follow(queue, seen)
    assert order == [*near, *far]
    assert not fake.held


def test_what_waits_for_the_disk_is_not_waited_for_while_something_else_is_on_its_way(queue_of):
    queue, _ = queue_of(tasks(near=[100, 101], far=[200, 201]))
    order = []
    follow(queue, order.append)
    assert order == [100, 101, 200, 201]


def test_resident_tasks_fill_the_waits_and_arrivals_go_first(queue_of):
    queue, fake = queue_of(tasks(resident=[0, 1], far=[200, 201]))
    order = []

    def seen(number):
        order.append(number)
        if number == 0:
            fake.arrived.add(201)

    follow(queue, seen)
    assert order == [0, 201, 1, 200]


def test_what_is_resident_goes_before_what_has_arrived_where_rows_follow(queue_of):
    queue, fake = queue_of(tasks(resident=[0, 1], near=[100, 101]), carriers=True)
    fake.arrived.update((100, 101))
    order = []
    follow(queue, order.append)
    assert order == [0, 1, 100, 101]


@pytest.mark.parametrize("room", [1, 2])
@pytest.mark.parametrize("ahead", [1, 2, 4])
def test_everything_comes_once_however_little_room_there_is(queue_of, room, ahead):
    queue, fake = queue_of(tasks([0], range(100, 104), range(200, 204)), room=room, ahead=ahead)
    order = []

    def seen(number):
        order.append(number)
        assert len(fake.held) <= room + 1

    follow(queue, seen)
    assert sorted(order) == [0, *range(100, 104), *range(200, 204)]
    assert not fake.held


def test_what_was_started_for_nothing_is_told_and_freed(queue_of):
    """What cannot be read of it is nobody's loss."""
    queue, fake = queue_of(tasks(near=(100, 101), far=(200,)))
    queue.read_ahead()
    fake.broken = {101}
    found = queue.drain()
    assert [(record.partitions, record.edges, record.bytes_link, record.predicted) for record in found] == [
        ((), 0, 20, None),
        ((), 0, 20, None),
    ]
    assert not fake.held
    assert queue.drain() == []
