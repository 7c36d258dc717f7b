"""Ranks that are threads of this process: the Communicator of tests that start no processes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from penstock.engine import Graph, Program, Result
from penstock.engine.ranks.communicator import Communicator
from penstock.engine.session import Session
from support.graphs import in_memory
from support.oracles import EdgeList
from support.program_cases import tangle

PATIENCE_SECONDS = 10
Found = TypeVar("Found")


class AbortedError(Exception):
    """A rank called `abort`."""


class _World:
    def __init__(self, size: int) -> None:
        self.size = size
        self.barrier = threading.Barrier(size, timeout=PATIENCE_SECONDS)
        self.shown: list[Any] = [None] * size


class ThreadRanks(Communicator):
    """One rank of a `_World`: what all show is read between two barriers."""

    def __init__(self, world: _World, rank: int) -> None:
        self._world, self.rank, self.size = world, rank, world.size

    def _all(self, ours: Any, use: Callable[[list[Any]], Found]) -> Found:
        self._world.shown[self.rank] = ours
        self._world.barrier.wait()
        found = use(self._world.shown)
        self._world.barrier.wait()
        return found

    def gather_numbers(self, numbers: NDArray[Any]) -> NDArray[Any]:
        return self._all(numbers, lambda all_numbers: np.stack(all_numbers).copy())

    def gather_slices(self, whole: NDArray[Any], bounds: NDArray[np.int64]) -> None:
        slices = [slice(int(first), int(last)) for first, last in pairwise(bounds)]
        copies = self._all(whole[slices[self.rank]].copy(), list)
        for here, part in zip(slices, copies, strict=True):
            whole[here] = part

    def exchange_slices(self, whole: NDArray[Any], bounds: NDArray[np.int64], found: NDArray[Any]) -> None:
        here = slice(int(bounds[self.rank]), int(bounds[self.rank + 1]))
        found[...] = self._all(whole, lambda wholes: np.stack([one[here] for one in wholes]))

    def wait(self) -> None:
        self._world.barrier.wait()

    def abort(self, code: int) -> None:
        self._world.barrier.abort()
        raise AbortedError(code)


def on_ranks(size: int, work: Callable[[ThreadRanks], Found]) -> list[Found]:
    """What `work` returns in each of so many ranks; the first error of a rank is raised, and ends the others."""
    world, found, errors = _World(size), [None] * size, []

    def one(rank: int) -> None:
        try:
            found[rank] = work(ThreadRanks(world, rank))  # type: ignore[call-overload]
        except threading.BrokenBarrierError as error:
            errors.append(error)
        except BaseException as error:
            errors.insert(0, error)
            world.barrier.abort()

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return found  # type: ignore[return-value]


def small(directed: bool) -> EdgeList:
    """A graph whose edges every rank walks in plain Python."""
    return tangle(directed=directed, core=24, tail=6, count=70)


@cache
def small_graph(directed: bool) -> Graph:
    """The same in memory."""
    return in_memory(small(directed))


def run_on(program: Callable[[], Program], graph: Graph, size: int, **options: object) -> list[Result]:
    """The result of a program in each of so many ranks, by the reference where `options` say nothing else."""

    def work(ranks: ThreadRanks) -> Result:
        with Session(graph, ranks=ranks, **{"kernels": "reference", "threads": 1} | options) as session:
            return session.run(program())

    return on_ranks(size, work)
