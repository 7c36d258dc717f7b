"""Reads what `--metrics` wrote: the runs of a job, their columns by iteration, and the sums that a verdict is made of.

An unfinished last line of a killed run is passed over; any other bad line is an error that names file and line.

Every value of a line that `penstock report` reads is checked before it is used. A field that is null counts as missing.
Fields without a rule pass.
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
from penstock.tools.base.output import short
from penstock.tools.report.bottleneck import STAGES, Bottleneck, Spent, judge_job
from penstock.tools.run.account import Account
from penstock.tools.run.metrics import FORMAT
from penstock.tools.run.record_files import METRICS
from penstock.transfer.routes.registry import in_order

Rule = Any
"""What a value must be: a function from the name of a field and its value to the value, which raises a ValueError that
names both; a dict: an object with these fields among others, those that end in ! always; a list: an object whose values
follow one rule."""

MOST = 1 << 63
"""Numbers above are no counts, bytes or seconds of a run; sums of such stay finite."""


def checked(facts: Any) -> dict[str, Any]:
    """A line's facts, checked. Raises ValueError for what no run writes."""
    if not isinstance(facts, dict):
        raise ValueError(f"it is {_shown(facts)}, not an object")
    _encodable(facts)
    kind = facts.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"kind is {_shown(kind)}, which is not known")
    newest = facts.get("format")
    if kind == "job" and isinstance(newest, int) and newest > FORMAT:  # its fields may be others
        raise ValueError(f"format {_shown(newest)} is newer than this Penstock's {FORMAT}; update it")
    found: dict[str, Any] = _check("", facts, _KINDS[kind])
    return found


def _encodable(facts: dict[str, Any]) -> None:
    try:
        json.dumps(facts, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("a text in it is not Unicode: it holds half of a surrogate pair") from None


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is {_shown(value)}; it must be a number")
    if not 0 <= value <= MOST:  # nan is neither
        raise ValueError(f"{name} is {_shown(value)}; it must be a number from 0 to 2^63")
    return value


def _count(name: str, value: Any) -> int:
    if _number(name, value) != int(value):
        raise ValueError(f"{name} is {_shown(value)}; it must be a whole number")
    return int(value)


def _rate(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(f"{name} is {_shown(value)}; it must be a number above 0")
    return max(float(value), 1e-9) if value < MOST else math.inf


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} is {_shown(value)}; it must be a text")
    return value


def _any(name: str, value: Any) -> Any:
    return value


def _memory(name: str, value: Any) -> dict[str, Any]:
    """Readings of memory; where edges are told, so is where there is room for them."""
    found: dict[str, Any] = _check(name, value, [_count])
    room = ("edges", "edges_host", "edges_device")
    if any(key in found for key in room):
        _check(name, found, {f"{key}!": _count for key in room})
    return found


def _check(name: str, value: Any, rule: Rule) -> Any:
    """A value by its rule: what is null is left out of objects. Raises ValueError."""
    if callable(rule):
        return rule(name, value)
    if not isinstance(value, dict):
        raise ValueError(f"{name or 'it'} is {_shown(value)}; it must be an object")
    found = {key: item for key, item in value.items() if item is not None}
    rules = dict.fromkeys(found, rule[0]) if isinstance(rule, list) else rule
    for told, of in rules.items():
        key = told.removesuffix("!") if isinstance(rule, dict) else told
        inner = f"{name}.{key}" if name else key
        if key in found:
            found[key] = _check(inner, found[key], of)
        elif key != told:
            raise ValueError(f"{inner} is missing")
    return found


def _ranks(name: str, value: Any) -> list[dict[str, Any]]:
    """What each rank did."""
    if not isinstance(value, list):
        raise ValueError(f"{name} is {_shown(value)}; it must be a list")
    return [_check(f"{name}[{at}]", one, _RANK) for at, one in enumerate(value)]


_RANK: dict[str, Rule] = {
    **dict.fromkeys(("host!", "device!"), _text),
    **dict.fromkeys(("rank!", "tasks!", "bytes_disk!", "bytes_link!", "peak_memory_bytes!"), _count),
    **dict.fromkeys(("seconds!", "exchange_seconds!", "value_seconds"), _number),
    "value_bytes": _count,
}
_RATES = ("disk_bytes", "decode_bytes", "gather_bytes", "copy_bytes", "line_rate", "kernel_edges")
_ACCOUNT: dict[str, Rule] = {
    "wall_seconds": _number,
    "stages": [_number],
    "stages_beside": [_number],
    "stage_bytes": [_count],
    **dict.fromkeys(("kernels_compiled", "kernels_loaded"), _count),
}
"""Where the wall time of the job has gone so far; metrics of format 1 do not tell."""
_KINDS: dict[str, dict[str, Rule]] = {
    "job": {
        "format!": _count,
        "graph!": {"path": _text, "vertices": _count, "edges": _count, "bytes": _count},
        "device!": {"kind!": _text, "name!": _text},
        "rates": dict.fromkeys(_RATES, _rate),
        "budget": {"host": _count, "device": _count},
        "machine": {"processor": _text},
        "parameters": {},
        "options": {},
        "program": _text,
        "started": _text,
        "threads": _count,
        **_ACCOUNT,
    },
    "iteration": {
        "seconds!": _number,
        "frontier_vertices!": _count,
        "frontier_edges!": _count,
        "routes!": [[_number]],
        "busy_seconds!": [_number],
        "memory": _memory,
        **dict.fromkeys(("walk_seconds", "plan_seconds", "exchange_seconds", "value_wait_seconds"), _number),
        **dict.fromkeys(("checkpoint_seconds", "compile_seconds"), _number),
        **dict.fromkeys(("iteration", "chunks_read", "bytes_disk", "bytes_link", "bytes_unpacked"), _count),
        **dict.fromkeys(("checkpoint_bytes", "windows", "value_bytes"), _count),
        "direction": _text,
        "phase": _count,
        "phase_name": _text,
        **_ACCOUNT,
    },
    "result": {"total_seconds": _number, "ranks": _ranks, **_ACCOUNT},
    "failed": {"error!": _any, **_ACCOUNT},
    "end": {**_ACCOUNT, "wall_seconds!": _number, "stages!": [_number]},
}


def _shown(value: Any) -> str:
    """A value in a message: what it is, if it is long or has parts."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    text = repr(value) if not isinstance(value, int) or abs(value) < 1 << 70 else "a number of many digits"
    return text if len(text) <= 60 else f"{text[:57]}..."


Floats = NDArray[np.float64]


@dataclass
class RunMetrics:
    """One program: the job's line, its iterations', and the last one's; result None where the run did not end.

    account: where its wall time went; of a single program, the whole job's. so_far: what the job had spent by the
    program's last line; at_end: by the last line of all. None where the metrics do not tell.
    """

    job: dict[str, Any]
    iterations: list[dict[str, Any]] = field(default_factory=list)
    result: dict[str, Any] | None = None
    error: str | None = None
    account: Account | None = None
    so_far: Account | None = None
    at_end: Account | None = None

    @property
    def title(self) -> str:
        """Program and graph."""
        given = self.job.get("parameters") or {}
        told = ", ".join(f"{name} {short(value, 24)}" for name, value in given.items())
        path = self.job["graph"].get("path")
        where = "a graph in memory" if path is None else Path(path).name
        return printable(f"{self.job.get('program', 'a program')}{f' ({told})' if told else ''} on {where}")

    @property
    def linked(self) -> bool:
        """Whether a device has memory of its own."""
        return bool(self.job["device"]["kind"] != "host")

    @property
    def ranks(self) -> list[dict[str, Any]]:
        """What each rank did, where several ran to their end; iterations, stages and routes are the first one's."""
        ranks: list[dict[str, Any]] = (self.result or {}).get("ranks", [])
        return ranks

    @property
    def on_gpu(self) -> bool:
        """Whether kernels run behind the back of the thread that launches them."""
        return bool(self.job["device"]["kind"] == "cuda")

    @property
    def ended(self) -> str:
        """How the run ended, for people."""
        if self.result is not None:
            return "done" if self.result.get("converged", True) else "stopped at its last iteration allowed"
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
        values = [iteration.get(name) for iteration in self.iterations]
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
        busy = np.array([iteration["busy_seconds"].get(stage, 0.0) for iteration in self.iterations], dtype=np.float64)
        if not self.on_gpu:
            return np.minimum(whole, busy)
        if stage == "kernel":
            here = np.array([set(iteration["routes"]) <= {"resident"} for iteration in self.iterations], dtype=bool)
            busy = np.where(here, whole, busy)
        return busy

    @property
    def windows(self) -> int:
        """Windows of vertices of an iteration, at most; 0 where memory has all values."""
        return int(np.nan_to_num(self.column("windows")).max(initial=0))

    @cached_property
    def routes(self) -> list[str]:
        """Routes that brought anything, in the order of the route table."""
        seen = {route for iteration in self.iterations for route in iteration["routes"]}
        return in_order(seen)

    def by_route(self, name: str) -> Floats:
        """One number of every route and iteration, float64 (routes, iterations)."""
        found = [[it["routes"].get(route, {}).get(name, 0) for it in self.iterations] for route in self.routes]
        return np.array(found, dtype=np.float64).reshape(len(self.routes), len(self.iterations))

    @cached_property
    def memory(self) -> dict[str, int]:
        """The last reading, with the largest ones of process and device."""
        read = [iteration["memory"] for iteration in self.iterations if iteration.get("memory")]
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
            "gather": int(sum(self.by_route("bytes_link")[at].sum() for at in self._at("compaction", "cel"))),
            "link": int(np.nansum(self.column("bytes_link"))),
            "unpack": int(np.nansum(self.column("bytes_unpacked"))),
        }
        busy = {stage: float(np.nansum(self.busy(stage))) for stage in STAGES}
        edges = int(np.nansum(self.column("frontier_edges"))) // max(1, len(self.ranks))  # a rank's share
        return Spent(
            self.seconds, len(self.iterations), edges, busy, self._ideal(moved), moved, memory.get("edges", 0),
            memory.get("edges_host", 0), memory.get("edges_device", 0), decoded / max(1, memory.get("edges", 0)),
            self.job.get("threads", 1), self.linked, self.windows,
        )  # fmt: skip

    @cached_property
    def verdict(self) -> Bottleneck:
        """What limited it."""
        return judge_job(self.spent, self.account)

    def _at(self, *names: str) -> list[int]:
        return [at for at, route in enumerate(self.routes) if route.startswith(names)]

    def _ideal(self, moved: dict[str, int]) -> dict[str, float]:
        """Seconds that each stage would have been at work at this machine's rates; infinite rates take no time."""
        told = self.job.get("rates")
        if not told:
            return {}
        known = {name: value for name, value in told.items() if value is not None}
        rates: dict[str, float] = defaultdict(lambda: math.inf, known)
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
        first = Account.of(run.job)
        if len(runs) == 1:
            run.account = run.at_end or run.so_far
        elif run.so_far is not None and first is not None:
            run.account = run.so_far.since(first)
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
    facts = checked(line)
    kind, account = facts["kind"], Account.of(facts)
    if kind == "job":
        runs.append(RunMetrics(facts, so_far=account))
        return
    if not runs:
        raise ValueError("the first line must be a job's")
    run = runs[-1]
    if kind == "end":
        run.at_end = account
        return
    run.so_far = account or run.so_far
    if kind == "iteration":
        run.iterations.append(facts)
    elif kind == "result":
        run.result = facts
    else:
        run.error = str(facts["error"])
