"""Reads what `--metrics` wrote: the runs of a job, their columns by iteration, and the sums that a verdict is made of.

An unfinished last line of a killed run is passed over; any other bad line is an error that names file and line.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError, printable
from penstock.storage.ingest.bytes.file import open_text
from penstock.tools.base.json_record import to_json
from penstock.tools.base.output import short
from penstock.tools.report.bottleneck import STAGES, Bottleneck, Spent, judge_job
from penstock.tools.run.account import Account
from penstock.tools.run.metric_lines import IterationLine, JobLine, RankLine, ResultLine, line_of
from penstock.tools.run.record_files import METRICS
from penstock.transfer.routes.registry import in_order

Floats = NDArray[np.float64]


@dataclass
class RunMetrics:
    """One program: the job's line, its iterations', and the last one's; result None where the run did not end.

    account: where its wall time went; of a single program, the whole job's. first, so_far: what the job had spent
    by the program's first and last line; at_end: by the last line of all. None where the metrics do not tell.
    """

    job: JobLine
    iterations: list[IterationLine] = field(default_factory=list)
    result: ResultLine | None = None
    error: str | None = None
    account: Account | None = None
    first: Account | None = None
    so_far: Account | None = None
    at_end: Account | None = None

    @property
    def title(self) -> str:
        """Program and graph."""
        given = self.job.parameters or {}
        told = ", ".join(f"{name} {short(value, 24)}" for name, value in given.items())
        path = self.job.graph.get("path")
        where = "a graph in memory" if path is None else Path(path).name
        return printable(
            f"{'a program' if self.job.program is None else self.job.program}{f' ({told})' if told else ''} on {where}"
        )

    @property
    def linked(self) -> bool:
        """Whether a device has memory of its own."""
        return self.job.device["kind"] != "host"

    @property
    def ranks(self) -> list[RankLine]:
        """What each rank did, where several ran to their end; iterations, stages and routes are the first one's."""
        return [] if self.result is None else self.result.ranks or []

    @property
    def on_gpu(self) -> bool:
        """Whether kernels run behind the back of the thread that launches them."""
        return self.job.device["kind"] == "cuda"

    @property
    def ended(self) -> str:
        """How the run ended, for people."""
        if self.result is not None:
            return "done" if self.result.converged in (None, True) else "stopped at its last iteration allowed"
        return f"failed: {self.error}" if self.error else "not ended: killed, or still running"

    @cached_property
    def seconds(self) -> float:
        """Of the iterations, less what was compiled in them."""
        return float(self.walked.sum())

    @cached_property
    def walked(self) -> Floats:
        """Seconds of every iteration, less those of compiling and loading kernels."""
        return np.maximum(0.0, self.column("seconds") - np.nan_to_num(self.column("compile_seconds")))

    def column(self, name: str) -> Floats:
        """One number of every iteration, float64 (iterations,); nan where it was not told."""
        values = [getattr(iteration, name) for iteration in self.iterations]
        return np.array([math.nan if value is None else value for value in values], dtype=np.float64)

    def busy(self, stage: str) -> Floats:
        """Seconds of every iteration in which a stage was at work; on the CPU at most the iteration's own.

        On a GPU an iteration's own seconds end before its copies and kernels do, whose events tell. Those of `plan` and
        `vertices` are not known there, for the host waits in them for kernels; and an iteration for which nothing
        travelled is its kernels', which nobody timed.
        """
        whole = self.walked
        if stage in ("plan", "vertices") and self.on_gpu:
            return np.zeros(len(whole))
        if stage == "plan":
            return np.minimum(whole, np.nan_to_num(self.column("plan_seconds")))
        if stage == "vertices":
            walk = self.column("walk_seconds")
            waited = np.nan_to_num(self.column("value_wait_seconds"))  # for values, inside the walk or outside
            rest = self.column("seconds") - walk - self.busy("exchange") - waited
            return np.where(walk > 0, np.minimum(whole, np.maximum(0.0, rest)), 0.0)
        if stage == "exchange":
            return np.minimum(whole, np.nan_to_num(self.column("exchange_seconds")))
        busy = np.array([iteration.busy_seconds.get(stage, 0.0) for iteration in self.iterations], dtype=np.float64)
        if not self.on_gpu:
            return np.minimum(whole, busy)
        if stage == "kernel":
            here = np.array([set(iteration.routes) <= {"resident"} for iteration in self.iterations], dtype=bool)
            busy = np.where(here, whole, busy)
        return busy

    @property
    def windows(self) -> int:
        """Windows of vertices of an iteration, at most; 0 where memory has all values."""
        return int(np.nan_to_num(self.column("windows")).max(initial=0))

    @cached_property
    def routes(self) -> list[str]:
        """Routes that brought anything, in the order of the route table."""
        seen = {route for iteration in self.iterations for route in iteration.routes}
        return in_order(seen)

    def by_route(self, name: str) -> Floats:
        """One number of every route and iteration, float64 (routes, iterations)."""
        found = [[it.routes.get(route, {}).get(name, 0) for it in self.iterations] for route in self.routes]
        return np.array(found, dtype=np.float64).reshape(len(self.routes), len(self.iterations))

    @cached_property
    def memory(self) -> dict[str, int]:
        """The last reading, with the largest ones of process and device."""
        read = [to_json(iteration.memory) for iteration in self.iterations if iteration.memory is not None]
        last = dict(read[-1]) if read else {}
        for name in ("process", "device"):
            if name in last:
                last[name] = max(reading.get(name, 0) for reading in read)
        return last

    @cached_property
    def spent(self) -> Spent:
        """What the verdict is made of."""
        memory = self.memory
        decoded = int(np.nansum(self.column("chunks_read"))) * memory.get("chunk", 0)
        moved = {
            "disk": int(np.nansum(self.column("bytes_disk"))),
            "values": int(np.nansum(self.column("value_bytes"))),
            "decode": decoded,
            "gather": int(sum(self.by_route("bytes_link")[at].sum() for at in self._at("compaction"))),
            "link": int(np.nansum(self.column("bytes_link"))),
            "unpack": int(np.nansum(self.column("bytes_unpacked"))),
        }
        busy = {stage: float(np.nansum(self.busy(stage))) for stage in STAGES}
        edges = int(np.nansum(self.column("frontier_edges"))) // max(1, len(self.ranks))  # a rank's share
        return Spent(
            self.seconds, len(self.iterations), edges, busy, self._ideal(moved), moved, memory.get("edges", 0),
            memory.get("edges_host", 0), memory.get("edges_device", 0), decoded / max(1, memory.get("edges", 0)),
            self.job.threads, self.linked, self.windows,
        )  # fmt: skip

    @cached_property
    def verdict(self) -> Bottleneck:
        """What limited it."""
        return judge_job(self.spent, self.account)

    def _at(self, *names: str) -> list[int]:
        return [at for at, route in enumerate(self.routes) if route.startswith(names)]

    def _ideal(self, moved: dict[str, int]) -> dict[str, float]:
        """Seconds that each stage would have been at work at this machine's rates; infinite rates take no time."""
        if not self.job.rates:
            return {}
        rates: dict[str, Any] = defaultdict(lambda: math.inf, self.job.rates)
        copied = moved["link"] - sum(float(self.by_route("bytes_link")[at].sum()) for at in self._at("zero-copy"))
        lines = sum(float(self.by_route("lines")[at].sum()) for at in self._at("zero-copy"))
        read = float(self.by_route("edges").sum()) / max(1, len(self.ranks))
        return {
            "disk": moved["disk"] / rates["disk_bytes"],
            "decode": moved["decode"] / rates["decode_bytes"],
            "gather": moved["gather"] / rates["gather_bytes"],
            "link": copied / rates["copy_bytes"] + lines / rates["line_rate"],
            "kernel": read / rates["kernel_edges"],
        }


def read(path: Path) -> list[RunMetrics]:
    """Read a file of metrics, or that in the folder of a run. Raises InputError naming file, line and the way out."""
    file = path / METRICS if path.is_dir() else path
    runs: list[RunMetrics] = []
    with open_text(file, "`penstock run --metrics FILE` writes one") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                _take(runs, json.loads(line))
            except (ValueError, RecursionError) as error:
                if runs and not line.endswith("\n"):
                    break  # a run was killed, or the disk was full, within this line, the last one
                why = "it is nested too deeply" if isinstance(error, RecursionError) else error
                raise InputError(f"{file}, line {number} is no line of `penstock run --metrics`: {why}") from error
    if not runs:
        raise InputError(f"{file} is empty; `penstock run --metrics FILE` writes one")
    for run in runs:
        if len(runs) == 1:
            run.account = run.at_end or run.so_far
        elif run.so_far is not None and run.first is not None:
            run.account = run.so_far.since(run.first)
    return runs


def shared(runs: list[RunMetrics]) -> Account | None:
    """What the wall time of a job holds beside its programs: the start, and the end. None for a single program."""
    rest = runs[-1].at_end or runs[-1].so_far
    if len(runs) == 1 or rest is None:
        return None
    for run in runs:
        rest = rest if run.account is None else rest.since(run.account)
    return rest


def _take(runs: list[RunMetrics], line: Any) -> None:
    """Add one line to the runs read so far. Raises ValueError for what is none."""
    known, account = line_of(line)
    if isinstance(known, JobLine):
        runs.append(RunMetrics(known, first=account, so_far=account))
        return
    if not runs:
        raise ValueError("the first line must be a job's")
    run = runs[-1]
    if isinstance(known, Account):
        run.at_end = known
        return
    run.so_far = account or run.so_far
    if isinstance(known, IterationLine):
        run.iterations.append(known)
    elif isinstance(known, ResultLine):
        run.result = known
    else:
        run.error = str(known.error)
