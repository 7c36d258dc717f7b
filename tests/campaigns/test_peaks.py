"""Peak memory of every command on graphs that strain it: never more than it promised.

By default some commands on vertices without edges, whose file is soon made; in full all of `support.command_peaks`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.command_peaks import KINDS, peaks_of, suited
from support.peak_memory import MIB

ALL = os.environ.get("PENSTOCK_CAMPAIGN") == "all"
SAMPLE = {"isolated": ["walk .parquet", "info --assortativity", "extract --degrees", "export .parquet"]}
FEWER = 1_500_000
"""So many vertices that an array of 8 bytes for each is more than what a command may take beyond its budget."""
pytestmark = pytest.mark.timeout(7200 if ALL else 240)


@pytest.mark.parametrize("kind", list(KINDS) if ALL else list(SAMPLE))
def test_no_command_takes_more_than_it_promised(kind: str, tmp_path: Path) -> None:
    asked = suited(kind) if ALL else SAMPLE[kind]
    found = list(peaks_of(kind, asked, tmp_path, None if ALL else FEWER))
    for peak in found:
        print(f"| {kind} | {peak.program} | {peak.budget / MIB:.0f} | {peak.growth / MIB:.0f} |")
    assert [peak.program for peak in found] == asked
    beyond = {peak.program: (peak.budget // MIB, peak.growth / MIB) for peak in found if peak.beyond}
    assert not beyond, f"promised and growth in MiB: {beyond}"
