"""Ranks that cannot run together are refused, with what differs and the way out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from penstock.engine.program.program import Field, Program
from penstock.engine.ranks.agreement import agree, check_combines, with_shares
from penstock.engine.resources.config import Config, Tuning
from penstock.engine.session import Session
from penstock.storage.base.errors import InputError
from support.graphs import in_memory, shape
from support.thread_ranks import ThreadRanks, on_ranks

GRAPH = in_memory(shape("skewed"))


def test_the_smallest_budget_holds_and_threads_are_added_up() -> None:
    def work(rank: ThreadRanks) -> tuple[int | None, int | None, int]:
        config = Config(device="cpu", threads=rank.rank + 1, host_memory=(9 - rank.rank) << 20)
        agreed, threads = agree(config, GRAPH, rank)
        return agreed.host_memory, agreed.threads, threads

    assert on_ranks(3, work) == [(7 << 20, 1, 6), (7 << 20, 2, 6), (7 << 20, 3, 6)]


@pytest.mark.parametrize(
    ("what", "configs", "graphs"),
    [
        ("graph", [{}, {}], ["skewed", "ring"]),
        ("set of options", [{}, {"mode": "sync"}], ["skewed", "skewed"]),
    ],
)
def test_what_differs_is_named(what: str, configs: list[dict[str, str]], graphs: list[str]) -> None:
    made = {name: in_memory(shape(name)) for name in graphs}

    def work(rank: ThreadRanks) -> None:
        agree(Config(device="cpu", **configs[rank.rank]), made[graphs[rank.rank]], rank)

    with pytest.raises(InputError, match=f"rank 1 has another {what} than rank 0"):
        on_ranks(2, work)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"device": "emulated", "route": "cel"}, "route is 'cel', which sends along edges that other ranks have"),
        ({"device": "cpu", "tuning": Tuning(local_rounds=1)}, "local_rounds is 1, and marks"),
    ],
)
def test_what_ranks_do_not_do_is_refused(option: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        on_ranks(2, lambda rank: agree(Config(**option), GRAPH, rank))


def test_sums_that_are_seen_at_once_are_refused() -> None:
    members = {"value": Field(np.int64), "combine": "sum", "self_combining": True, "edge": lambda value: value}
    program: Program = type("Counting", (Program,), members)()
    check_combines(program, asynchronous=False)
    with pytest.raises(InputError, match=r"Counting is self_combining and sums.*--mode sync"):
        check_combines(program, asynchronous=True)


def test_ranks_begin_with_shares_by_what_they_can_do() -> None:
    def work(rank: ThreadRanks) -> tuple[object, ...]:
        faster = with_shares(Config(), (rank.rank + 1.0, math.inf, 0.0), 300, rank).shares
        same = with_shares(Config(), (5.0, math.inf, 0.0), 300, rank).shares
        return faster, same, with_shares(Config.of(shares="1,3"), (5.0, 1.0, 0.0), 300, rank).shares

    for faster, same, given in on_ranks(2, work):
        assert faster == pytest.approx((100.0, 200.0))
        assert (same, given) == (None, (1.0, 3.0))


@pytest.mark.parametrize(
    ("shares", "words"), [("1,x", "give a number above zero"), ("1,0", "give a number"), ("1,2,3", "there are 2 ranks")]
)
def test_shares_that_are_none_are_refused(shares: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        on_ranks(2, lambda rank: agree(Config.of(device="cpu", shares=shares), GRAPH, rank))


def test_one_rank_has_no_shares() -> None:
    with pytest.raises(InputError, match="there is one rank, which has all edges"):
        Session(GRAPH, shares="1")
