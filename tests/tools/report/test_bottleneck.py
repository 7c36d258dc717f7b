"""What limited a run, and a job, from hand-made sums on every side of each decision."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from penstock.tools.report.bottleneck import BUSY, STAGES, Spent, judge, judge_job, per_second, percent
from penstock.tools.run.account import Account

GIB = 1 << 30
RUN = Spent(
    seconds=10.0,
    iterations=10,
    edges=10**9,
    busy={},
    ideal={"kernel": 4.0, "disk": 2.0, "link": 2.0, "decode": 2.0, "gather": 2.0},
    moved={"disk": 8 * GIB, "decode": 20 * GIB, "link": 30 * GIB, "gather": GIB},
    edges_bytes=10 * GIB,
    host_bytes=4 * GIB,
    device_bytes=4 * GIB,
    passes=4.8,
    threads=16,
    linked=True,
)


def spent(**busy: float) -> Spent:
    return replace(RUN, busy=busy)


def test_link_bound_says_the_rate_and_the_memory_that_would_help() -> None:
    verdict = judge(spent(link=7.1, kernel=4.0, disk=1.0))
    assert (verdict.limit, verdict.share) == ("link", pytest.approx(0.71))
    assert verdict.sentence == (
        "link-bound: the link was at work 71 % of the time, at 28 % of this machine's rate (4.54 GB/s of 16.1 GB/s); "
        "6.0 GiB more device memory for edges would keep them all there."
    )
    packed = judge(replace(spent(link=7.1), moved=dict(RUN.moved) | {"unpack": 70 * GIB}))
    assert "with 30.0 GiB, unpacked to 70.0 GiB of edges; 6.0 GiB more" in packed.sentence
    everything = replace(spent(link=7.1), device_bytes=10 * GIB)
    assert "GiB more" not in judge(everything).sentence


FEW = {"kernel": 1.9, "disk": 0.0, "link": 0.0, "decode": 0.0, "gather": 0.0}


@pytest.mark.parametrize(
    ("busy", "changed", "limit", "words"),
    [
        ({"unpack": 7.0, "link": 4.0}, {}, "unpack", ["70 % of the time", "--packed never"]),
        ({"disk": 9.0, "kernel": 4.0}, {}, "disk", ["90 % of the time", "4.8 times", "6.0 GiB more --host-memory"]),
        ({"disk": 9.0, "kernel": 4.0}, {"passes": 1.0}, "disk", ["--stripe"]),
        ({"disk": 9.0}, {"host_bytes": 10 * GIB}, "disk", ["second run"]),
        ({"decode": 8.0, "disk": 6.0}, {}, "decode", ["16 threads", "6.0 GiB more --host-memory"]),
        ({"decode": 8.0, "disk": 6.0}, {"passes": 1.0, "threads": 1}, "decode",
         ["1 thread decoded", "--threads", "packed"]),
        ({"gather": 6.0, "link": 5.0}, {}, "gather", ["zero-copy"]),
        ({"kernel": 8.0, "disk": 4.4}, {}, "kernel",
         ["80 % of the time", "at 50 % of this machine's rate", "next is the disk, 44 %", "memory would not",
          "faster GPU"]),
        ({"kernel": 8.0}, {"linked": False}, "kernel", ["more cores or a GPU", "edges were there"]),
        ({"kernel": 2.0, "exchange": 8.0}, {}, "exchange", ["waited for the slowest"]),
        ({"kernel": 2.0, "vertices": 5.0, "link": 4.0}, {}, "kernel",
         ["70 % of the time", "mostly on vertices rather than edges (50 %)"]),
        ({"disk": 3.0, "decode": 2.5, "kernel": 3.5}, {}, "waiting",
         ["the disk 30 %", "decoding 25 %", "kernels 35 %", "--host-memory", "--partition-bytes"]),
        ({"kernel": 4.0, "plan": 3.0}, {"iterations": 4_000, "ideal": FEW}, "waiting", []),
        ({"kernel": 4.0, "plan": 3.0}, {"iterations": 9_000, "ideal": FEW}, "latency",
         ["9,000 iterations of 1.11 ms walked 111,111 edges each", "planning alone took 30 %"]),
        ({"kernel": 9.0}, {"iterations": 9_000}, "kernel", []),
        ({"plan": 6.0, "kernel": 3.0}, {}, "latency", []),
        ({}, {"seconds": 0.0}, "nothing", []),
        ({}, {"iterations": 0}, "nothing", []),
    ],
)  # fmt: skip
def test_what_limited_a_run_and_what_would_help(
    busy: dict[str, float], changed: dict[str, Any], limit: str, words: list[str]
) -> None:
    verdict = judge(replace(RUN, busy=busy, **changed))
    assert verdict.limit == limit
    for word in words:
        assert word in verdict.sentence
    assert changed.get("passes") != 1.0 or "--host-memory" not in verdict.sentence, "a first pass reads all anyway"


@pytest.mark.parametrize(
    ("busy", "limit", "words"),
    [
        ({"values": 4.0, "disk": 3.0, "kernel": 2.0}, "values", "values-bound: the file of values of vertices was"),
        (
            {"values": 3.0, "disk": 4.0, "kernel": 2.0},
            "disk",
            "7 windows of vertices read them, and more --host-memory",
        ),
        (
            {"values": 3.0, "disk": 2.0, "kernel": 2.5, "vertices": 1.0},
            "kernel",
            "in each of 7 windows of vertices; next",
        ),
    ],
)
def test_where_values_come_from_a_file_the_busiest_stage_is_the_limit(
    busy: dict[str, float], limit: str, words: str
) -> None:
    moved = dict(RUN.moved) | {"values": 60 * GIB}
    verdict = judge(replace(spent(**busy), moved=moved, windows=7, linked=False))
    assert (verdict.limit, verdict.share) == (limit, pytest.approx(0.4 if limit != "kernel" else 0.35))
    assert words in verdict.sentence
    assert judge(spent(**busy)).limit == "waiting"


@given(
    st.dictionaries(st.sampled_from(list(STAGES)), st.floats(0, 30)),
    st.dictionaries(st.sampled_from(["disk", "decode", "gather", "link", "kernel"]), st.floats(0, 30)),
    st.integers(1, 10**6),
    st.booleans(),
)
def test_there_is_always_one_sentence(
    busy: dict[str, float], ideal: dict[str, float], iterations: int, linked: bool
) -> None:
    verdict = judge(replace(RUN, busy=busy, ideal=ideal, iterations=iterations, linked=linked))
    assert verdict.sentence.startswith(f"{verdict.limit}-bound: " if verdict.limit != "waiting" else "waiting: ")
    assert verdict.sentence.endswith(".")
    assert "\n" not in verdict.sentence
    assert 0 <= verdict.share <= 1 or verdict.limit == "latency"
    if verdict.limit in STAGES:
        assert verdict.share >= BUSY


@pytest.mark.parametrize(
    ("value", "said"), [(0.714, "71 %"), (1.16, "116 %"), (0.004, "0.4 %"), (0.0, "0 %"), (0.0095, "1 %")]
)
def test_percent(value: float, said: str) -> None:
    assert percent(value) == said


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        ((51.23e9,), "51.2 GB/s"),
        ((9.94e6,), "9.94 MB/s"),
        ((10.7e6, "edges"), "10.7 M edges/s"),
        ((512.0,), "0.512 kB/s"),
    ],
)
def test_rates(rate: Any, said: str) -> None:
    assert per_second(*rate) == said


SPENT = Spent(1.0, 10, 10**9, {"kernel": 0.9}, {"kernel": 0.5})


def account(compiled: int = 0, **seconds: float) -> Account:
    moved = {"loading": 40 << 30, "index": 1 << 30, "writing": 2 << 30}
    return Account(sum(seconds.values()), seconds, {}, moved, compiled)


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
    assert judge_job(SPENT, None) == judge_job(SPENT, Account(0.0, {})) == judge(SPENT)


def test_a_job_without_iterations_has_a_limit_too() -> None:
    verdict = judge_job(Spent(0.0, 0, 0, {}, {}), account(imports=1.0, opening=3.0))
    assert verdict.limit == "start-up"
