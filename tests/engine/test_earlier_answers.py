"""Runs that begin from an earlier answer end with the answer of a run from the start; they say where they cannot."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from penstock.engine import append, compact, convert, extract, remove, run
from penstock.storage.base.errors import InputError
from support.covering import covering

WAYS: list[dict[str, Any]] = [{}, {"device": "emulated"}, {"kernels": "reference"}, {"threads": 1, "direct_io": True}]
PROGRAMS: dict[str, dict[str, Any]] = {
    "wcc": {},
    "sssp": {"source": 3},
    "pagerank": {"tol": 1e-7, "max_iter": 300},
}


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


def test_communities_begin_from_earlier_ones(tmp_path: Path) -> None:
    """Of about the modularity of a run from the start, which reads more edges; and whatever else changed."""
    random = np.random.default_rng(3)
    near = random.integers(0, 400, 6000)
    ends = np.stack([near, np.where(random.random(6000) < 0.8, near // 20 * 20 + random.integers(0, 20, 6000), 7)], 1)
    np.savetxt(tmp_path / "0.txt", 3 * ends[:5900], "%d")
    np.savetxt(tmp_path / "1.txt", 3 * ends[5900:] + 1, "%d")
    np.savetxt(tmp_path / "2.txt", 3 * ends[:20], "%d")
    convert(tmp_path / "0.txt", tmp_path / "g.h5", undirected=True)
    run("louvain", tmp_path / "g.h5").write(tmp_path / "a.h5")
    append(tmp_path / "g.h5", tmp_path / "1.txt")
    grown = remove(tmp_path / "g.h5", tmp_path / "2.txt")
    for way in WAYS[:2]:
        whole = run("louvain", grown, **way)
        found = run("louvain", grown, earlier=tmp_path / "a.h5", **way)
        assert found.measures["modularity"][-1] > whole.measures["modularity"][-1] - 0.01
        assert sum(one.edges for one in found.records) <= sum(one.edges for one in whole.records)
    with pytest.raises(InputError, match="louvain with directed begins from no earlier answer"):
        run("louvain", convert(tmp_path / "0.txt", tmp_path / "d.h5"), earlier=tmp_path / "a.h5", directed=True)


@pytest.mark.parametrize(("strings", "bipartite"), [(True, False), (True, True), (False, True)])
def test_ids_of_any_kind_are_found_again(
    strings: bool, bipartite: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    random, name = np.random.default_rng(5), "käse" if strings else ""
    for number, (count, most) in enumerate([(120, 150), (30, 170)]):
        pairs = random.integers(0, most, (count, 2)).tolist()
        pairs += [(v, 1) for v in range(3 * most)] if number == 0 else []
        (tmp_path / f"{number}.txt").write_text("".join(f"{name}{u} {name}{3 * v}\n" for u, v in pairs))
    options = {"bipartite": bipartite, "direction": "both", "renumber": True}
    convert(tmp_path / "0.txt", tmp_path / "g.h5", **options)
    for program in ("wcc", "sssp", "pagerank"):
        given = {"source": f"{'source:' if bipartite else ''}{name}3"} if program == "sssp" else {}
        run(program, tmp_path / "g.h5", **given).write(tmp_path / f"{program}.h5")
    grown = append(tmp_path / "g.h5", tmp_path / "1.txt")
    assert grown.out.splice is not None
    for program in ("wcc", "sssp", "pagerank"):
        given = {"source": f"{'source:' if bipartite else ''}{name}3"} if program == "sssp" else {}
        found, whole = (run(program, grown, **given, **more) for more in ({"earlier": tmp_path / f"{program}.h5"}, {}))
        for field, values in whole.fields.items():
            if values.dtype.kind in "iuf":
                assert np.allclose(found.fields[field], values, rtol=0, atol=1e-6), (program, field)
            else:
                assert np.array_equal(found.fields[field], values), (program, field)
    assert not caplog.messages


@pytest.mark.parametrize("program", ["wcc", "sssp"])
def test_what_an_answer_says_nothing_of_is_said(program: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.txt").write_text("0 1\n1 2\n2 3\n")
    (tmp_path / "b.txt").write_text("1 2\n")
    options = {} if program == "wcc" else {"source": 0}
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
        assert re.search(told, caplog.text)
        caplog.clear()
    if program != "wcc":
        run(program, after, earlier=tmp_path / "c.h5", source=1)
        assert "of other parameters" in caplog.text


def grown_path(folder: Path) -> tuple[Path, Path]:
    """A long path, and what is added to it."""
    (folder / "a.txt").write_text("".join(f"{v} {v + 1} 2\n" for v in range(400)))
    (folder / "b.txt").write_text("3 2 1\n")
    convert(folder / "a.txt", folder / "g.h5", undirected=True, weights=True)
    return folder / "g.h5", folder / "b.txt"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"source": 0, "max_iter": 1}, {"source": 0}),
        ({"source": np.arange(2000) // 50}, {"source": np.arange(2000) % 1500 // 50}),
        ({"source": iter([399])}, {"source": iter([0])}),
    ],
)
def test_distances_of_another_run_are_not_taken(
    before: dict[str, Any], after: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One that was stopped, and sources of which a part alone is printed, or that are given once."""
    graph, more = grown_path(tmp_path)
    run("sssp", graph, **before).write(tmp_path / "a.h5")
    append(graph, more)
    found = run("sssp", graph, **after, earlier=tmp_path / "a.h5").fields["distance"].tolist()
    again = after if not hasattr(after["source"], "__next__") else {"source": [0]}
    assert found == run("sssp", graph, **again).fields["distance"].tolist()
    assert "a run that did not end" in caplog.text


@pytest.mark.parametrize("saved", [False, True])
def test_a_part_of_a_grown_graph_is_another_graph(
    saved: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    graph, more = grown_path(tmp_path)
    run("wcc", graph).write(tmp_path / "a.h5")
    append(graph, more)
    part = extract(graph, tmp_path / "part.h5" if saved else None, vertices=[1, 2, 7, 8, 20])
    found = run("wcc", part, earlier=tmp_path / "a.h5").fields["component"].tolist()
    assert found == run("wcc", part).fields["component"].tolist()
    assert "is of another graph" in caplog.text


@pytest.mark.parametrize("program", PROGRAMS)
def test_runs_from_an_earlier_answer_keep_checkpoints(program: str, tmp_path: Path) -> None:
    graph, more = grown_path(tmp_path)
    options = PROGRAMS[program]
    run(program, graph, **options).write(tmp_path / "a.h5")
    append(graph, more)
    kept = {"checkpoint": tmp_path / "kept", "checkpoint_every": "1"}
    found = run(program, graph, earlier=tmp_path / "a.h5", **options, **kept)
    whole = run(program, graph, **options)
    for name, values in whole.fields.items():
        assert np.allclose(found.fields[name], values, rtol=0, atol=1e-6), name
