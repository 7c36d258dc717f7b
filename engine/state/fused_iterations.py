"""Iterations that ran in one launch or call: their limits, what kernels return of them, and their records.

Records are made when they are looked at, for there are thousands of a microsecond.

Owns what such iterations have in common, how their time and their edges are shared out among the records, and the
sequence of a run's records, which may hold such calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from penstock.engine.state.records import IterationRecord, PhaseRecord
from penstock.transfer.values.rates import LINE_BYTES
from penstock.transfer.values.task import TaskRecord

if TYPE_CHECKING:
    from numpy.typing import NDArray

NO_FRONTIERS = np.empty((0, 2), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class FusedLimits:
    """Where fused iterations must end: before an iteration that the loop would not push, or may not run.

    iterations: at most so many. edges: of a frontier, at most. alpha: a frontier that has grown may have at most
    1 / alpha of the `unexplored` edges, 0: no limit. before: vertices of the frontier before the first.
    per_row: a frontier may have at most so many edges for each of the vertices `unvisited` by then, 0: no
    limit; other than 0 on CPU cores only.
    limit, bucket: priorities due, and the width by which that moves (see `Loop`); 0: it does not move, since the
    scan of all pending vertices is faster on the whole device.
    """

    iterations: int
    edges: int
    alpha: int
    unexplored: int
    before: int
    limit: float
    bucket: float
    unvisited: int
    per_row: float


_FIELDS = frozenset(IterationRecord.__slots__)


@dataclass(frozen=True, slots=True)
class FusedCall:
    """Iterations of one call.

    first: the number of the first. frontiers: int64[iterations, 2], vertices and edges of each. tasks: what brought the
    edges, with the bytes of an edge. selecting, began, seconds: when the selection of the first frontier began, when
    the call did, and how long an iteration took on average. phase: as in a record.
    """

    first: int
    frontiers: NDArray[np.int64]
    tasks: list[tuple[TaskRecord, int]]
    selecting: float
    began: float
    seconds: float
    phase: PhaseRecord | None = None

    def records(self) -> list[IterationRecord]:
        """One record for every iteration."""
        return [FusedRecord(self, at) for at in range(len(self.frontiers))]

    def record(self, at: int) -> IterationRecord:
        """The whole record of an iteration."""
        vertices, edges = self.frontiers[at].tolist()
        record = IterationRecord(
            self.first + at, "push", vertices, edges, self.seconds, began=self.began + at * self.seconds,
            phase=self.phase,
        )  # fmt: skip
        if at == 0:
            record.seconds, record.began = self.began + self.seconds - self.selecting, self.selecting
        for task, edge_bytes in self.tasks:
            lines = vertices + edges * edge_bytes // LINE_BYTES
            linked = lines * LINE_BYTES if task.route == "zero-copy" else 0
            record.tasks.append(
                TaskRecord(
                    task.route, task.direction, task.partitions, edges, lines=lines, kernel_seconds=self.seconds,
                    bytes_link=linked, hits=task.hits,
                )
            )  # fmt: skip
        return record


class FusedRecord(IterationRecord):
    """The record of one iteration of a call; its fields are filled in when the first of them is read."""

    __slots__ = ("_at", "_call")

    def __init__(self, call: FusedCall, at: int) -> None:
        self._call, self._at = call, at

    def __getattr__(self, name: str) -> Any:
        if name not in _FIELDS:  # fields that are set do not come here
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        given = {"checkpoint"} if self._has("checkpoint") else set()
        whole = self._call.record(self._at)
        for field in _FIELDS - given:
            setattr(self, field, getattr(whole, field))
        return getattr(self, name)

    def _has(self, name: str) -> bool:
        """Whether a field is set."""
        try:
            object.__getattribute__(self, name)
        except AttributeError:
            return False
        return True


class RunRecords(Sequence[IterationRecord]):
    """The records of a run's iterations; those of calls are made when the first record is looked at."""

    def __init__(self) -> None:
        self._parts: list[IterationRecord | FusedCall] = []  # a call: its iterations but for the last
        self._count, self._calls = 0, 0

    def append(self, record: IterationRecord) -> int:
        """Add one, and return how many there are."""
        self._parts.append(record)
        self._count += 1
        return self._count

    def add_call(self, call: FusedCall) -> None:
        """Add those of a call but for the last."""
        self._parts.append(call)
        self._count += len(call.frontiers) - 1
        self._calls += 1

    def extend(self, others: RunRecords) -> None:
        """Add those of another run."""
        self._parts += others._parts
        self._count += others._count
        self._calls += others._calls

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> IterationRecord: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[IterationRecord]: ...
    def __getitem__(self, at: int | slice) -> IterationRecord | Sequence[IterationRecord]:
        return self._made()[at]

    def __iter__(self) -> Iterator[IterationRecord]:
        return iter(self._made())

    def _made(self) -> list[IterationRecord]:
        """All of them, which are made now if they are not yet."""
        if self._calls:
            parts, self._parts, self._calls = self._parts, [], 0
            for part in parts:
                self._parts += part.records()[:-1] if isinstance(part, FusedCall) else (part,)
        return self._parts  # type: ignore[return-value]  # no call is left
