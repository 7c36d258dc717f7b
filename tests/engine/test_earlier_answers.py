"""Runs that begin from an earlier answer end with the answer of a run from the start; they say where they cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import append, compact, convert, remove, run
from support.covering import covering

WAYS: list[dict[str, Any]] = [{}, {"device": "emulated"}, {"kernels": "reference"}, {"threads": 1, "direct_io": True}]
PROGRAMS: dict[str, dict[str, Any]] = {"wcc": {}, "sssp": {"source": 3}, "pagerank": {"tol": 1e-7, "max_iter": 300}}


def edges(random: np.random.Generator, count: int, most: int) -> str:
    ends, weights = random.integers(0, most, (count, 2)).tolist(), random.integers(1, 9, count).tolist()
    return "3 3 1\n" + "".join(f"{3 * u} {3 * v} {w}\n" for (u, v), w in zip(ends, weights, strict=True))


@covering("program, way, undirected", PROGRAMS, range(len(WAYS)), [True, False], strength=2)
def test_answers_are_those_of_a_run_from_the_start(
    program: str, way: int, undirected: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Ids among the others come too, so that vertices are not in their order."""
    random = np.random.default_rng(way)
    shape = {"undirected": True} if undirected else {"direction": "both"}
    for number, (count, most) in enumerate([(150, 200), (20, 260), (20, 260)]):
        (tmp_path / f"{number}.txt").write_text(edges(random, count, most))
    convert(tmp_path / "0.txt", tmp_path / "g.h5", weights=True, **shape)
    options = PROGRAMS[program] | WAYS[way]
    run(program, tmp_path / "g.h5", **options).write(tmp_path / "a.h5")
    append(tmp_path / "g.h5", tmp_path / "1.txt")
    run(program, tmp_path / "g.h5", earlier=tmp_path / "a.h5", **options).write(tmp_path / "b.h5")
    grown = append(tmp_path / "g.h5", tmp_path / "2.txt")
    whole = run(program, grown, **options)
    for earlier in ("a.h5", "b.h5"):
        found = run(program, grown, earlier=tmp_path / earlier, **options)
        for name, values in whole.fields.items():
            assert np.allclose(found.fields[name], values, rtol=0, atol=1e-6), (earlier, name)
        assert len(found.records) <= len(whole.records)
        assert program != "wcc" or sum(record.edges for record in found.records) == 0
    assert not caplog.messages


@pytest.mark.parametrize("program", ["wcc", "sssp"])
def test_what_an_answer_says_nothing_of_is_said(program: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.txt").write_text("0 1\n1 2\n2 3\n")
    (tmp_path / "b.txt").write_text("1 2\n")
    options = {"source": 0} if program == "sssp" else {}
    field = {"wcc": "component", "sssp": "distance"}[program]
    convert(tmp_path / "a.txt", tmp_path / "g.h5", undirected=True)
    run(program, tmp_path / "g.h5", **options).write(tmp_path / "a.h5")
    (tmp_path / "c.txt").write_text("0 3\n")
    grown = append(tmp_path / "g.h5", tmp_path / "c.txt")
    run(program, grown, earlier=tmp_path / "a.h5", **options).write(tmp_path / "c.h5")
    assert not caplog.messages
    for change, told in ((remove, "before edges of .* were removed"), (compact, "that was compacted since")):
        after = remove(tmp_path / "g.h5", tmp_path / "b.txt") if change is remove else compact(tmp_path / "g.h5")
        found = run(program, after, earlier=tmp_path / "c.h5", **options).fields[field].tolist()
        assert found == run(program, after, **options).fields[field].tolist()
        assert len(caplog.messages) == 1
        caplog.clear()
        assert told
    if program == "sssp":
        run(program, after, earlier=tmp_path / "c.h5", source=1)
        assert "of other parameters" in caplog.text
