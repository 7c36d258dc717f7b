"""Which walks carry messages with the edges, against them, and both ways: the whole table."""

from __future__ import annotations

import pytest
from penstock.engine.resources.traversal import traversals

OUT, IN = "out", "in"


@pytest.mark.parametrize(
    ("along", "directed", "both_stored", "wanted"),
    [
        ("out", True, True, {"push": [("push", OUT)], "pull": [("pull", IN)]}),
        ("in", True, True, {"push": [("push", IN)], "pull": [("pull", OUT)]}),
        ("both", True, True, {"push": [("push", OUT), ("push", IN)], "pull": [("pull", IN), ("pull", OUT)]}),
        ("out", True, False, {"push": [("push", OUT)]}),
        ("in", True, False, {"pull": [("pull", OUT)]}),
        ("both", True, False, {"push": [("push", OUT), ("pull", OUT)]}),
        ("out", False, True, {"push": [("push", OUT)], "pull": [("pull", IN)]}),
        ("both", False, True, {"push": [("push", OUT)], "pull": [("pull", IN)]}),
    ],
)
def test_walks(along: str, directed: bool, both_stored: bool, wanted: dict[str, list[tuple[str, str]]]) -> None:
    found = traversals(along, directed=directed, both_stored=both_stored)
    assert {direction: [walk[:2] for walk in some] for direction, some in found.items()} == wanted


@pytest.mark.parametrize(
    ("along", "directed", "ways"),
    [("out", True, "forward"), ("in", True, "reverse"), ("both", True, "both"), ("in", False, "undirected")],
)
def test_a_list_is_pushed_along_in_one_walk(along: str, directed: bool, ways: str) -> None:
    found = traversals(along, directed=directed, both_stored=False, listed=True)
    assert found == {"push": (("push", "out", ways),)}
