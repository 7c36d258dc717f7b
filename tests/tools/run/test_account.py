"""The account of a job's wall time: what it says, and that it reads back."""

from __future__ import annotations

import json

from penstock.storage.base.stage_clock import STAGES
from penstock.tools.base.json_record import of_json, to_json
from penstock.tools.run.account import STAGE_NAMES, Account, JobClock

ACCOUNT = Account(10.0, {"imports": 1.0, "compiling": 6.0, "iterations": 3.0}, {"loading": 2.0}, {"loading": 99}, 7, 1)


def test_every_stage_has_a_name() -> None:
    assert set(STAGE_NAMES) == set(STAGES)


def test_stages_come_in_their_order_and_the_longest_is_named() -> None:
    clock = JobClock(first="iterations")
    clock.turn_to("imports")
    assert list(clock.account().stages) == ["imports", "iterations"]
    assert ACCOUNT.longest_stage == "compiling"
    assert ACCOUNT.share("compiling") == 0.6
    assert ACCOUNT.share("loading") == 0.0
    assert Account(0.0, {}).longest_stage is None


def test_a_line_names_the_longest_stages() -> None:
    assert ACCOUNT.line() == "whole job 10 s: compiling kernels 6 s; iterations 3 s; imports, options 1 s"


def test_it_reads_back() -> None:
    facts = json.loads(json.dumps(to_json(ACCOUNT)))
    assert of_json(Account, facts) == ACCOUNT
    assert sum(facts["stages"].values()) == facts["wall_seconds"]


def test_parts_of_a_job_add_up() -> None:
    part = Account(12.0, {"imports": 1.0, "compiling": 6.0, "iterations": 5.0}, {}, {"loading": 99}, 9, 2).since(
        ACCOUNT
    )
    assert part == Account(2.0, {"iterations": 2.0}, {}, {}, 2, 1)
    assert part.without("iterations") == Account(0.0, {}, {}, {}, 2, 1)


def test_kernels_of_before_are_not_the_jobs() -> None:
    account = JobClock().account()
    assert (account.kernels_compiled, account.kernels_loaded) == (0, 0)
