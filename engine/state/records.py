"""What a run leaves behind about itself: one record an iteration, with the records of its tasks, and each rank's part.

Owns the record and its sums. Prints nothing; trace, report and calibration read these.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.transfer.calibration.prediction_error import accuracy
from penstock.transfer.values.cost import KERNEL, RESOURCES
from penstock.transfer.values.task import TaskRecord

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SUMMED = (
    "disk_seconds", "decode_seconds", "gather_seconds", "link_seconds", "unpack_seconds", "kernel_seconds",
    "wait_seconds", "chunks_read", "bytes_unpacked",
)  # fmt: skip
_MOVED = ("bytes_link", "bytes_unpacked", "bytes_disk")
_CAME = ("tasks", "partitions", "edges", "lines", *_MOVED)
_OF_VALUES = ("windows", "value_bytes", "value_wait_seconds")
COUNTS = ("bytes_disk", "bytes_link", "value_bytes", "tasks")
SECONDS = ("seconds", "exchange_seconds", "value_seconds")
COLUMNS = (*COUNTS, *SECONDS, *RESOURCES)
"""Of every iteration of a rank: what was moved, by how many tasks; seconds, and each resource's."""


@dataclass(frozen=True, slots=True)
class CheckpointRecord:
    """An attempt to write a checkpoint: its file, after how many iterations in all, bytes, seconds.

    trouble: why it could not be written, "" if it was.
    """

    path: Path
    iterations: int
    bytes: int
    seconds: float
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class PhaseRecord:
    """The phase of a program that an iteration belongs to.

    number: from 0, as `Program.phases` yields them. name: what the program calls it, "" without. count: how many there
    will be, None where that is not known.
    """

    number: int
    name: str = ""
    count: int | None = None


@dataclass(slots=True)
class IterationRecord:
    """One iteration: its frontier, direction, tasks and seconds.

    vertices, edges: of the frontier; of its rounds together, where an iteration is a bucket. totals: the Globals after
    it. began: when (time.perf_counter), set where several iterations are known only after the last of them; 0
    elsewhere. walk_seconds: from the first partition asked for to the last kernel over edges, where the execution
    measures it; the rest goes to vertices and frontier. plan_seconds: of that, until it was decided what travels how.
    exchange_seconds: until all ranks had the same messages; what faster ranks wait for slower ones is in it.
    rank_seconds: of every rank, without waiting for others, where they were compared. moved: the bounds that ranks
    have from the next iteration on, where these have changed; move_seconds: what that took this rank.
    filling: tasks that brought edges apart from the iteration's own: every one, to keep row prefixes on the device, or
    what a rank has got of another. index_bytes: of the row index, read from disk because it is not in memory.
    value_bytes: of values of vertices, read from and written to their file, in value_seconds, or over the link of a
    device that has pages of them; value_wait_seconds: what steps waited for them. windows: of the last walk
    (`engine/execution/windows.py`), 0 where memory has all values.
    checkpoint: the one that was made after it, whose seconds do not count among the iteration's.
    phase: of a program of phases, the one at work; its iterations count from 0.
    """

    number: int
    direction: str
    vertices: int
    edges: int
    seconds: float = 0.0
    totals: dict[str, float] = field(default_factory=dict)
    tasks: list[TaskRecord] = field(default_factory=list)
    filling: list[TaskRecord] = field(default_factory=list)
    index_bytes: int = 0
    value_bytes: int = 0
    value_seconds: float = 0.0
    value_wait_seconds: float = 0.0
    windows: int = 0
    began: float = 0.0
    walk_seconds: float = 0.0
    plan_seconds: float = 0.0
    exchange_seconds: float = 0.0
    rank_seconds: tuple[float, ...] = ()
    moved: tuple[int, ...] = ()
    move_seconds: float = 0.0
    checkpoint: CheckpointRecord | None = None
    phase: PhaseRecord | None = None

    @property
    def bytes_disk(self) -> int:
        """Bytes read from disk for it."""
        return self.index_bytes + sum(task.bytes_disk for task in self.moving)

    @property
    def moving(self) -> list[TaskRecord]:
        """All tasks that moved edges."""
        return [*self.filling, *self.tasks] if self.filling else self.tasks

    @property
    def bytes_link(self) -> int:
        """Bytes over the link for it."""
        return sum(task.bytes_link for task in self.moving)

    @property
    def cache_hit_rate(self) -> float | None:
        """Share of the wanted chunks that were in host memory; None where no chunk was asked for."""
        hits, read = sum(task.hits for task in self.moving), sum(task.chunks_read for task in self.moving)
        return hits / (hits + read) if hits + read else None

    def by_route(self) -> dict[str, dict[str, int]]:
        """What came by each route; partitions: those with active edges."""
        routes: dict[str, dict[str, int]] = {}
        for task in self.filling:
            came = routes.setdefault(task.route, dict.fromkeys(_CAME, 0))
            for name in _MOVED:
                came[name] += getattr(task, name)
        for task in self.tasks:
            came = routes.setdefault(task.route, dict.fromkeys(_CAME, 0))
            came["tasks"] += 1
            came["partitions"] += task.wanted
            for name in ("edges", "lines", *_MOVED):
                came[name] += getattr(task, name)
        return routes

    def busy_seconds(self) -> dict[str, float]:
        """How long each resource was at work: seconds over threads, the disk's while anything was read.

        As `feedback.py` measures them; of a task that it did not, those of the kernel are known.
        """
        found = dict.fromkeys(RESOURCES, 0.0)
        for task in self.moving:
            if task.measured is None:
                found[RESOURCES[KERNEL]] += task.kernel_seconds
            else:
                for name, seconds in zip(RESOURCES, task.measured, strict=True):
                    found[name] += seconds
        if self.windows:
            found["values"] = self.value_seconds
        return found

    def summary(self) -> dict[str, object]:
        """The record as plain values, for JSON."""
        return {
            "iteration": self.number,
            **({} if self.phase is None else {"phase": self.phase.number, "phase_name": self.phase.name}),
            "direction": self.direction,
            "frontier_vertices": self.vertices,
            "frontier_edges": self.edges,
            "seconds": self.seconds,
            "walk_seconds": self.walk_seconds,
            "checkpoint_bytes": 0 if self.checkpoint is None else self.checkpoint.bytes,
            "checkpoint_seconds": 0.0 if self.checkpoint is None else self.checkpoint.seconds,
            "plan_seconds": self.plan_seconds,
            **({"exchange_seconds": self.exchange_seconds} if self.exchange_seconds else {}),
            **({"rank_seconds": list(self.rank_seconds)} if self.rank_seconds else {}),
            **({"moved": list(self.moved), "move_seconds": self.move_seconds} if self.moved else {}),
            **({name: getattr(self, name) for name in _OF_VALUES} if self.windows else {}),
            "bytes_disk": self.bytes_disk,
            "bytes_link": self.bytes_link,
            "tasks": len(self.tasks),
            "routes": self.by_route(),
            "busy_seconds": self.busy_seconds(),
            **{name: sum(getattr(task, name) for task in self.moving) for name in _SUMMED},
            "chunks_cached": sum(task.hits for task in self.moving),
            "cache_hit_rate": self.cache_hit_rate,
            "prediction_errors": {route: found.median_error for route, found in accuracy(self.tasks).items()},
            **{f"total_{name}": value for name, value in self.totals.items()},
        }


@dataclass(frozen=True, slots=True)
class RunProgress:
    """What `progress` of `run` is called with after each iteration.

    Attributes
    ----------
    program : str
        Name of the program's class.
    iteration : int
        How many iterations are done, those of all phases.
    max_iter : int or None
        Most iterations that there will be; None if the program does not say.
    vertices, edges : int
        Of the last iteration: vertices that were active, and their edges.
    seconds : float
        Since the run began.
    bytes_read : int
        From disk, by the iterations so far.
    """

    program: str
    iteration: int
    max_iter: int | None
    vertices: int
    edges: int
    seconds: float
    bytes_read: int

    def after(self, record: IterationRecord, seconds: float) -> RunProgress:
        """What is said after one more iteration."""
        read = self.bytes_read + record.bytes_disk
        return RunProgress(
            self.program, self.iteration + 1, self.max_iter, record.vertices, record.edges, seconds, read
        )


@dataclass(frozen=True)
class RankReport:
    """One rank's part in a run.

    Attributes
    ----------
    rank : int
        Its number.
    host, device : str
        Where it ran.
    peak_memory_bytes : int
        Most host memory that its process held until the run was over.
    iterations : ndarray of float64, shape (iterations, len(COLUMNS))
        The columns of COLUMNS for every iteration.
    """

    rank: int
    host: str
    device: str
    peak_memory_bytes: int
    iterations: NDArray[np.float64]

    @property
    def totals(self) -> dict[str, Any]:
        """The sum of each column over all iterations."""
        sums = dict(zip(COLUMNS, self.iterations.sum(axis=0).tolist(), strict=True))
        return {name: int(value) if name in COUNTS else value for name, value in sums.items()}

    @property
    def bytes_disk(self) -> int:
        """Bytes read from disk."""
        return int(self.totals["bytes_disk"])

    def facts(self) -> dict[str, Any]:
        """The sums as plain values, for JSON; busy_seconds: how long each resource was at work."""
        known = self.totals
        busy = {name: known.pop(name) for name in RESOURCES}
        own = {"rank": self.rank, "host": self.host, "device": self.device}
        return {**own, **known, "busy_seconds": busy, "peak_memory_bytes": self.peak_memory_bytes}

    def by_iteration(self) -> dict[str, list[float]]:
        """The columns as plain values, for JSON."""
        return dict(zip(COLUMNS, self.iterations.T.tolist(), strict=True))
