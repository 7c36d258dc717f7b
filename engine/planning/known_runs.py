"""What a run is expected to take, by runs that have ended: of this machine, and of another one.

Pure: numbers in, values out. A run that is like past ones of its program takes what they took. One that is like none is
told by those of another machine: an iteration takes some time, an edge that is walked, and one that comes into memory;
how much longer this machine takes is known from its own runs of all programs, else from its rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log
from typing import TYPE_CHECKING

import numpy as np
from penstock.storage.base.budget import cores

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.planning.forecast import Forecast

OTHERS = 6
"""Runs of another machine that tell of one."""
RECENT = 12
"""Runs that a forecast learns from, and over which its error is told."""
ALIKE = 0.25
"""How much less alike than the most alike run others may be that count besides."""
NEAR = 0.75
"""How unlike runs may be that tell more than those of another machine: on a graph of twice the edges, for instance."""
STREAMED, OTHERWISE = 2.0, 0.5
"""How unlike runs are where no edges stay and where all do, and with other parameters."""


@dataclass(frozen=True)
class PastRun:
    """A run, or one that is forecast: of that nothing is known behind `endless`.

    parameters: a fingerprint of those given. stays: share of the edges that has room where they are walked. most:
    iterations, or rounds of several, at most, 0 without a limit. threads: of the host's that compute. load: processes
    that wanted its cores besides. depth: about how many levels a search of its graph has; skew: how many times as many
    edges as the mean vertex the end of an edge has; 0 where not known.
    endless: whether nothing but `most` ends it. sweeps: edges that it walked over those of the graph. seconds: of all
    iterations, without compiling. besides: of the rest of its job, without what compiles, measures the machine and
    writes the answer; compiling: of that; 0 where not known.
    """

    program: str
    parameters: str
    stays: float
    vertices: int
    edges: int
    most: int
    threads: int
    load: float = 0.0
    depth: float = 0.0
    skew: float = 0.0
    endless: bool = False
    iterations: int = 0
    sweeps: float = 0.0
    seconds: float = 0.0
    besides: float = 0.0
    compiling: float = 0.0

    @property
    def slowdown(self) -> float:
        """How many times as long as alone it takes, if the processes beside it get the same share of the cores."""
        return beside(self.threads, self.load) if self.threads else 1.0

    @property
    def alone(self) -> float:
        """Seconds that its iterations took, or would have taken alone."""
        return self.seconds / self.slowdown

    def walks_as(self, others: Sequence[PastRun]) -> tuple[float, float]:
        """How many iterations it takes, and how many sweeps, if it goes as others did, within its own limit.

        Searches take as many more as their graph is deeper; how far this program's do is seen where others differ.
        Those that nothing but a limit ends do not tell when others converge, if there are any that do.
        """
        others = [one for one in others if one.endless == self.endless] or others
        near = sorted(others, key=self.apart)[:OTHERS]
        if self.most:
            limited = [one for one in near if self.endless and one.iterations >= one.most] or near
            iterations = float(np.median([self._limited_as(one) for one in limited]))
            return iterations, iterations * float(np.median([one.sweeps / one.iterations for one in limited]))
        slope = 0.0
        if self.depth and all(one.depth for one in others):
            deeper, more = np.log([[one.depth, one.iterations] for one in others]).T
            deeper -= deeper.mean()
            slope = float(np.clip(deeper @ more / max(deeper @ deeper, 1e-9), 0.0, 1.0))
        counts = [one.iterations * (self.depth / one.depth) ** slope if slope else one.iterations for one in near]
        return float(np.median(counts)), float(np.median([one.sweeps for one in near]))

    def _limited_as(self, other: PastRun) -> float:
        if not other.most or (other.iterations < other.most and not self.endless):  # it converged
            return min(other.iterations, self.most)
        return self.most * max(1.0, other.iterations / other.most)  # each may be several

    def apart(self, other: PastRun) -> float:
        """How unlike another run of the program is, in its graph and parameters."""
        sizes: list[tuple[float, float]] = [
            (self.edges, other.edges),
            (self.edges * other.vertices, other.edges * self.vertices),
            *((mine, its) for mine, its in ((self.depth, other.depth), (self.skew, other.skew)) if mine and its),
        ]
        apart = sum(abs(log(max(mine, 1) / max(its, 1))) for mine, its in sizes)
        return apart + OTHERWISE * (self.parameters != other.parameters)

    def unlike(self, other: PastRun) -> float:
        """The same, and in where its edges are."""
        return self.apart(other) + STREAMED * abs(self.stays - other.stays)

    def work(self, iterations: float, sweeps: float) -> list[float]:
        """What takes time: the run, edges and vertices that come into memory, iterations, edges that are walked.

        And the last two once more where not all edges stay. Last the vertices of each sweep.
        """
        walked = sweeps * self.edges
        return [
            1.0,
            self.edges + self.vertices,
            iterations,
            walked,
            *((iterations, walked) if self.stays < 1 else (0, 0)),
            sweeps * self.vertices,
        ]


@dataclass(frozen=True)
class Expected:
    """What is expected of a run.

    seconds: of all iterations, without compiling; alone_seconds: with the cores to itself. iterations, sweeps: how many
    it takes, edges that it walks over those of the graph. besides, compiling: seconds of the rest of its job, 0 where
    not known. load, cores: what else wants how many. runs: past ones of this machine whose seconds it has, 0 where
    those of another one count, or the rates (by_rates). errors: of what would have been said of the last runs that are
    like some before them, over what they took; the newest last.
    """

    seconds: float
    alone_seconds: float
    iterations: float
    sweeps: float
    besides: float
    compiling: float
    load: float
    cores: int
    runs: int
    by_rates: bool
    errors: list[float]

    @property
    def error(self) -> float | None:
        """The median of the errors; None without any."""
        return float(np.median(self.errors)) if self.errors else None


class KnownRuns:
    """What is known of runs on a device: those of this machine, oldest first, and those of another one, if any.

    pace: how many times as long as the other machine this one takes, by its rates: for where it has not run anything.
    """

    def __init__(self, own: Sequence[PastRun], reference: Sequence[PastRun], pace: float) -> None:
        self._own, self._reference, self._pace = own, reference, pace

    def asks_depth(self, run: PastRun) -> bool:
        """Whether runs of another machine tell of it: how deep a graph is they alone have."""
        return bool(of_program(run, self._reference)) and not like(run, of_program(run, self._own))

    def expected(self, run: PastRun, found: Forecast) -> Expected | None:
        """Return what is expected of a run, found: as the rates say; None where nothing is known."""
        same, others = of_program(run, self._own), of_program(run, self._reference)
        alike = like(run, same, NEAR if others else inf)
        graph = alike or [one for one in same if run.apart(one) <= ALIKE] or others
        count = 0 if found.phases else (found.most_iterations or 0) if found.everywhere else 1
        iterations, sweeps = run.walks_as(graph) if graph else (count, count)
        if not sweeps:
            return None
        if alike:
            alone = learnt_seconds(run, alike, sweeps)
        elif others:
            least = sweeps * max(found.later.cost.disk, found.later.cost.link)
            alone = max(least, self._pace_of_runs() * seconds_by(run, others, iterations, sweeps))
        else:
            alone = min(sweeps, 1.0) * found.first.seconds + max(0.0, sweeps - 1.0) * found.later.seconds
        besides, compiling = self._besides(run, same)
        numbers = alone * run.slowdown, alone, iterations, sweeps, besides, compiling if found.compiles else 0.0
        return Expected(*numbers, run.load, cores(), len(alike), not (alike or others), errors_of(same))

    def _pace_of_runs(self) -> float:
        """How many times as long as the other machine this one has taken."""
        known = [(one, of_program(one, self._reference)) for one in self._own[-RECENT:]]
        paces = [one.alone / seconds_by(one, others, one.iterations, one.sweeps) for one, others in known if others]
        return float(np.median(paces)) if paces else self._pace

    def _besides(self, run: PastRun, same: Sequence[PastRun]) -> tuple[float, float]:
        """Seconds of the rest of its job, and of that compiling, if its kernels are missing; 0 where not known."""
        compiled, slower = [one.compiling for one in same if one.compiling], beside(1, run.load)
        known = [one for one in self._reference if one.besides]
        if not known:
            rest = [one.besides / beside(1, one.load) for one in same if one.besides][-RECENT:]
            return slower * float(np.median(rest or [0.0])), float(np.median(compiled or [0.0]))
        each = least_of([[1.0, one.vertices] for one in known], [one.besides for one in known], [1.0] * len(known))
        own = [one for one in self._own if one.besides][-RECENT:]
        paces = [one.besides / beside(1, one.load) / (each @ [1.0, one.vertices]) for one in own]
        pace = slower * (float(np.median(paces)) if paces else self._pace)
        known = [one for one in self._reference if one.compiling]
        others = [pace * one.compiling for one in of_program(run, known) or known]
        return pace * float(each @ [1.0, run.vertices]), float(np.median(compiled or others or [0.0]))


def of_program(run: PastRun, runs: Sequence[PastRun]) -> list[PastRun]:
    """Those of its program."""
    return [one for one in runs if one.program == run.program]


def like(run: PastRun, same: Sequence[PastRun], near: float = NEAR) -> list[PastRun]:
    """Those of the runs of its program that are most like it, the newest last; none where none is as near as that."""
    far = [run.unlike(one) for one in same]
    most = min(near, min(far, default=near) + ALIKE)
    return [one for one, apart in zip(same, far, strict=True) if apart <= most][-RECENT:]


def learnt_seconds(run: PastRun, alike: Sequence[PastRun], sweeps: float) -> float:
    """What so many sweeps take alone after runs that are like it."""
    return sweeps * run.edges * float(np.median([one.alone / (one.sweeps * one.edges) for one in alike]))


def seconds_by(run: PastRun, others: Sequence[PastRun], iterations: float, sweeps: float) -> float:
    """What it takes alone after the runs of its program, those the most that are most like it."""
    parts = [one.work(one.iterations, one.sweeps) for one in others]
    near = [1 / (1 + run.unlike(one)) for one in others]
    return float(least_of(parts, [one.alone for one in others], near) @ run.work(iterations, sweeps))


def least_of(parts: Sequence[Sequence[float]], seconds: Sequence[float], near: Sequence[float]) -> NDArray[np.float64]:
    """What each part takes, not below 0, such that their sums are nearest to the seconds: least squares of ratios.

    near: how much each counts.
    """
    wanted = np.array(near)
    rows = np.array(parts, np.float64) * (wanted / np.array(seconds))[:, None]
    scale = np.maximum(rows.max(axis=0), 1e-30)
    each, used = np.zeros(len(scale)), np.arange(len(scale))
    while len(used):
        found = np.linalg.lstsq(rows[:, used] / scale[used], wanted, rcond=None)[0]
        if found.min() >= 0:
            each[used] = found / scale[used]
            break
        used = np.delete(used, found.argmin())
    return each


def beside(threads: int, load: float) -> float:
    """How many times as long as alone so many threads take beside so many processes that want the cores, too."""
    count = cores()
    return max(1.0, (threads + load) / count) / max(1.0, threads / count)


def load_of(slowdown: float, threads: int) -> float:
    """How many processes beside so many threads make them take so many times as long as alone."""
    return max(0.0, slowdown * max(cores(), threads) - threads)


def errors_of(same: Sequence[PastRun]) -> list[float]:
    """Of the last runs, by how much those before them that are like them would have been wrong."""
    found = []
    for at in range(max(1, len(same) - RECENT), len(same)):
        run, alike = same[at], like(same[at], same[:at])
        if alike:
            told = learnt_seconds(run, alike, run.walks_as(alike)[1])
            found.append(abs(told - run.alone) / run.alone)
    return found
