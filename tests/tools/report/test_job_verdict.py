"""What limited a job: the longest stage by name, with its bytes; never kernels for what was compiling."""

from __future__ import annotations

import pytest
from penstock.storage.clocks.stage_clock import StageTimes
from penstock.tools.report.bottleneck import Spent, judge, judge_job
from penstock.tools.run.account import Account

SPENT = Spent(1.0, 10, 10**9, {"kernel": 0.9}, {"kernel": 0.5})


def account(compiled: int = 0, **seconds: float) -> Account:
    moved = {"loading": 40 << 30, "index": 1 << 30, "writing": 2 << 30}
    return Account(StageTimes(sum(seconds.values()), seconds, {}, moved), compiled)


@pytest.mark.parametrize(
    ("seconds", "limit", "words"),
    [
        ({"imports": 1.0, "compiling": 7.1, "iterations": 1.9}, "compiling",
         ["compiling took 71 % of the wall time (7.1 s of 10 s), for 7 kernels", "a second run loads the kernels",
          "iterations took 19 %"]),
        ({"imports": 0.4, "opening": 0.1, "kernels": 0.3, "iterations": 0.2}, "start-up",
         ["start-up took 80 % of the wall time", "imports 40 %, opening graph and device 10 %, loading kernels 30 %"]),
        ({"imports": 1.0, "loading": 20.0, "iterations": 0.4}, "loading", ["loading edges", "40.0 GiB at 2.15 GB/s"]),
        ({"index": 8.0, "iterations": 1.0}, "index", ["row index", "1.0 GiB at 134 MB/s"]),
        ({"writing": 8.0, "iterations": 1.0}, "writing", ["writing the answer", "2.0 GiB at 268 MB/s"]),
        ({"page_locking": 8.0, "iterations": 1.0}, "page_locking", ["page-locking memory for the device"]),
        ({"summary": 8.0, "iterations": 1.0}, "summary", ["summing up the answer took 89 %"]),
        ({"calibrating": 8.0, "iterations": 1.0}, "calibrating", ["rates are kept"]),
        ({"closing": 8.0, "iterations": 1.0}, "closing", ["giving memory back"]),
        ({"strange": 8.0, "iterations": 1.0}, "strange", ["strange took 89 %"]),
        ({"imports": 1.0, "iterations": 9.0}, "kernel", ["kernel-bound: "]),
        ({"imports": 4.0, "iterations": 6.0}, "kernel", ["kernel-bound: ", "iterations took 60 % of the wall time"]),
        ({"compiling": 4.0, "iterations": 6.0}, "kernel", ["; compiling took 40 %: a second run loads the kernels."]),
        ({"compiling": 2.0, "iterations": 8.0}, "kernel", ["compiling took 20 % of the wall time: a second run"]),
    ],
)  # fmt: skip
def test_the_longest_stage_is_named(seconds: dict[str, float], limit: str, words: list[str]) -> None:
    verdict = judge_job(SPENT, account(7, **seconds))
    assert verdict.limit == limit
    assert verdict.sentence.startswith(limit.replace("_", "-"))
    assert verdict.sentence.endswith(".")
    assert ".." not in verdict.sentence
    assert ("kernel-bound" in verdict.sentence) == (limit == "kernel")
    for word in words:
        assert word in verdict.sentence, verdict.sentence


def test_without_an_account_the_iterations_are_judged() -> None:
    assert judge_job(SPENT, None) == judge_job(SPENT, Account()) == judge(SPENT)


def test_a_job_without_iterations_has_a_limit_too() -> None:
    verdict = judge_job(Spent(0.0, 0, 0, {}, {}), account(imports=1.0, opening=3.0))
    assert verdict.limit == "start-up"
