"""What a run leaves behind about itself: one record an iteration, with the records of its tasks.

Owns the record and its sums. Prints nothing; trace, report and calibration read these.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.transfer.feedback import accuracy
from penstock.transfer.task import TaskRecord


@dataclass(slots=True)
class IterationRecord:
    """One iteration: its frontier, direction, tasks and seconds.

    vertices, edges: of the frontier. totals: the Globals after it.
    """

    number: int
    direction: str
    vertices: int
    edges: int
    seconds: float = 0.0
    totals: dict[str, float] = field(default_factory=dict)
    tasks: list[TaskRecord] = field(default_factory=list)

    @property
    def bytes_disk(self) -> int:
        """Bytes read from disk for it."""
        return sum(task.bytes_disk for task in self.tasks)

    def summary(self) -> dict[str, object]:
        """The record as plain values, for JSON."""
        return {
            "iteration": self.number,
            "direction": self.direction,
            "frontier_vertices": self.vertices,
            "frontier_edges": self.edges,
            "seconds": self.seconds,
            "bytes_disk": self.bytes_disk,
            "tasks": len(self.tasks),
            "disk_seconds": sum(task.disk_seconds for task in self.tasks),
            "decode_seconds": sum(task.decode_seconds for task in self.tasks),
            "gather_seconds": sum(task.gather_seconds for task in self.tasks),
            "link_seconds": sum(task.link_seconds for task in self.tasks),
            "kernel_seconds": sum(task.kernel_seconds for task in self.tasks),
            "wait_seconds": sum(task.wait_seconds for task in self.tasks),
            "chunks_read": sum(task.chunks_read for task in self.tasks),
            "chunks_cached": sum(task.hits for task in self.tasks),
            "prediction_errors": {route: found.median_error for route, found in accuracy(self.tasks).items()},
            **{f"total_{name}": value for name, value in self.totals.items()},
        }
