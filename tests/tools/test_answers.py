"""Summaries look only at vertices that have a value; components are counted, not compared."""

import numpy as np
from penstock.tools.answers import Answer


def answer(best: list[tuple[int, object]] | None = None, **fields: np.ndarray) -> Answer:
    reached = {name: values != 4294967295 for name, values in fields.items()}
    return Answer(fields, reached, lambda count: (best or [])[:count])


def test_the_unreached_do_not_count() -> None:
    level = np.array([0, 4294967295, 2, 1, 2], np.uint32)
    parent = np.array([10, 4294967295, 13, 10, 13], np.uint32)
    found = answer(level=level, parent=parent)
    assert found.summary() == {
        "level": {"reached": 4, "min": 0, "max": 2},
        "parent": {"reached": 4},
    }
    assert found.lines() == [("level", "4 of 5 vertices, 0 to 2")]


def test_the_top_is_the_engines() -> None:
    found = answer([(12, 0), (14, 1)], level=np.array([0, 1]))
    assert found.top(1) == [{"vertex": 12, "level": 0}]
    assert found.top(0) == []


def test_components_are_counted_and_the_largest_named() -> None:
    found = answer(component=np.array([5, 5, 8, 5, 9, 9]))
    assert found.summary() == {"component": {"components": 3, "largest": 3}}
    assert found.top(2) == [{"component": 5, "vertices": 3}, {"component": 9, "vertices": 2}]
    assert found.lines() == [("component", "3 components, the largest of 3 vertices")]


def test_one_of_a_kind_is_singular() -> None:
    assert answer(color=np.zeros(4, int)).lines() == [("color", "1 color, the largest of 4 vertices")]


def test_flags_are_counted() -> None:
    found = answer(member=np.array([1, 0, 1], np.uint8))
    assert found.summary() == {"member": {"count": 2}}
    assert found.lines() == [("member", "2 of 3 vertices")]


def test_ranks_have_a_sum() -> None:
    found = answer(rank=np.array([0.25, 0.75]))
    assert found.summary()["rank"] == {"min": 0.25, "max": 0.75, "sum": 1.0}


def test_vectors_have_no_order() -> None:
    found = answer([(0, 1)], x=np.ones((2, 3)))
    assert found.top(1) == []
    assert found.summary()["x"]["sum"] == 6
    assert found.lines() == [("x", "3 numbers a vertex, 1 to 1")]
    assert answer(x=np.ones((0, 3))).lines() == [("x", "0 numbers a vertex")]


def test_empty_graphs_have_empty_answers() -> None:
    assert answer(rank=np.zeros(0)).summary() == {"rank": {}}
    assert answer(component=np.zeros(0, int)).summary()["component"] == {
        "components": 0,
        "largest": 0,
    }
