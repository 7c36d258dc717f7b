"""What each rank did is gathered once, when the run is over, so that iterations send nothing for it."""

from __future__ import annotations

import json
import platform
from typing import TYPE_CHECKING

import numpy as np
from penstock.engine.ranks.communicator import gather_bytes
from penstock.engine.state.rank_report import COLUMNS, RankReport
from penstock.storage.base.budget import peak_resident_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    counts = record.bytes_disk, record.bytes_link, len(record.tasks)
    return [*counts, record.seconds, record.exchange_seconds, *record.busy_seconds().values()]
