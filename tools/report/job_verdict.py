"""What limited a job, from the start of its process to its end: the longest stage, or what limited its iterations.

A verdict on iterations says nothing about a job that spent its time elsewhere; one on kernels says nothing about a
first run, which compiled them.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.storage.base.budget import format_bytes
from penstock.tools.base.output import counted, seconds
from penstock.tools.report.bottleneck import Bottleneck, Spent, judge, per_second, percent
from penstock.tools.run.account import Account

START_UP = ("imports", "opening", "kernels")
"""Stages that a job has whatever its graph."""
MENTIONED = 0.1
"""Share of the wall time from which compiling is told beside another limit."""
MOSTLY = 0.75
"""Share of the wall time from which iterations are the job, as far as its limit goes."""
_CURES = {
    "calibrating": "rates are kept, and a second run finds them",
    "index": "programs of one job file, or of one session, make it once",
    "page_locking": "a smaller --host-memory locks less; programs of one job file share what is locked",
    "loading": "more disks (convert --stripe) would help; programs of one job file load once",
    "state": "",
    "summary": "",
    "writing": "a faster disk for --output, or .npy and .parquet in the place of text, would help",
    "closing": "",
    "other": "",
}
"""What would help against each stage."""
_TOLD = {
    "calibrating": "measuring this machine took",
    "index": "making the row index took",
    "page_locking": "page-locking memory for the device took",
    "loading": "loading edges before the first iteration took",
    "state": "planning memory and giving every vertex its first values took",
    "summary": "checking and summing up the answer took",
    "writing": "writing the answer took",
    "closing": "giving memory back took",
    "other": "what belongs to no stage took",
}


def judge_job(spent: Spent, account: Account | None) -> Bottleneck:
    """Return what limited a program and what would help.

    Parameters
    ----------
    spent : Spent
        Its iterations.
    account : Account, optional
        Its wall time; None where the metrics tell of no stages.

    Returns
    -------
    Bottleneck
        limit: as of `judge`, or "compiling", "start-up", or a stage of the job. share: of the wall time, if the limit
        is one of these.
    """
    inner = judge(spent)
    if account is None or account.wall <= 0 or not account.stages:
        return inner
    shares = {stage: account.share(stage) for stage in account.stages if stage not in START_UP}
    shares["start-up"] = sum(account.share(stage) for stage in START_UP)
    limit = max(shares, key=shares.__getitem__)
    share = shares[limit]
    if limit == "iterations":
        return Bottleneck(inner.limit, inner.share, _iterations(inner, account, share))
    took = f"{percent(share)} of the wall time ({seconds(share * account.wall)} of {seconds(account.wall)})"
    rest = f"iterations took {percent(shares.get('iterations', 0.0))}"
    if limit == "compiling":
        return Bottleneck(limit, share, _compiling(account, took, rest))
    if limit == "start-up":
        return Bottleneck(limit, share, _start_up(account, took, rest))
    cure = f": {_CURES[limit]}" if _CURES.get(limit) else ""
    told = _TOLD.get(limit, f"{limit} took")
    name = limit.replace("_", "-")
    return Bottleneck(limit, share, f"{name}: {told} {took}{_rate(account, limit)}; {rest}{cure}.")


def _iterations(inner: Bottleneck, account: Account, share: float) -> str:
    """The sentence on the iterations, with what else took long."""
    compiling = account.share("compiling")
    more = f"; iterations took {percent(share)} of the wall time" if share < MOSTLY else ""
    if compiling >= MENTIONED:
        more += f"; compiling took {percent(compiling)}{'' if more else ' of the wall time'}: {_LOADS}"
    return f"{inner.sentence.removesuffix('.')}{more}."


_LOADS = "a second run loads the kernels"


def _compiling(account: Account, took: str, rest: str) -> str:
    kernels = f", for {counted(account.compiled, 'kernel')}" if account.compiled else ""
    return f"compiling took {took}{kernels}; {rest}: {_LOADS}."


def _start_up(account: Account, took: str, rest: str) -> str:
    parts: Mapping[str, str] = {
        "imports": "imports",
        "opening": "opening graph and device",
        "kernels": "loading kernels",
    }
    told = ", ".join(f"{name} {percent(account.share(stage))}" for stage, name in parts.items())
    cure = "programs of one job file, or of one session in Python, start once"
    return f"start-up took {took}: {told}; {rest}: {cure}."


def _rate(account: Account, stage: str) -> str:
    """`, 40.0 GiB at 2.1 GB/s`, where a stage moves bytes."""
    moved, took = account.times.bytes.get(stage, 0), account.stages.get(stage, 0.0)
    return f", {format_bytes(moved)} at {per_second(moved / took)}" if moved and took > 0 else ""
