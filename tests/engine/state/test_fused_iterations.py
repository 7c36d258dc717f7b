"""Records of a run, of which those of calls are made when one is looked at."""

from __future__ import annotations

import numpy as np
from penstock.engine.state.fused_iterations import FusedCall, FusedRecord, RunRecords
from penstock.engine.state.records import IterationRecord


def call_of(first: int, *vertices: int) -> FusedCall:
    """A call of iterations with so many vertices each, and twice as many edges."""
    return FusedCall(first, np.array([(v, 2 * v) for v in vertices]), [], 0.0, 0.0, 0.1)


def run_of(first: int, *vertices: int) -> RunRecords:
    """The records of a run that began with an iteration alone; the last record of a call is appended by the loop."""
    records, call = RunRecords(), call_of(first + 1, *vertices)
    records.append(IterationRecord(first, "push", 1, 2))
    records.add_call(call)
    records.append(FusedRecord(call, len(vertices) - 1))
    return records


def test_records_of_calls_are_in_their_places():
    """Counted before they are made, and the same objects whenever they are looked at."""
    records = run_of(0, 3, 4)
    records.extend(run_of(3, 6))
    assert len(records) == 5
    assert [(record.number, record.vertices, record.edges) for record in records] == [
        (0, 1, 2), (1, 3, 6), (2, 4, 8), (3, 1, 2), (4, 6, 12),
    ]  # fmt: skip
    assert records[1] is list(records)[1]
    assert [record.number for record in records[-2:]] == [3, 4]
    records.append(IterationRecord(5, "pull", 1, 1))
    assert len(records) == len(list(records)) == 6
