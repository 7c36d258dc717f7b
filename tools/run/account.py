"""Where the wall time of a job went, by stage: as its clock tells it, as metrics and `--json` hold it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from penstock.storage.base.stage_clock import STAGES, StageClock, compile_times
from penstock.tools.base.output import seconds

STAGE_NAMES = {
    "imports": "imports, options",
    "opening": "opening graph and device",
    "calibrating": "measuring this machine",
    "compiling": "compiling kernels",
    "kernels": "loading kernels",
    "index": "row index",
    "page_locking": "page-locking memory",
    "loading": "loading edges",
    "state": "first values",
    "iterations": "iterations",
    "summary": "summary",
    "writing": "writing the answer",
    "closing": "giving memory back",
    "other": "other",
}
"""What people read for each of STAGES."""
SAID = 3
"""Stages that are named below an answer."""


@dataclass(frozen=True)
class Account:
    """Wall seconds of a job, or of a part of it, and where they went.

    stages: seconds by stage, in the order of STAGES; they add up to the wall seconds. stages_beside: those in which
    other threads worked at it. stage_bytes: moved. Kernels are each for arguments of certain types.
    """

    wall_seconds: float
    stages: dict[str, float]
    longest_stage: str | None = field(init=False)
    stages_beside: dict[str, float] = field(default_factory=dict)
    stage_bytes: dict[str, int] = field(default_factory=dict)
    kernels_compiled: int = 0
    kernels_loaded: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "longest_stage", max(self.stages, key=self.stages.__getitem__, default=None))

    def share(self, stage: str) -> float:
        """Share of the wall time, 0 to 1."""
        return min(1.0, self.stages.get(stage, 0.0) / self.wall_seconds) if self.wall_seconds > 0 else 0.0

    def since(self, earlier: Account) -> Account:
        """What has passed since `earlier`, of the same job; stages without any are left out."""
        return Account(
            max(0.0, self.wall_seconds - earlier.wall_seconds),
            _less(self.stages, earlier.stages),
            _less(self.stages_beside, earlier.stages_beside),
            _less(self.stage_bytes, earlier.stage_bytes),
            self.kernels_compiled - earlier.kernels_compiled,
            self.kernels_loaded - earlier.kernels_loaded,
        )

    def without(self, stage: str) -> Account:
        """The same less a stage that several programs share."""
        rest = {name: taken for name, taken in self.stages.items() if name != stage}
        return replace(self, wall_seconds=max(0.0, self.wall_seconds - self.stages.get(stage, 0.0)), stages=rest)

    def line(self) -> str:
        """For people: ``whole job 5.24 s: iterations 3.18 s; row index 1.3 s``, the longest stages first."""
        longest = sorted(self.stages, key=self.stages.__getitem__, reverse=True)[:SAID]
        told = [f"{STAGE_NAMES.get(name, name)} {seconds(self.stages[name])}" for name in longest]
        return f"whole job {seconds(self.wall_seconds)}: {'; '.join(told)}"


Number = TypeVar("Number", int, float)


def _less(later: dict[str, Number], earlier: dict[str, Number]) -> dict[str, Number]:
    parts = {name: number - earlier.get(name, 0) for name, number in later.items()}
    return {name: number for name, number in parts.items() if number > 0}


class JobClock(StageClock):
    """The clock of a job, with the kernels that were compiled and loaded since it was made."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._before = compile_times()

    def account(self) -> Account:
        """Where the time has gone so far."""
        now, times = compile_times(), self.times()
        compiled, loaded = now.compiled - self._before.compiled, now.loaded - self._before.loaded
        stages = {name: times.seconds[name] for name in (*STAGES, *times.seconds) if name in times.seconds}
        return Account(times.wall, stages, times.beside, times.bytes, compiled, loaded)
