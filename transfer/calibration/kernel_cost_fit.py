"""The seconds of kernels, fitted while they run: a launch, a cost per row, and a rate for edges.

Owns one law of these three, drawn through what tasks of late took. It has the smallest sum of errors relative to what
happened, so that small launches and large ones count alike and what went wild (a machine that was busy elsewhere)
hardly at all; the law that was given counts as a part of an observation at each of its ends. Numbers in, numbers out.
Refuses laws by which more work takes less time. That a launch, rows and edges have separate costs is Lux's experience
(Jia et al., VLDB 2017), whose model of a device has one constant for each.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

KEPT = 64
"""Tasks of late through which a law goes."""
SOON = 16
"""Tasks up to which every new one changes the law; later ones do so by as many together."""
PRIOR = 0.25
"""Weight of the given law at each of its ends, in tasks."""
WORTH = 0.01
"""Seconds of tasks that are new before the law is drawn anew: doing it takes a fiftieth of that."""
SETTLED = 0.03
"""Median relative error of the law for what is new up to which it stays: drawing it takes 0.4 ms of a short sweep."""
ROUNDS = 8
"""Of reweighting, until the law hardly moves."""
FAR = 64.0
"""Edges take at least 1 / FAR of their predicted seconds, and at most FAR times as long."""
SLOWEST_ROW = 1e-6
"""Seconds of a row: if there seem to be more, few rows have been seen, and they are not what takes so long."""
NEAR = 0.02
"""Relative errors below this count as this one: the law need not go through a point."""


@dataclass(frozen=True, slots=True)
class CostLaw:
    """seconds = launch + row * rows + slope * base, where base is what the given rates say of the edges."""

    launch: float
    row: float = 0.0
    slope: float = 1.0


class CostFit:
    """Tasks of late, and the law through them; `given` while there are none."""

    def __init__(self, given: CostLaw) -> None:
        self.given = given
        self.law = given
        self._seen: deque[tuple[float, float, float]] = deque(maxlen=KEPT)
        self._fresh = 0
        self._fresh_seconds = 0.0

    def learn(self, tasks: Sequence[tuple[float, float, float]]) -> None:
        """Note tasks, and draw the law anew if there is enough that is new.

        tasks: active rows, what the given rates say of the edges, and the seconds measured, above zero, of each.
        """
        self._seen.extend(tasks)
        self._fresh += len(tasks)
        self._fresh_seconds += sum(seconds for _, _, seconds in tasks)
        if self._fresh_seconds >= WORTH and (len(self._seen) <= SOON or self._fresh >= SOON):
            seen, fresh = np.array(self._seen), min(self._fresh, len(self._seen))
            self._fresh, self._fresh_seconds = 0, 0.0
            rows, work, took = seen[-fresh:].T
            errors = (self.law.launch + self.law.row * rows + self.law.slope * work) / took - 1.0
            if self.law is self.given or not np.median(np.abs(errors)) <= SETTLED:
                self.law = fit_cost_law(seen[:, 0], seen[:, 1], seen[:, 2], self.given)


def fit_cost_law(rows: Floats, base: Floats, seconds: Floats, given: CostLaw) -> CostLaw:
    """Return the law with the smallest sum of errors, each relative to what happened.

    rows, base, seconds: shape (n,), n and seconds above zero. Weighted least absolute deviations, by least squares that
    are weighted anew.
    """
    widest, far = float(rows.max()), float(base.max())
    ends = np.array([[1.0, 0.0, 0.0], [1.0, widest, 0.0], [1.0, 0.0, far]])
    terms = np.r_[np.column_stack([np.ones(len(rows)), rows, base]), ends]
    happened = np.r_[seconds, _values(ends, np.array([given.launch, given.row, given.slope]))]
    each = np.r_[1.0 / seconds, PRIOR / seconds.min(), PRIOR / seconds.max(), PRIOR / seconds.max()]
    weights = each * each
    for _ in range(1 + ROUNDS):
        found = _no_less_than_nothing(terms, happened, weights)
        likely = np.array([True, found[1] <= SLOWEST_ROW, found[2] <= FAR * given.slope])
        if not likely.all():
            found = _no_less_than_nothing(terms * likely, happened, weights)
        weights = each / np.maximum(np.abs(_values(terms, found) - happened), NEAR / each)
    launch, row, slope = (float(value) for value in found)
    return CostLaw(launch, row, max(slope, given.slope / FAR) if far > 0 else given.slope)


def _no_less_than_nothing(terms: Floats, happened: Floats, weights: Floats) -> Floats:
    """Weighted least squares, shape (3,); what would be negative is left out, the most negative first.

    The few numbers of the equations are Python's: an operation of NumPy takes longer than all of them.
    """
    weighted = terms * weights[:, None]
    square = (weighted[:, :, None] * terms[:, None, :]).sum(axis=0).tolist()
    product = (weighted * happened[:, None]).sum(axis=0).tolist()
    scale = [math.sqrt(max(square[at][at], 1e-300)) for at in range(len(product))]
    square = [
        [item / (one * other) for item, other in zip(row, scale, strict=True)]
        for row, one in zip(square, scale, strict=True)
    ]
    product = [item / one for item, one in zip(product, scale, strict=True)]
    kept = [at for at in range(len(product)) if square[at][at] > 0]
    while True:
        found = [0.0] * len(product)
        rows = [[square[at][other] + 1e-9 * (at == other) for other in kept] + [product[at]] for at in kept]
        for at, value in zip(kept, _solved(rows), strict=True):
            found[at] = value
        if min(found) >= 0:
            return np.array(found) / scale
        kept.remove(found.index(min(found)))


def _values(terms: Floats, found: Floats) -> Floats:
    """The law's seconds for each row of terms."""
    return np.asarray((terms * found).sum(axis=1))


def _solved(rows: list[list[float]]) -> list[float]:
    """The solution of at most three equations with a positive definite matrix, by elimination; right sides are last.

    Not by BLAS: OpenBLAS asks for 32 MiB a thread at its first call, and where they are refused it waits for ever.
    """
    for at, row in enumerate(rows):
        pivot = row[at]
        row[:] = [item / pivot for item in row]
        for other in rows:
            if other is not row:
                factor = other[at]
                other[:] = [item - factor * part for item, part in zip(other, row, strict=True)]
    return [row[-1] for row in rows]
