"""What finished runs took, kept beside the rates of this machine, and what forecasts learn from it.

A run adds a line to a file in the user's cache folder: how many sweeps' edges it walked, how long its iterations took,
and what that depends on. The next forecast takes both from the runs that are most like it; what it would have said of
those is its error. A line that is damaged is passed over; concurrent runs append. Where nothing can be kept, nothing is
learnt.
"""

from __future__ import annotations

import json
import logging
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import log
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from penstock.storage.base.atomic import write_text
from penstock.storage.base.budget import cores
from penstock.storage.base.errors import InputError, PenstockError
from penstock.storage.base.hardware_info import fingerprint
from penstock.storage.base.user_cache import make_place, read_own, user_cache
from penstock.tools.base.json_record import of_json, to_json

if TYPE_CHECKING:
    from penstock.engine.program.program import Program
    from penstock.engine.resources.memory_plan import HeldBytes
    from penstock.engine.session import Session
    from penstock.engine.state.records import IterationRecord
    from penstock.tools.run.job import JobStep
    from penstock.transfer.devices.device import Device

MOST_BYTES = 128 << 10
"""Of the file, some 400 runs; the older half is dropped then."""
RECENT = 12
"""Runs that a forecast learns from, and over which its error is told."""
ALIKE = 0.25
"""How much less alike than the most alike run others may be that count besides."""
NEAR = 1.5
"""How unlike runs may be whose seconds tell more than the rates do: on a graph of 4.5 times the edges, for instance."""
ELSEWHERE, STREAMED, OTHERWISE = 3.0, 2.0, 0.5
"""How unlike runs are on another device, where no edges stay and where all do, and with other parameters."""
_log = logging.getLogger("penstock.tools.run.past_runs")


@dataclass(frozen=True)
class PastRun:
    """A run, or one that is forecast: of that nothing is known behind `load`.

    parameters: a fingerprint of those given. place: the device. stays: share of the edges that
    has room where they are walked. most: iterations at most, where each walks all edges, else 0.
    threads: of the host's that compute. load: processes that wanted its cores besides. sweeps: edges that it walked
    over those of the graph. seconds: of all iterations, without compiling.
    """

    program: str
    parameters: str
    place: str
    stays: float
    vertices: int
    edges: int
    most: int
    threads: int
    load: float
    iterations: int = 0
    sweeps: float = 0.0
    seconds: float = 0.0

    @classmethod
    def ahead(cls, step: JobStep, program: Program, session: Session, held: HeldBytes, load: float) -> PastRun:
        """A run that is forecast, whose edges have this room."""
        from penstock.engine.program.program import UNBOUNDED, has_phases

        device, graph = session.device, session.graph
        room = held.host if device.reads_host else held.device
        limited = program.everywhere and not has_phases(program) and program.max_iter < UNBOUNDED
        return cls(
            program=step.stem,
            parameters=fingerprint({name: str(value) for name, value in step.parameters.items()}),
            place=device.name,
            stays=min(1.0, room / held.edges) if held.edges else 1.0,
            vertices=graph.vertices,
            edges=graph.edges,
            most=program.max_iter if limited else 0,
            threads=0 if device.kind == "cuda" else session.config.thread_count,
            load=load,
        )

    @property
    def slowdown(self) -> float:
        """How many times as long as alone it takes, if the processes beside it get the same share of the cores."""
        if not self.threads:
            return 1.0
        count = cores()
        return max(1.0, (self.threads + self.load) / count) / max(1.0, self.threads / count)

    @property
    def alone_edge(self) -> float:
        """Seconds that an edge took, or would have taken alone."""
        return self.seconds / (self.slowdown * self.sweeps * self.edges)

    def sweeps_as(self, other: PastRun) -> float:
        """How much it will walk if it goes as another did, within its own limit of iterations."""
        if not (self.most and other.most):
            return other.sweeps
        each = other.sweeps / max(1, other.iterations)
        beyond = other.iterations - other.most  # some have an iteration before those that are limited
        return each * (self.most + beyond if beyond >= 0 else min(other.iterations, self.most))

    def unlike(self, other: PastRun) -> float:
        """How unlike another run of the program is: its graph, where and with what it ran."""
        sizes = [(self.edges, other.edges), (self.edges * other.vertices, other.edges * self.vertices)]
        apart = sum(abs(log(max(mine, 1) / max(its, 1))) for mine, its in sizes)
        apart += ELSEWHERE * (self.place != other.place) + STREAMED * abs(self.stays - other.stays)
        return apart + OTHERWISE * (self.parameters != other.parameters)


@dataclass(frozen=True)
class Expected:
    """What is expected of a run.

    seconds: of all iterations, without compiling; alone_seconds: with the cores to itself. sweeps: edges that it walks
    over those of the graph. load, cores: what else wants how many. runs: past ones whose seconds it has, 0 where those
    of the rates count. errors: of what would have been said of the last runs that are like some before them, over what
    they took; the newest last.
    """

    seconds: float
    alone_seconds: float
    sweeps: float
    load: float
    cores: int
    runs: int
    errors: list[float]

    @property
    def error(self) -> float | None:
        """The median of the errors; None without any."""
        return float(np.median(self.errors)) if self.errors else None


def expected(run: PastRun, past: Sequence[PastRun], first: float, later: float, walks: float) -> Expected | None:
    """Return what is expected of a run after those of the past; None where nothing is known.

    first, later: seconds of its sweeps alone, as the rates say, for where no run is like it. walks: how many sweeps
    there are where none was of its program; 0: that is not known.
    """
    same = [one for one in past if one.program == run.program]
    alike = most_alike(run, same)
    sweeps = float(np.median([run.sweeps_as(one) for one in alike])) if alike else walks
    if not sweeps:
        return None
    near = [one for one in alike if run.unlike(one) <= NEAR]
    alone = learnt_seconds(run, near, sweeps) if near else min(sweeps, 1.0) * first + max(0.0, sweeps - 1.0) * later
    return Expected(alone * run.slowdown, alone, sweeps, run.load, cores(), len(near), past_errors(same))


def most_alike(run: PastRun, same: Sequence[PastRun]) -> list[PastRun]:
    """The runs of its program that are most like it, the newest last."""
    far = [run.unlike(one) for one in same]
    return [one for one, apart in zip(same, far, strict=True) if apart <= min(far) + ALIKE][-RECENT:]


def learnt_seconds(run: PastRun, alike: Sequence[PastRun], sweeps: float) -> float:
    """What so many sweeps take alone after these runs."""
    return sweeps * run.edges * float(np.median([one.alone_edge for one in alike]))


def past_errors(same: Sequence[PastRun]) -> list[float]:
    """Of the last runs, by how much those before them that are like them would have been wrong."""
    found = []
    for at in range(max(1, len(same) - RECENT), len(same)):
        run = same[at]
        near = [one for one in most_alike(run, same[:at]) if run.unlike(one) <= NEAR]
        if near:
            sweeps = float(np.median([run.sweeps_as(one) for one in near]))
            told = learnt_seconds(run, near, sweeps) * run.slowdown
            found.append(abs(told - run.seconds) / run.seconds)
    return found


def load_now() -> float:
    """Processes besides this one that want a core: of the last minute, or twice those of now, if that is less.

    What the last minute had may be over, as a run of this user's; how many there are now differs from moment to moment.
    """
    recent = os.getloadavg()[0]
    try:
        running = Path("/proc/loadavg").read_text(encoding="ascii").split()[3].partition("/")[0]
    except (OSError, IndexError):
        return recent
    return min(recent, 2.0 * max(0.0, float(running) - 1.0))


def place_of_runs(device: Device) -> Path:
    """The file of what runs on this machine and device took. Raises InputError where there is no cache folder."""
    from penstock.engine.calibration.material import machine_facts

    return user_cache() / f"runs-{fingerprint(machine_facts(device))}.jsonl"


def past_runs(device: Device) -> list[PastRun]:
    """What is known of runs on this machine and device, the newest last."""
    with suppress(PenstockError):
        return read_runs(place_of_runs(device))
    return []


def read_runs(place: Path) -> list[PastRun]:
    """The runs of a file, without lines that are damaged; none where it is missing or of others."""
    found = []
    for line in (read_own(place) or b"").splitlines():
        with suppress(ValueError, RecursionError):  # a run that was killed, or another version
            run = of_json(PastRun, json.loads(line))
            if run.seconds > 0 and run.sweeps > 0 and run.edges > 0:
                found.append(run)
    return found


def keep_run(ahead: PastRun, device: Device, records: Sequence[IterationRecord], seconds: float) -> None:
    """Keep what a run took, whose iterations took so many seconds."""
    walked = sum(record.edges for record in records)
    if not walked:
        return
    load = (ahead.load + load_now()) / 2
    run = replace(ahead, load=load, iterations=len(records), sweeps=walked / ahead.edges, seconds=seconds)
    try:
        add_run(place_of_runs(device), run)
    except (PenstockError, OSError) as error:
        _log.info("what this run took is not kept: %s", error)


def add_run(place: Path, run: PastRun) -> None:
    """Append a run to a file of this user; of one that is long the older half goes. Raises OSError or PenstockError."""
    make_place(place.parent)
    line = json.dumps(to_json(run)) + "\n"
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK  # no pipe's reader is waited for
    handle = os.open(place, flags, 0o600)
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode) or facts.st_uid != os.geteuid():
            raise InputError(f"{place} is no file of this user; remove it")
        os.write(handle, line.encode())
        size = os.fstat(handle).st_size
    finally:
        os.close(handle)
    if size > MOST_BYTES:
        lines = [json.dumps(to_json(one)) for one in read_runs(place)]
        write_text(place, "".join(f"{line}\n" for line in lines[len(lines) // 2 :]), force=True)
