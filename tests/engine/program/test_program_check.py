"""Words of a program that its kind of run would pass over are honored, or refused with the way out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from penstock.engine import Field, Global, Program, Start, run
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.program.program_check import check_program, synchronous_words
from penstock.engine.programs.bfs import BFSLevels
from penstock.engine.programs.katz import Katz
from penstock.engine.programs.reachability import Reachability
from penstock.engine.programs.sssp import SSSP
from penstock.engine.programs.wcc import WCC
from penstock.storage.base.errors import InputError, RunError
from support.graphs import in_memory, skewed, weighed
from support.oracles import EdgeList, bfs_levels

GRAPH = EdgeList(90, *skewed(90, 200, 3))
SOURCE, DEPTH = 25, 3
REFERENCE: dict[str, Any] = {"kernels": "reference"}
ON_A_DEVICE: dict[str, Any] = {"device": "emulated", "kernels": "cuda"}


class Near(Program):
    """Levels of vertices that few hops lead to; whoever is as far as that passes nothing on."""

    level = Field(np.uint32, fill=2**32 - 1, unreached=2**32 - 1)
    combine = "min"
    self_combining = True

    def __init__(self, source: int, depth: int = DEPTH) -> None:
        self.source, self.depth = source, depth

    def start(self, graph: Any, state: Any) -> Start:
        state["level"][self.source] = 0
        return Start(active=np.array([self.source]))

    def edge(level):  # type: ignore[no-untyped-def]
        return level + 1

    def active(level, depth):  # type: ignore[no-untyped-def]
        return level < depth


class Clipped(Near):
    """The same by `vertex`: what is too far is not taken over."""

    active = None

    def vertex(level, incoming, depth):  # type: ignore[no-untyped-def]
        return incoming if incoming < level and incoming <= depth else level


class Counted(Near):
    """The same by the number of iterations."""

    active = None
    max_iter = DEPTH


class Watched(Near):
    """The same by a Global, which is looked at after every iteration."""

    active = None

    @Global(np.float64, combine="max")
    def farthest(level):  # type: ignore[no-untyped-def]
        return level if level < 2**32 - 1 else 0.0

    def done(self, iteration: int, totals: dict[str, float]) -> bool:
        return totals["farthest"] >= self.depth


@pytest.mark.parametrize(
    ("program", "way"),
    [
        *((program, REFERENCE) for program in (Near, Clipped, Counted, Watched)),
        (Near, {**REFERENCE, "direction": "pull"}),
        pytest.param(
            Near, ON_A_DEVICE, marks=pytest.mark.skipif(not seam.SIMULATED, reason="there is a device: tests/gpu")
        ),
    ],
)
def test_self_combining_programs_keep_their_words(program: type[Near], way: dict[str, Any]) -> None:
    levels = bfs_levels(GRAPH, SOURCE)
    near = np.flatnonzero((levels >= 0) & (levels <= DEPTH))
    assert len(near) < np.count_nonzero(levels >= 0), "there is more behind"
    assert run(program(SOURCE), in_memory(GRAPH), **way).to_dict("level") == dict(zip(near, levels[near], strict=True))


@pytest.mark.parametrize(
    ("program", "word"),
    [
        (Near(SOURCE), r"active\(\) would mean nothing there"),
        (Clipped(SOURCE), r"vertex\(\)"),
        (Counted(SOURCE), "max_iter = 3"),
        (Watched(SOURCE), r"the Global farthest, done\(\)"),
    ],
)
def test_asynchronous_runs_refuse_what_they_pass_over(program: Program, word: str) -> None:
    with pytest.raises(InputError, match=f'cannot run asynchronously: .*{word}.*leave mode="async" out'):
        run(program, in_memory(GRAPH), mode="async")
    with pytest.raises(InputError, match="it runs synchronously here"):
        run(program, in_memory(GRAPH), route="cel", device="emulated")


def test_bundled_programs_stay_asynchronous() -> None:
    assert [synchronous_words(made) for made in (SSSP(0), Reachability(0))] == [[], []]
    with pytest.raises(InputError, match="Coreness cannot run asynchronously: it is not self_combining"):
        run("coreness", in_memory(GRAPH), mode="async")


class Plain(Program):
    """What others here are made of."""

    value = Field(np.int64)
    fixed = Field(np.int64, constant=True)
    pair = Field(np.float64, shape=(2,), constant=True)
    combine = "sum"

    def edge(value):  # type: ignore[no-untyped-def]
        return value

    def vertex(value, incoming):  # type: ignore[no-untyped-def]
        return value + incoming


class Two(Program):
    value = Field(np.int64)

    def phases(self, graph: Any, state: Any, first: int = 0) -> Iterator[Program]:
        yield from ()


def _one() -> Any:
    return 1


def _made(base: type[Program], words: dict[str, Any]) -> Program:
    return type("Mine", (base,), words)()


ALL = {"combine": "all", "everywhere": True}


@pytest.mark.parametrize(
    ("base", "words", "message"),
    [
        (Plain, {"max_iter": 3.5}, r"max_iter is 3.5; it must be a whole number of at least 0"),
        (Plain, {"everywhere": True, "active": lambda value: True}, r"has active\(\), which would never be run"),
        (
            Plain,
            {"everywhere": True, "priority": lambda value: 1.0, "bucket": 1.0},
            r"has priority\(\), which would never",
        ),
        (Plain, {**ALL, "active": lambda value: True}, r"has active\(\), which would never be run"),
        (Plain, {**ALL, "early_exit": True}, "early_exit = True, with which a vertex takes the first message"),
        (Plain, {**ALL, "self_combining": True}, "whole rows have no combiner"),
        (Plain, {"early_exit": True}, "early_exit = True, with which"),
        (
            Plain,
            {"edge": lambda value, weight: value},
            "reads 'weight' and would always get 1: set needs_weights = True",
        ),
        (Plain, {"active": lambda old_fixed: True}, "reads 'old_fixed', and 'fixed' is constant"),
        (Plain, {"active": lambda old_pair: True}, "reads 'old_pair', and 'pair' is constant"),
        (Plain, {"moved": Global(np.float64)(lambda old_value: 1.0)}, "set everywhere = True, or keep the earlier"),
        (Plain, {"edge": None, "corner": _one, "active": lambda value: True}, r"has active\(\), which would never"),
        (Plain, {"edge": None, "corner": _one, "max_iter": 2}, "meets triangles has no iterations"),
        (Plain, {"edge": None, "corner": _one, "done": lambda *_: True}, r"has done\(\)"),
        (WCC, {"edge": _one}, r"has edge\(\), which would never be run"),
        (WCC, {"vertex": _one}, r"has vertex\(\), which would never be run"),
        (WCC, {"cond": _one}, r"has cond\(\), which would never be run"),
        (WCC, {"max_iter": 1}, "links trees has no iterations"),
        (WCC, {"done": lambda *_: True}, r"has done\(\)"),
        (WCC, {"along": "in"}, "along = 'in' is read by nothing"),
        (WCC, {"total": Global(np.float64)(lambda component: 1.0)}, "has Globals"),
        (Plain, {"late": Field(np.int64, kept=False)}, r"Mine.late has kept = False, and only finish\(\)"),
        (Two, {"edge": _one}, r"has phases and edge\(\), which would never be run"),
        (Two, {"start": lambda *_: Start(everything=True)}, r"has phases and start\(\)"),
        (Two, {"instead": lambda *_: None}, r"has phases and instead\(\)"),
        (Two, {"combine": "sum"}, "has phases and combine = 'sum', which nothing reads"),
        (Two, {"bucket": 2.0}, "has phases and bucket = 2.0"),
        (Two, {"total": Global(np.float64)(lambda value: 1.0)}, "has phases and the Global"),
        (Plain, {"unsettled": lambda value, settled: value > settled}, r"has unsettled\(\), which needs priority\(\)"),
        (Reachability, {"other": Field(np.int64)}, "declare 'other' with constant=True"),
        (Plain, {"accumulator": "nothing"}, "accumulator is 'nothing', and must name a field"),
        (Plain, {"accumulator": "fixed"}, "accumulator is 'fixed', and must name a field that is a number and not"),
        (Plain, {"accumulator": "value"}, r"accumulator = 'value', which needs vertex\(\), cond\(\) and a combiner"),
        (
            BFSLevels,
            {"accumulator": "level", "combine": "sum", "early_exit": False, "visits_once": False},
            "needs vert",
        ),
        (BFSLevels, {"vertex": lambda incoming, is_active: incoming}, "vertices that got a message only"),
        (BFSLevels, {"self_combining": True}, "vertices that got a message only"),
        (Katz, {"send": None}, "reads 'sent', which is neither a field, a global"),
        (Plain, {**ALL, "accumulator": "value"}, r"accumulator = 'value', which needs vertex\(\) and a combiner of n"),
        (Katz, {"vertex": lambda katz, incoming: katz + incoming}, "reads 'katz', which takes the messages once send"),
        (Katz, {"edge": lambda sent, target_katz: sent}, "reads 'target_katz', which takes the messages once send"),
        (Katz, {"change": Global(np.float64)(lambda old_katz: old_katz)}, "reads 'old_katz', which takes the messages"),
        (Plain, {"everywhere": True, "vertex": lambda sent: sent}, "reads 'sent', which is neither a field, a global"),
        (Two, {"accumulator": "value"}, "has phases and accumulator = 'value', which nothing reads"),
        (WCC, {"accumulator": "component"}, "links trees, and accumulator = 'component' is read by nothing"),
    ],
)
def test_words_that_nothing_would_read_are_refused(base: type[Program], words: dict[str, Any], message: str) -> None:
    words = {**({"__init__": lambda self: None} if base in (Reachability, BFSLevels) else {}), **words}
    with pytest.raises(InputError, match=message):
        check_program(_made(base, words))


def test_messages_of_another_type_than_the_field_are_refused() -> None:
    with pytest.raises(InputError, match=r"message is float64, and 'reached'.* is uint32"):
        run(type("Mine", (Reachability,), {"message": np.float64})(0), in_memory(GRAPH))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"start": lambda *_: Start(active=np.array([1]), everything=True)}, "return one of them"),
        ({"start": lambda *_: Start()}, r"a Start\(\) without a frontier"),
        ({"everywhere": True, "start": lambda *_: Start(active=np.array([1]))}, "or leave everywhere out"),
        ({"priority": lambda value: value}, "no bucket, so that no vertex would wait"),
        ({"bucket": 2.0}, r"there is no priority\(\)"),
        ({"bucket": -1.0, "priority": lambda value: value}, "bucket is -1.0; it must be a number above 0"),
        ({"bucket": float("nan"), "priority": lambda value: value}, "bucket is nan"),
    ],
)
def test_a_first_frontier_that_would_not_run_is_refused(words: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(_made(Plain, words), in_memory(GRAPH), kernels="reference")


class Paths(Program):
    """Shortest paths as a phase."""

    distance = Field(np.uint32, fill=2**32 - 1)

    def phases(self, graph: Any, state: Any, first: int = 0) -> Iterator[Program]:
        yield SSSP(0)


def test_phases_that_would_be_other_programs_are_refused() -> None:
    far = EdgeList(3, np.array([0, 1]), np.array([1, 2]), np.array([2**32 - 1, 2**32 - 1], np.uint32))
    with pytest.raises(RunError, match=r"SSSP, a phase, ended with numbers that did not suffice.*WideSSSP"):
        run(Paths(), in_memory(far), kernels="reference")
    with pytest.raises(InputError, match="SSSP is FloatSSSP on this graph"):
        run(Paths(), in_memory(weighed(far, "float64")), kernels="reference")


def test_an_accumulator_begins_with_the_identity_and_holds_messages() -> None:
    with pytest.raises(InputError, match=r"level is 0 at first, .* 'min' begins with, 4294967295; give it that fill"):
        run(type("Mine", (BFSLevels,), {"level": Field(np.uint32)})(0), in_memory(GRAPH))
    with pytest.raises(InputError, match=r"message is float64, and 'level', .*\(accumulator\), is uint32"):
        run(type("Mine", (BFSLevels,), {"message": np.float64})(0), in_memory(GRAPH))
