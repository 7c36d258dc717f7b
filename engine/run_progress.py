"""How far a run is, as a function of the caller's is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.engine.state.records import IterationRecord


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
