"""`penstock.run`, `penstock.convert`: their types, and how far they are."""

from __future__ import annotations

import ast
from pathlib import Path

import penstock
import pytest
from penstock.engine.state.records import RunProgress
from penstock.storage.base.errors import InputError
from penstock.storage.convert.sort.options import ConvertProgress
from penstock.tools.base.progress import ProgressBars
from support import typed_convert, typed_run
from support.source_code import ROOT

PAIRS = [(0, 1), (1, 2), (2, 3)]


def test_the_types_are_those_of_the_programs() -> None:
    """If not: .venv/bin/python tests/support/made_pages.py"""
    kept = (ROOT / "tools/python/typed_run.pyi").read_text(encoding="utf-8")
    assert ast.dump(ast.parse(kept)) == ast.dump(ast.parse(typed_run.text()))


def test_the_types_of_convert_are_the_options_of_the_command(tmp_path: Path) -> None:
    """If not: .venv/bin/python tests/support/made_pages.py"""
    kept = (ROOT / "tools/python/typed_convert.pyi").read_text(encoding="utf-8")
    assert ast.dump(ast.parse(kept)) == ast.dump(ast.parse(typed_convert.text()))
    (tmp_path / "e.csv").write_text("source,target\n0,1\n")
    given = {
        name: ast.literal_eval(typed_convert.default_of(name, one)) for name, one in typed_convert.options().items()
    }
    assert {"layout", "vertices", "stripe", "columns", "format"} <= set(given)
    assert not {"json", "quiet", "log_every", "any_suffix"} & set(given)
    assert penstock.convert(tmp_path / "e.csv", tmp_path / "g.h5", **given).edges == 1


def test_a_function_is_told_of_every_iteration() -> None:
    seen: list[RunProgress] = []
    result = penstock.run("bfs", penstock.from_edges(PAIRS), source=0, progress=seen.append)
    assert [now.iteration for now in seen] == list(range(1, result.iterations + 1))
    assert [now.vertices for now in seen] == [1] * len(seen)
    assert (seen[0].program, seen[0].max_iter) == ("BFS", None)
    assert result.to_dict("level") == {0: 0, 1: 1, 2: 2, 3: 3}
    limited: list[RunProgress] = []
    penstock.run("pagerank", penstock.from_edges(PAIRS), tol=0, max_iter=3, progress=limited.append)
    assert [(now.iteration, now.max_iter) for now in limited] == [(1, 3), (2, 3), (3, 3)]


def test_a_function_may_be_an_object_that_is_false() -> None:
    class Seen(list[int]):
        def __call__(self, now: RunProgress) -> None:
            self.append(now.iteration)

    seen = Seen()
    assert penstock.run("bfs", penstock.from_edges(PAIRS), source=0, progress=seen).iterations == len(seen) > 0


def test_what_it_raises_ends_the_run() -> None:
    def stop(now: RunProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        penstock.run("bfs", penstock.from_edges(PAIRS), source=0, progress=stop)


def test_a_bar_is_shown(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes stderr for a terminal
    penstock.run("bfs", penstock.from_edges(PAIRS), source=0, progress=True)
    printed = capfd.readouterr()
    assert "BFS: 1 vertices active" in printed.err
    assert printed.out == ""


def test_conversions_are_told_too(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("source,target\n0,1\n1,2\n")
    seen: list[ConvertProgress] = []
    graph = penstock.convert(tmp_path / "e.csv", tmp_path / "g.h5", progress=seen.append)
    assert graph.vertices == 3
    assert {now.stage for now in seen} >= {"read"}
    moved: list[tuple[object, ...]] = []

    class Bars(ProgressBars):
        def __call__(self, stage: str, done: float, total: float | None, unit: str, note: str = "") -> None:
            moved.append((stage, unit))

    for now in (*seen, ConvertProgress("out", 1, 2, 2)):
        Bars().convert(now.stage, now.done, now.total)
    assert ("reading", "bytes") in moved
    assert ("writing out-edges", "edges") in moved


@pytest.mark.parametrize("call", ["run", "convert"])
def test_what_is_no_progress_is_refused(call: str) -> None:
    with pytest.raises(InputError, match="progress is 3; give True"):
        getattr(penstock, call)("bfs", "g.h5", progress=3)


def test_the_engine_takes_a_function_only() -> None:
    from penstock.engine import run

    with pytest.raises(InputError, match=r"call penstock\.run, which shows a bar"):
        run("bfs", penstock.from_edges(PAIRS), source=0, progress=True)  # type: ignore[arg-type]
