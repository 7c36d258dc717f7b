"""Levels without parents: those that a search with parents has, in every order of vertices and on every device."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import Graph, Program, run
from penstock.engine.kernels.cuda import driver as seam
from penstock.engine.planning.requirements import RunSetting, planned, requirements_within
from penstock.engine.program.program import fields_of
from penstock.engine.programs.bfs import BFS, BFSLevels
from penstock.engine.resources.config import Config
from penstock.engine.state.result import Result
from penstock.storage.base.errors import BudgetError, RunError
from penstock.storage.checkpoint.state_pages import PagedValues
from penstock.tools.run.result_summary import ResultSummary
from support import catalogue_oracles as right
from support.covering import covering
from support.graphs import in_memory, on_disk, skewed
from support.oracles import EdgeList

WAYS: list[dict[str, Any]] = [
    {"kernels": "reference", "direction": "push"},
    {"kernels": "reference", "direction": "pull"},
    {},
    {"direction": "push"},
    {"direction": "pull"},
    pytest.param(
        {"device": "emulated", "kernels": "cuda"},
        marks=pytest.mark.skipif(not seam.SIMULATED, reason="there is a device: tests/gpu"),
    ),
]


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_levels_alone_are_the_levels(way: dict[str, Any], directed: bool) -> None:
    edges = EdgeList(200, *skewed(200, 500, 3), None, directed)
    result = run(BFS([5, 190], parents=False), in_memory(edges), **way)
    assert list(result.fields) == ["level"]
    levels = np.where(result.fields["level"] == 2**32 - 1, right.UNREACHED, result.fields["level"].astype(np.int64))
    assert np.array_equal(levels, right.levels(edges, [5, 190]))


def test_levels_alone_need_no_order(tmp_path: Path) -> None:
    """Where a search for parents reads whole rows, as ids have another order, one for levels leaves them early."""
    edges = EdgeList(70, *skewed(70, 200, 3), None, False)
    original = np.random.default_rng(0).permutation(70).astype(np.uint64)
    graph = on_disk(edges, tmp_path / "graph.h5", original=original)
    source = int(original[5])
    assert not BFS(source).form(graph, "auto").early_exit
    levels = BFS(source, parents=False).form(graph, "auto")
    assert isinstance(levels, BFSLevels)
    assert levels.early_exit
    assert run(BFS(source, parents=False), graph).to_dict() == run(BFS(source), graph).to_dict("level")
    for narrow in widths(BFS(source), graph)[1:]:
        assert run(narrow, graph).columns().keys() == run(BFS(source), graph).columns().keys()
        for field in ("level", "parent"):
            assert run(narrow, graph).to_dict(field) == run(BFS(source), graph).to_dict(field)


def test_levels_alone_take_less_memory() -> None:
    graph = in_memory(EdgeList(1 << 16, *skewed(1 << 16, 1000, 3), None, False))
    forms = [BFS(5, parents=parents).form(graph, "auto") for parents in (True, False)]
    taken = [requirements_within(graph, program, RunSetting(Config()))[1].needs.state_bytes for program in forms]
    assert taken[0] - taken[1] == 4 << 16


def widths(search: BFS, graph: Graph) -> list[Program]:
    """The search as it is formed, and with levels of a byte."""
    found: list[Program] = [search.form(graph, "auto")]
    while (lighter := found[-1].lighter(graph)) is not None:
        found.append(lighter)
    return found


def level_dtypes(programs: list[Program]) -> list[str]:
    return [np.dtype(fields_of(one)["level"].dtype).name for one in programs]  # type: ignore[arg-type]


def deep_graph(vertices: int = 700) -> Graph:
    """A path, so that levels are as many as vertices."""
    ahead = np.arange(vertices - 1)
    return in_memory(EdgeList(vertices, ahead, ahead + 1, None, True))


def assert_alike(result: Result, wide: Result) -> None:
    """That two answers are the same however they are asked."""
    assert not isinstance(result.stored["level"], np.ndarray)
    assert {name: values.dtype for name, values in result.fields.items()} == {
        name: values.dtype for name, values in wide.fields.items()
    }
    assert all(np.array_equal(result.fields[name], values) for name, values in wide.fields.items())
    assert result.to_dict() == wide.to_dict()
    assert [result.top(9), result.top(9, smallest=False)] == [wide.top(9), wide.top(9, smallest=False)]
    assert repr(result.columns()) == repr(wide.columns())
    assert np.array_equal(result.reached("level"), wide.reached("level"))
    assert ResultSummary(result).fields == ResultSummary(wide).fields
    assert result.converged == wide.converged
    assert len(result.records) == len(wide.records) or wide.program.bounded  # many run together, past their end
    assert result.program.watched == wide.program.watched


@covering("way, parents", WAYS[:-1], (True, False), strength=1)
def test_narrow_levels_are_those_of_the_answer(way: dict[str, Any], parents: bool) -> None:
    edges = EdgeList(200, *skewed(200, 500, 3), None, False)
    graph = in_memory(edges)
    wide, narrow = [run(one, graph, **way) for one in widths(BFS([5, 190], parents=parents), graph)]
    assert_alike(narrow, wide)


ENDS: list[dict[str, Any]] = [
    {},
    *({"target": target} for target in (20, 253, 254, 600, [20, 600], [20, 699])),
    *({"cutoff": cutoff} for cutoff in (253, 253.5, 254, 300, 506, 507)),
]


@pytest.mark.parametrize("more", ENDS, ids=repr)
def test_a_search_of_more_levels_than_a_byte_has_goes_in_rounds(more: dict[str, Any]) -> None:
    graph = deep_graph()
    for parents in (True, False):
        wide, narrow = [run(one, graph) for one in widths(BFS(0, parents=parents, **more), graph)]
        assert_alike(narrow, wide)
        assert isinstance(narrow.stored["level"], PagedValues) == (
            more.get("cutoff", 600) > 253 and more.get("target") not in (20, 253)
        )
        if parents:
            assert narrow.path(600) == wide.path(600)


def test_rounds_go_on_from_all_that_the_last_level_has() -> None:
    """A grid, to the reference and by both directions; vertices in another order than their ids."""
    across = np.arange(260 * 5).reshape(260, 5)
    ends = [(across[:-1], across[1:]), (across[:, :-1], across[:, 1:])]
    sources, targets = (np.concatenate([pair[side].ravel() for pair in ends]) for side in (0, 1))
    edges = EdgeList(across.size, sources, targets, None, False)
    graph = in_memory(edges)
    wide, narrow = widths(BFS([3, 4]), graph)
    expected = run(wide, graph)
    assert np.array_equal(expected.fields["level"], right.levels(edges, [3, 4]))
    for way in ({"kernels": "reference", "direction": "push"}, {"direction": "pull"}, {}):
        assert_alike(run(narrow, graph, **way), run(wide, graph, **way))


@pytest.mark.usefixtures("unfused")
def test_rounds_give_parents_by_original_ids(tmp_path: Path) -> None:
    ahead = np.arange(599)
    original = np.random.default_rng(0).permutation(600).astype(np.uint64)
    graph = on_disk(EdgeList(600, ahead, ahead + 1, None, False), tmp_path / "graph.h5", original=original)
    wide, narrow = [run(one, graph) for one in widths(BFS(int(original[0])), graph)]
    assert_alike(narrow, wide)


def test_iterations_that_the_user_limits_are_as_many() -> None:
    graph = deep_graph()
    for most in (100, 253, 254, 300, 506):
        limited = BFS(0)
        limited.max_iter = most
        wide, narrow = [run(one, graph) for one in widths(limited, graph)]
        assert_alike(narrow, wide)
        assert int(wide.fields["level"][most]) == most
        assert not wide.converged


def test_levels_are_as_narrow_as_memory_asks_for() -> None:
    graph = deep_graph(1 << 16)
    programs = widths(BFS(0, parents=False), graph)
    assert level_dtypes(programs) == ["uint32", "uint8"]
    fixed = [requirements_within(graph, one, RunSetting(Config(direction="push")))[1].needs.fixed for one in programs]
    assert fixed[0] - fixed[1] == 3 << 16
    for size, program in zip(fixed, programs, strict=True):
        setting = RunSetting(Config(direction="push", host_memory=size))
        assert level_dtypes([planned(graph, BFS(0, parents=False), setting)[0]]) == level_dtypes([program])
        assert level_dtypes([planned(graph, BFS(0, parents=False), setting, lambda steps: 1)[0]]) == ["uint8"]
    of_ranks = requirements_within(graph, programs[1], RunSetting(Config(direction="push"), ranks=2))[1].needs.fixed
    setting = RunSetting(Config(direction="push", host_memory=of_ranks), ranks=2)
    assert level_dtypes([planned(graph, BFS(0, parents=False), setting)[0]]) == ["uint8"]
    with pytest.raises(BudgetError):
        planned(graph, BFS(0, parents=False), replace(setting, mixed=True))
    for others in ({"checkpoints": True}, {"device_bytes": fixed[-1]}):
        with pytest.raises(BudgetError):
            planned(graph, BFS(0, parents=False), RunSetting(Config(direction="push", host_memory=fixed[-1]), **others))


def test_a_deep_search_ends_in_the_least_budget_that_is_named(tmp_path: Path) -> None:
    ahead = np.arange(999)
    graph = on_disk(EdgeList(1000, ahead, ahead + 1, None, False), tmp_path / "graph.h5")
    for search in (BFS(0, parents=False), BFS(0)):
        with pytest.raises(BudgetError) as refused:
            run(search, graph, host_memory=1 << 20)
        least = refused.value.least_mib << 20
        assert np.array_equal(run(search, graph, host_memory=least).fields["level"], np.arange(1000))


def test_a_folder_without_room_for_deep_levels_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    graph = deep_graph()
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(RunError, match=r"the file for vertex state needs 4\.0 KiB.*No space left.*more memory"):
        run(widths(BFS(0), graph)[1], graph)


def test_a_search_of_another_class_has_levels_as_wide_as_it_says() -> None:
    class Mine(BFS):
        """A user's."""

    assert Mine(0).lighter(deep_graph()) is None
