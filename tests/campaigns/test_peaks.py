"""Peak memory of every command on graphs that strain it: never more than it promised.

By default some commands on vertices without edges, whose file is soon made, at their least budgets; in full all of
`support.command_peaks`, with half as much again, too.
"""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

import pytest
from support.command_peaks import KINDS, peaks_of, suited

ALL = os.environ.get("PENSTOCK_CAMPAIGN") == "all"
FEWER = {"isolated": 1_500_000, "properties": 1 << 17}
"""Vertices by default: so many that an array of 8 bytes for each, or a row group, is more than allocators keep."""
SAMPLE = [("isolated", "export .parquet"), ("properties", "extract --degrees")]
CASES = [(kind, name) for kind in KINDS for name in suited(kind)] if ALL else SAMPLE
pytestmark = pytest.mark.timeout(3600 if ALL else 240)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("peaks")


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_no_command_takes_more_than_it_promised(kind: str, name: str, folder: Path) -> None:
    found = [*islice(peaks_of(kind, name, folder, None if ALL else FEWER[kind]), None if ALL else 1)]
    print("", *found, sep="\n")
    assert found
    assert not [str(peak) for peak in found if peak.beyond]
