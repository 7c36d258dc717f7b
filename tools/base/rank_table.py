"""What each rank did in a run, for people: a row for each, as the summary and `penstock report` show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.storage.base.budget import format_bytes
from penstock.tools.base.output import seconds

HEADS = ("rank", "host", "device", "computing", "exchanging", "tasks", "from disk", "over the link", "peak memory")


def rank_table(ranks: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Heads and rows; ranks: the facts of each (`RankReport.facts`), none of a run of one process.

    Computing is all that is not the exchange, in which a rank also waits for slower ones.
    """
    return (list(HEADS), [_row(facts) for facts in ranks]) if ranks else ([], [])


def _row(facts: Mapping[str, Any]) -> list[str]:
    exchange = facts["exchange_seconds"]
    return [
        str(facts["rank"]),
        facts["host"],
        facts["device"],
        seconds(max(0.0, facts["seconds"] - exchange)),
        seconds(exchange),
        f"{facts['tasks']:,}",
        format_bytes(facts["bytes_disk"]),
        format_bytes(facts["bytes_link"]),
        format_bytes(facts["peak_memory_bytes"]),
    ]
