"""What finished runs took, kept beside the rates of this machine, for forecasts (`engine/planning/known_runs.py`).

A run adds a line to a file in the user's cache folder: how many sweeps' edges it walked, how long its iterations and
the rest of its job took, and what that depends on. A line that is damaged is passed over; concurrent runs append. Where
nothing can be kept, nothing is learnt. Runs of another machine come with Penstock (`data/reference_runs.csv`).
"""

from __future__ import annotations

import csv
import hashlib
import json
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.engine.planning.known_runs import KnownRuns, PastRun, load_of
from penstock.storage.base.atomic import write_text
from penstock.storage.base.budget import core_seconds
from penstock.storage.base.errors import PenstockError
from penstock.storage.base.hardware_info import fingerprint
from penstock.storage.base.threads import ThreadPool
from penstock.storage.base.user_cache import append_own, make_place, read_own, user_cache
from penstock.tools.base.json_record import of_json, to_json

if TYPE_CHECKING:
    from penstock.engine.program.program import Program
    from penstock.engine.resources.memory_plan import HeldBytes
    from penstock.engine.session import Session
    from penstock.engine.state.records import IterationRecord
    from penstock.tools.run.job import JobStep
    from penstock.transfer.devices.device import Device
    from penstock.transfer.values.rates import Rates

MOST_BYTES = 192 << 10
"""Of the file, some 400 runs; the older half is dropped then."""
APART = ("iterations", "compiling", "calibrating", "writing")
"""Stages of a job that do not count as the rest of it."""
REFERENCE = Path(__file__).parents[1] / "data" / "reference_runs.csv"
REFERENCE_EDGES, REFERENCE_THREADS = 6.1e8, 2
"""The rate `kernel_edges` of the machine of those on cores, and its threads."""
PROBE_SECONDS = 0.05
"""Of work, by which a dry run sees the load: as long as sharing a core goes around several times."""
_log = logging.getLogger("penstock.tools.run.past_runs")


def run_ahead(step: JobStep, program: Program, session: Session, held: HeldBytes | None, load: float = 0.0) -> PastRun:
    """A run that is forecast, whose edges have this room; None: it has its own rows in memory."""
    from penstock.engine.planning.search_depth import skew_of
    from penstock.engine.program.program import UNBOUNDED

    device, graph = session.device, session.graph
    room = 0 if held is None else held.host if device.reads_host else held.device
    limited = program.max_iter < UNBOUNDED and (program.everywhere or "max_iter" in program.extendable)
    return PastRun(
        program=step.stem,
        parameters=fingerprint({name: str(value) for name, value in step.parameters.items()}),
        stays=min(1.0, room / held.edges) if held is not None and held.edges else 1.0,
        vertices=graph.vertices,
        edges=graph.edges,
        most=program.max_iter if limited else 0,
        threads=0 if device.kind == "cuda" else session.config.thread_count,
        load=load,
        skew=skew_of(graph),
        endless=limited and getattr(program, "tol", 0) == 0,
    )


@cache
def reference_runs() -> list[PastRun]:
    """The runs that come with Penstock, of a GPU without threads; none where their file is missing or damaged."""
    try:
        with REFERENCE.open(encoding="utf-8", newline="") as file:
            return [_reference_run(row) for row in csv.DictReader(file)]
    except (OSError, ValueError, TypeError, csv.Error) as error:
        _log.warning("forecasts are without runs of another machine: %s: %s", REFERENCE, error)
    return []


def _reference_run(row: Mapping[str, str]) -> PastRun:
    """The run of a row. Raises ValueError or TypeError."""
    numbers = {name: json.loads(text) for name, text in row.items() if name != "program"}
    return of_json(PastRun, {"program": row.get("program"), "parameters": "", **numbers})


def load_now(threads: int) -> float:
    """Processes that so many threads share the cores with: by how much longer than on a core some work takes them.

    No count of processes tells: a scheduler may give each session the same, whatever runs there.
    """
    with ThreadPool(threads, "load") as pool:
        each = [pool.submit(_worked) for _ in range(threads)]
        passed, had = (sum(one) for one in zip(*(one.result() for one in each), strict=True))
    return load_of(passed / had, threads)


def _worked() -> tuple[float, float]:
    """Seconds that some work takes a thread, and those in which it has a core."""
    began, data = time.perf_counter(), bytes(1 << 20)
    until = time.thread_time() + PROBE_SECONDS
    while time.thread_time() < until:
        hashlib.sha256(data)  # beside other threads
    return time.perf_counter() - began, PROBE_SECONDS + time.thread_time() - until


def place_of_runs(device: Device) -> Path:
    """The file of what runs on this machine and device took. Raises InputError where there is no cache folder."""
    from penstock.engine.calibration.material import machine_fingerprint

    return user_cache() / f"runs-{machine_fingerprint(device)}.jsonl"


def past_runs(device: Device, rates: Rates | None, threads: int) -> KnownRuns:
    """What is known of runs on this machine and device, with these rates; None: they were not measured."""
    own: list[PastRun] = []
    with suppress(PenstockError):
        own = read_runs(place_of_runs(device))
    on_gpu = device.kind == "cuda"
    reference = [one for one in reference_runs() if (one.threads == 0) == on_gpu]
    if on_gpu:  # the host takes most of the time of short runs, whatever the rates of the GPU are
        return KnownRuns(own, reference, 1.0)
    pace = REFERENCE_THREADS / threads if rates is None else REFERENCE_EDGES / rates.kernel_edges
    return KnownRuns(own, reference, pace)


def read_runs(place: Path) -> list[PastRun]:
    """The runs of a file, without lines that are damaged; none where it is missing or of others."""
    found = []
    for line in (read_own(place) or b"").splitlines():
        with suppress(ValueError, RecursionError):  # a run that was killed, or another version
            run = of_json(PastRun, json.loads(line))
            if run.seconds > 0 and run.sweeps > 0 and run.edges > 0 and run.iterations > 0:
                found.append(run)
    return found


def ended(
    ahead: PastRun, records: Sequence[IterationRecord], seconds: float, began: tuple[float, float]
) -> PastRun | None:
    """A run that has ended, whose iterations took so many seconds; None without edges.

    began: what `core_seconds` said before it. Where no iteration tells what it walked, all are one walk.
    """
    walked = sum(record.edges for record in records) or ahead.edges
    if not walked:
        return None
    had, waited = (now - before for now, before in zip(core_seconds(), began, strict=True))
    load = load_of(1 + waited / had, max(1, ahead.threads)) if had else 0.0
    return replace(ahead, load=load, iterations=max(1, len(records)), sweeps=walked / ahead.edges, seconds=seconds)


def keep_run(run: PastRun, device: Device, stages: Mapping[str, float]) -> None:
    """Keep what a run took; stages: the seconds of its job by stage, none of a job of several programs."""
    besides = sum(seconds for stage, seconds in stages.items() if stage not in APART)
    try:
        add_run(place_of_runs(device), replace(run, besides=besides, compiling=stages.get("compiling", 0.0)))
    except (PenstockError, OSError) as error:
        _log.info("what this run took is not kept: %s", error)


def add_run(place: Path, run: PastRun) -> None:
    """Append a run to a file of this user; of one that is long the older half goes. Raises OSError or PenstockError."""
    make_place(place.parent)
    if append_own(place, json.dumps(to_json(run)).encode() + b"\n") > MOST_BYTES:
        lines = [json.dumps(to_json(one)) for one in read_runs(place)]
        write_text(place, "".join(f"{line}\n" for line in lines[len(lines) // 2 :]), force=True)
