"""Where the wall time of a job went, by stage: as its clock tells it, as metrics and `--json` hold it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.storage.base.stage_clock import STAGES, StageClock, StageTimes, compile_times
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

    times: the stages. compiled, loaded: kernels, each for arguments of certain types.
    """

    times: StageTimes = field(default_factory=StageTimes)
    compiled: int = 0
    loaded: int = 0

    @property
    def wall(self) -> float:
        """Seconds."""
        return self.times.wall

    @property
    def stages(self) -> dict[str, float]:
        """Seconds by stage, in the order of STAGES; they add up to `wall`."""
        known = self.times.seconds
        return {name: known[name] for name in (*STAGES, *(known.keys() - {*STAGES})) if name in known}

    @property
    def longest(self) -> str | None:
        """The stage that took longest; None where no time has passed."""
        return max(self.stages, key=self.stages.__getitem__, default=None)

    def share(self, stage: str) -> float:
        """Share of the wall time, 0 to 1."""
        return min(1.0, self.stages.get(stage, 0.0) / self.wall) if self.wall > 0 else 0.0

    def since(self, earlier: Account) -> Account:
        """What has passed since `earlier`, of the same job."""
        compiled, loaded = self.compiled - earlier.compiled, self.loaded - earlier.loaded
        return Account(self.times.since(earlier.times), compiled, loaded)

    def without(self, stage: str) -> Account:
        """The same less a stage that several programs share."""
        return replace(self, times=self.times.without(stage))

    def line(self) -> str:
        """For people: ``whole job 5.24 s: iterations 3.18 s; row index 1.3 s``, the longest stages first."""
        longest = sorted(self.stages, key=self.stages.__getitem__, reverse=True)[:SAID]
        told = [f"{STAGE_NAMES.get(name, name)} {seconds(self.stages[name])}" for name in longest]
        return f"whole job {seconds(self.wall)}: {'; '.join(told)}"

    def facts(self) -> dict[str, Any]:
        """For machines."""
        return {
            "wall_seconds": self.wall,
            "stages": self.stages,
            "longest_stage": self.longest,
            "stages_beside": self.times.beside,
            "stage_bytes": self.times.bytes,
            "kernels_compiled": self.compiled,
            "kernels_loaded": self.loaded,
        }

    @staticmethod
    def of(facts: Mapping[str, Any]) -> Account | None:
        """What `facts` said; None where they tell of no stages."""
        if "stages" not in facts or "wall_seconds" not in facts:
            return None
        beside, size = facts.get("stages_beside", {}), facts.get("stage_bytes", {})
        times = StageTimes(facts["wall_seconds"], facts["stages"], beside, size)
        return Account(times, facts.get("kernels_compiled", 0), facts.get("kernels_loaded", 0))


class JobClock:
    """The clock of a job, with the kernels that were compiled and loaded since it was made."""

    def __init__(self, clock: StageClock) -> None:
        self.clock = clock
        self._before = compile_times()

    def account(self) -> Account:
        """Where the time has gone so far."""
        now = compile_times()
        compiled, loaded = now.compiled - self._before.compiled, now.loaded - self._before.loaded
        return Account(self.clock.times(), compiled, loaded)
