"""Where programs run whose values of vertices come by windows: on cores, on a simulated device, and in ranks.

Each place has a graph of its own size, since its pages have a least size: `PLACES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from penstock.engine import Graph, Program, Session, session
from penstock.engine.checkpoint.checkpoint import Checkpoints
from penstock.engine.kernels.cuda.launch import CudaKernels
from penstock.engine.planning import requirements
from penstock.engine.resources.memory_plan import MemoryPlan, plan_memory
from penstock.engine.state import device_state
from penstock.storage.base import slot_pool
from penstock.storage.base.errors import BudgetError
from penstock.storage.base.slot_pool import ReservedArray
from penstock.storage.checkpoint.page_file import PageFile
from penstock.transfer.devices.emulated import EmulatedDevice
from support.catalogue_oracles import SOURCE
from support.graphs import on_disk, skewed, weighed
from support.oracles import EdgeList
from support.paged_graphs import CHUNK, PAGE, answer, counted_windows, edges, pages_of, room_for
from support.program_cases import Fields
from support.thread_ranks import ThreadRanks, on_ranks

Keeps = Callable[[int], Checkpoints | None]
"""Which checkpoints a rank keeps."""
DEVICE = {"device": "emulated", "kernels": "cuda", "threads": 1}
DEVICE_CHUNK = 512
"""Rows of a page of the host, and of one of the device."""
FEW = 256
"""The same, so that few vertices have many pages."""


def few_edges(vertices: int, *, directed: bool = True) -> EdgeList:
    """Half as many edges as vertices, of which few have many."""
    random = np.random.default_rng(3)
    ends = random.permutation(vertices)[skewed(vertices, vertices // 2, 4)]
    ends[:, :100] = np.stack([np.full(100, SOURCE), random.integers(0, vertices, 100)])
    return weighed(EdgeList(vertices, ends[0], ends[1], None, directed), "uint8")


@contextmanager
def device_pages_of(rows: int) -> Iterator[None]:
    """Pages of the host and the device, and spans of the device's bitmaps, are smaller than the system's pages.

    So what is given back is not its memory, but filled with zeros, as that would be.
    """

    def forget(array: ReservedArray, first: int, last: int) -> None:
        array.memory(first, last)[:] = bytes(len(array.memory(first, last)))

    with (
        mock.patch.object(EmulatedDevice, "grain", rows),
        mock.patch.object(device_state, "SPAN", rows),
        mock.patch.object(slot_pool, "ALIGNMENT", rows),
        mock.patch.object(ReservedArray, "forget", forget),
    ):
        yield


@contextmanager
def short_of_room(pages: int | None, rows: int = DEVICE_CHUNK) -> Iterator[list[int]]:
    """No device has room for all values, but for so many pages of 8 bytes; yields how many windows walks had.

    pages: None for what is planned.
    """
    planned = requirements.in_device_windows

    def refused(graph: Graph, config: Any, needs: Any, device_bytes: int | None) -> MemoryPlan:
        if not needs.value_room:
            raise BudgetError("--device-memory", "the state is large", 1000)
        return plan_memory(graph, config, needs, device_bytes)

    def least(graph: Graph, setting: Any, program: Any, asks: Any, needs: Any) -> Any:
        found = planned(graph, setting, program, asks, needs)
        room = found.device_room if pages is None else 8 * pages * rows
        return replace(found, device_held=found.device_held - found.device_room + room, device_room=room)

    with (
        mock.patch.object(requirements, "plan_memory", refused),
        mock.patch.object(requirements, "in_device_windows", least),
        counted_windows() as counts,
    ):
        yield counts


def no_checkpoints(_rank: int) -> None:
    """Keep none in any rank."""


def by_windows(
    make: Callable[[], Program], graph: Graph, size: int, count: int, *, kept: bool = False,
    checkpoints: Keeps = no_checkpoints, **options: Any,
) -> list[Fields]:  # fmt: skip
    """What each rank answers, which has room for the values of one of so many windows; each opens the graph itself."""

    def work(ranks: ThreadRanks) -> Fields:
        with Session(Graph.open(graph.files[0]), ranks=ranks, threads=1, **options) as session:
            return dict(session.run(make(), checkpoints(ranks.rank)).fields)

    with room_for(count, graph.vertices, kept=kept) as counts:
        found = on_ranks(size, work)
    assert counts
    assert kept or max(counts) <= count
    return found


def on_cores(make: Callable[[], Program], graph: Graph, count: int, *, kept: bool, **options: Any) -> list[Fields]:
    """What one process answers on the cores; kept: whether edges of small frontiers may be kept."""
    with room_for(count, graph.vertices, kept=kept) as counts:
        found = answer(graph, make(), threads=1, **options)
    assert max(counts) == count or (kept and counts)
    assert kept or set(counts) == {count}
    return [found]


def on_device(make: Callable[[], Program], graph: Graph, count: int, *, kept: bool, **options: Any) -> list[Fields]:
    """What a simulated device answers. A pull that reads nothing of its sources has one window."""
    with short_of_room(28, FEW) as counts:
        found = answer(graph, make(), **options, **DEVICE)
    assert set(counts) <= {1, count}
    assert count in counts or options.get("direction") == "pull"
    return [found]


def in_two_ranks(make: Callable[[], Program], graph: Graph, count: int, *, kept: bool, **options: Any) -> list[Fields]:
    """What each of two ranks on cores answers, each with a file that is no longer than was said."""
    files: list[tuple[PageFile, int]] = []

    def noted(folders: list[Path], room: int) -> PageFile:
        files.append((PageFile(folders, room), room))
        return files[-1][0]

    with mock.patch.object(session, "PageFile", noted):
        found = by_windows(make, graph, 2, count, kept=kept, **options)
    assert files
    for file, room in files:
        assert sum(file._ends) <= room
    return found


@contextmanager
def _few_a_page() -> Iterator[None]:
    with pages_of(FEW, FEW), device_pages_of(FEW):
        yield


@contextmanager
def little_host_memory() -> Iterator[None]:
    """Host memory has room for three pages of 4 bytes of a device's values: the others are in a file.

    Each iteration has a launch, since several in one have no checkpoint before the last of them.
    """
    planned = requirements.in_windows

    def little(*given: Any) -> Any:
        return replace(planned(*given), value_room=4 * 3 * FEW)

    alone = mock.patch.object(CudaKernels, "can_fuse", return_value=False)
    with mock.patch.object(requirements, "in_windows", little), alone:
        yield


@dataclass(frozen=True)
class Place:
    """Where a program runs, on a graph of five pages.

    page: vertices of one. chunk_edges: of its file. edges: of the graph. pages: within which it is made, and runs.
    in_file: within which values are in a file, where they may be in host memory else.
    """

    page: int
    chunk_edges: int
    edges: Callable[..., EdgeList]
    pages: Callable[[], AbstractContextManager[None]]
    run: Callable[..., list[Fields]]
    in_file: Callable[[], AbstractContextManager[None]] = nullcontext

    def graph(self, path: Path, count: int, *, directed: bool) -> Graph:
        """A graph file with so many windows."""
        options = {} if count == 1 else {"window_vertices": -(-5 // count) * self.page}
        return on_disk(self.edges(directed=directed), path, chunk_edges=self.chunk_edges, **options)


_of_cores = PAGE, 1 << 13, partial(edges, vertices=9 * CHUNK - 100), partial(pages_of, PAGE)
PLACES = {
    "cores": Place(*_of_cores, on_cores),
    "two ranks": Place(*_of_cores, in_two_ranks),
    "device": Place(FEW, 1 << 10, partial(few_edges, 4 * FEW + 100), _few_a_page, on_device, little_host_memory),
}
