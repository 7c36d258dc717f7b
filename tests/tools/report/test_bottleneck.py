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


def test_unpack_bound_says_what_would_leave_it_out() -> None:
    verdict = judge(spent(unpack=7.0, link=4.0))
    assert (verdict.limit, "70 % of the time" in verdict.sentence) == ("unpack", True)
    assert "--packed never" in verdict.sentence


def test_disk_bound_tells_a_first_pass_from_reading_again() -> None:
    again = judge(spent(disk=9.0, kernel=4.0))
    assert again.limit == "disk"
    for words in ("90 % of the time", "4.8 times", "6.0 GiB more --host-memory"):
        assert words in again.sentence
    once = judge(replace(spent(disk=9.0, kernel=4.0), passes=1.0))
    assert "--stripe" in once.sentence
    assert "--host-memory" not in once.sentence
    fits = judge(replace(spent(disk=9.0), host_bytes=10 * GIB))
    assert "second run" in fits.sentence


def test_decode_bound_asks_for_cores_or_memory() -> None:
    again = judge(spent(decode=8.0, disk=6.0))
    assert (again.limit, "16 threads" in again.sentence) == ("decode", True)
    assert "6.0 GiB more --host-memory" in again.sentence
    once = judge(replace(spent(decode=8.0, disk=6.0), passes=1.0, threads=1))
    for words in ("1 thread decoded", "--threads", "packed"):
        assert words in once.sentence


def test_gather_bound_names_the_route_that_gathers_nothing() -> None:
    verdict = judge(spent(gather=6.0, link=5.0))
    assert (verdict.limit, "zero-copy" in verdict.sentence) == ("gather", True)


def test_kernel_bound_says_what_is_next_and_that_memory_does_not_help() -> None:
    verdict = judge(spent(kernel=8.0, disk=4.4))
    assert verdict.limit == "kernel"
    for words in ("80 % of the time", "at 50 % of this machine's rate", "next is the disk, 44 %", "memory would not"):
        assert words in verdict.sentence
    assert "faster GPU" in verdict.sentence
    on_host = judge(replace(spent(kernel=8.0), linked=False))
    assert "more cores or a GPU" in on_host.sentence
    assert "edges were there" in on_host.sentence


def test_an_exchange_may_limit() -> None:
    verdict = judge(spent(kernel=2.0, exchange=8.0))
    assert verdict.limit == "exchange"
    assert "waited for the slowest" in verdict.sentence


def test_work_on_vertices_counts_with_the_kernels() -> None:
    verdict = judge(spent(kernel=2.0, vertices=5.0, link=4.0))
    assert (verdict.limit, verdict.share) == ("kernel", pytest.approx(0.7))
    assert "mostly on vertices rather than edges (50 %)" in verdict.sentence


def test_stages_that_take_turns_are_waiting() -> None:
    verdict = judge(spent(disk=3.0, decode=2.5, kernel=3.5))
    assert (verdict.limit, verdict.share) == ("waiting", pytest.approx(0.65))
    for words in ("the disk 30 %", "decoding 25 %", "kernels 35 %", "--host-memory", "--partition-bytes"):
        assert words in verdict.sentence


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


@pytest.mark.parametrize(("iterations", "limit"), [(4_000, "waiting"), (9_000, "latency")])
def test_many_short_iterations_with_few_edges_are_latency(iterations: int, limit: str) -> None:
    few = {"kernel": 1.9, "disk": 0.0, "link": 0.0, "decode": 0.0, "gather": 0.0}
    verdict = judge(replace(spent(kernel=4.0, plan=3.0), iterations=iterations, ideal=few))
    assert verdict.limit == limit
    if limit == "latency":
        assert "9,000 iterations of 1.11 ms walked 111,111 edges each" in verdict.sentence
        assert "planning alone took 30 %" in verdict.sentence


def test_many_short_iterations_full_of_edges_are_not() -> None:
    assert judge(replace(spent(kernel=9.0), iterations=9_000)).limit == "kernel"


def test_planning_for_most_of_the_time_is_latency() -> None:
    assert judge(spent(plan=6.0, kernel=3.0)).limit == "latency"


def test_a_run_without_iterations_is_nothing() -> None:
    for empty in (replace(RUN, seconds=0.0), replace(RUN, iterations=0)):
        assert judge(empty).limit == "nothing"


@given(
    st.dictionaries(st.sampled_from(STAGES), st.floats(0, 30)),
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
