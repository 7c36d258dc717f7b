"""What each rank did, and when: gathered once, when the run is over, so that iterations send nothing for it.

Each host has a clock of its own. No rank returns from a collective before all have called it; so when each of them
called and returned, by its own clock, bounds how far two clocks are apart (Cristian, 1989, bounds it by a round trip).
"""

from __future__ import annotations

import json
import platform
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from penstock.engine.ranks.communicator import gather_bytes
from penstock.engine.state.records import COLUMNS, RankReport
from penstock.storage.base.budget import peak_resident_bytes
from penstock.storage.base.timeline import Timeline
from penstock.transfer.values.cost import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from penstock.engine.ranks.communicator import Communicator
    from penstock.engine.state.records import IterationRecord


def gather_reports(ranks: Communicator, device: str, records: Sequence[IterationRecord]) -> tuple[RankReport, ...]:
    """Return every rank's report; collective. records: of this rank, as many as the others have."""
    table = np.array([_row(record) for record in records], dtype=np.float64).reshape(len(records), len(COLUMNS))
    tables = ranks.gather_numbers(table)
    own = json.dumps([platform.node(), device, peak_resident_bytes()])
    reports = []
    for rank, text in enumerate(gather_bytes(ranks, own.encode())):
        host, place, peak = json.loads(text)
        reports.append(RankReport(rank, host, place, peak, tables[rank]))
    return tuple(reports)


def _row(record: IterationRecord) -> list[float]:
    counts, busy = (record.bytes_disk, record.bytes_link, record.value_bytes, len(record.tasks)), record.busy_seconds()
    seconds = record.seconds, record.exchange_seconds, record.value_seconds
    return [*counts, *seconds, *(busy[name] for name in RESOURCES)]


ROUNDS = 16
"""Collectives whose calls and returns are noted; the tightest ones count."""


@dataclass(frozen=True)
class RankTimeline:
    """The timeline of one rank; ahead: seconds that its clock tells more than that of rank 0."""

    rank: int
    host: str
    timeline: Timeline
    ahead: float


def gather_timelines(ranks: Communicator, timeline: Timeline) -> list[RankTimeline]:
    """Return the timelines of all ranks; collective. Nobody adds to them any more."""
    ours = np.empty((ROUNDS, 2))
    for moments in ours:
        moments[0] = time.perf_counter()
        ranks.gather_numbers(moments)
        moments[1] = time.perf_counter()
    ahead = clocks_ahead(ranks.gather_numbers(ours)).tolist()
    hosts = [name.decode() for name in gather_bytes(ranks, platform.node().encode())]
    every = [Timeline.of_bytes(data) for data in gather_bytes(ranks, timeline.to_bytes())]
    return [RankTimeline(rank, *parts) for rank, parts in enumerate(zip(hosts, every, ahead, strict=True))]


def clocks_ahead(moments: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the seconds by which each rank's clock is ahead of rank 0's; 0 where that is possible.

    moments: when each rank called and left each collective, by its own clock, shape (ranks, rounds, 2).
    """
    called, left = moments[:, :, 0], moments[:, :, 1]
    least = (called - left[0]).max(axis=1)
    most = (left - called[0]).min(axis=1)
    return np.where((least <= 0) & (most >= 0), 0.0, (least + most) / 2)
