"""The dry run for several ranks: what each of so many ranks on this host would take, in a line for each number of them.

Ranks divide the host's memory, threads and disk (`HostRanks`), as those that `--devices` starts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import BudgetError
from penstock.tools.base.output import seconds, table
from penstock.tools.run.execute_job import of_all_ranks
from penstock.tools.run.rank_devices import HostRanks

if TYPE_CHECKING:
    from penstock.engine.planning.forecast import Forecast
    from penstock.engine.program.program import Program
    from penstock.storage.format.graph import Graph
    from penstock.tools.run.job import Job
    from penstock.tools.run.rates import UsedRates

HEADS = ("ranks", "memory a rank", "edges", "first sweep", "later sweeps", "limit", "exchange")


@dataclass(frozen=True)
class RankForecast:
    """What a program would take of one of so many ranks; found None: its memory does not suffice, as `refusal` says."""

    ranks: int
    found: Forecast | None
    refusal: BudgetError | None = None

    @property
    def exchange_share(self) -> float:
        """The exchange's share of a later sweep."""
        sweep = None if self.found is None else self.found.later
        return 0.0 if sweep is None or not sweep.seconds else sweep.exchange / sweep.seconds


def forecast_ranks(
    job: Job, programs: Sequence[Program], graph: Graph, used: UsedRates, ranks: int
) -> list[RankForecast]:
    """What each program would take of one of so many ranks. Raises InputError for what ranks refuse."""
    from penstock.engine.planning.rank_forecast import PaperRanks, rates_of_rank
    from penstock.engine.resources.config import Config
    from penstock.engine.session import Session
    from penstock.transfer.values.rates import Rates

    options = job.execution.forecast_options(ranks) | used.options()
    if ranks > 1:
        whole = used.rates or Rates.host(Config.of(**job.execution.options).thread_count)
        devices = _devices(job, ranks)
        asked = HostRanks(devices, 0).options(job.execution.forecast_options(ranks))
        options = asked | {"rates": rates_of_rank(whole, ranks)}
    keeps = job.checkpointing.folder is not None
    with Session(graph, ranks=PaperRanks(ranks), **options) as session:
        session.prepare(*programs)
        return [_forecast(session, program, ranks, keeps) for program in programs]


def _devices(job: Job, ranks: int) -> tuple[str, ...]:
    """Those that the job names for so many ranks, else so many of its first."""
    from penstock.transfer.devices import cuda

    named = job.execution.devices or (str(job.execution.options.get("device", "auto")),)
    if len(named) == ranks:
        return named
    first = named[0] if named[0] != "auto" else "cuda:0" if cuda.count() else "cpu"
    return (first,) * ranks


def _forecast(session: Any, program: Program, ranks: int, keeps: bool) -> RankForecast:
    try:
        return RankForecast(ranks, session.forecast(program, checkpoints=keeps))
    except BudgetError as error:
        return RankForecast(ranks, None, of_all_ranks(error, ranks))


def rank_facts(one: RankForecast) -> dict[str, Any]:
    """For machines."""
    if one.found is None:
        return {"ranks": one.ranks, "fits": False, "refusal": str(one.refusal)}
    sweeps = {
        name: asdict(sweep) | {"seconds": sweep.seconds, "limited_by": sweep.limit}
        for name, sweep in (("first", one.found.first), ("later", one.found.later))
    }
    held = one.found.host
    host = asdict(held) | {"total": held.total}
    most = one.found.most_seconds
    return {"ranks": one.ranks, "fits": True, "host": host, "exchange_share": one.exchange_share, "most_seconds": most,
            **sweeps}  # fmt: skip


def rank_lines(each: Sequence[RankForecast]) -> list[str]:
    """For people: a table, and why some numbers of ranks do not fit; nothing without any."""
    if not each:
        return []
    refused = [f"{one.ranks} ranks do not fit: {one.refusal}" for one in each if one.found is None]
    rows = [_row(one, one.found) for one in each if one.found is not None]
    return [f"  {line}" for line in [*(table(HEADS, rows) if rows else []), *refused]]


def _row(one: RankForecast, found: Forecast) -> tuple[object, ...]:
    memory = f"{format_bytes(found.host.total)} of {format_bytes(found.host.budget)}"
    later = found.later
    return (
        one.ranks,
        memory,
        "stay" if found.host.whole else "stream",
        seconds(found.first.seconds),
        seconds(later.seconds),
        later.limit if later.seconds else "none",
        f"{one.exchange_share:.1%}",
    )
