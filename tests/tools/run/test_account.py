"""The account of a job's wall time: what it says, and that it reads back."""

from __future__ import annotations

import json

from penstock.storage.base.stage_clock import STAGES, StageClock, StageTimes
from penstock.tools.run.account import STAGE_NAMES, Account, JobClock

TIMES = StageTimes(10.0, {"iterations": 3.0, "imports": 1.0, "compiling": 6.0}, {"loading": 2.0}, {"loading": 99})


def test_every_stage_has_a_name() -> None:
    assert set(STAGE_NAMES) == set(STAGES)


def test_stages_come_in_their_order_and_the_longest_is_named() -> None:
    account = Account(TIMES, 7, 1)
    assert list(account.stages) == ["imports", "compiling", "iterations"]
    assert account.longest == "compiling"
    assert account.share("compiling") == 0.6
    assert account.share("loading") == 0.0
    assert Account().longest is None


def test_a_line_names_the_longest_stages() -> None:
    assert Account(TIMES).line() == "whole job 10 s: compiling kernels 6 s; iterations 3 s; imports, options 1 s"


def test_it_reads_back() -> None:
    account = Account(TIMES, 7, 1)
    facts = json.loads(json.dumps(account.facts()))
    assert Account.of(facts) == account
    assert sum(facts["stages"].values()) == facts["wall_seconds"]
    assert Account.of({"total_seconds": 3.0}) is None, "metrics of format 1 tell of no stages"


def test_parts_of_a_job_add_up() -> None:
    whole = Account(StageTimes(12.0, {"iterations": 5.0, "imports": 1.0, "compiling": 6.0}), 9, 2)
    part = whole.since(Account(TIMES, 7, 1))
    assert (part.wall, part.stages, part.compiled, part.loaded) == (2.0, {"iterations": 2.0}, 2, 1)


def test_kernels_of_before_are_not_the_jobs() -> None:
    account = JobClock(StageClock()).account()
    assert (account.compiled, account.loaded) == (0, 0)
