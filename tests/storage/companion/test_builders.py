"""What a process asks for is compiled by others, for each kind of processor, and counted where it cannot be."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from numba import types
from penstock.storage.base.missing_code import tell_asked, tell_missing
from penstock.storage.base.user_cache import level_environment
from penstock.storage.companion import process
from penstock.storage.companion.builders import Builders
from penstock.storage.encoding.unpack import unpack
from support.faults import python

TYPES = (types.Array(types.uint32, 1, "C"), types.Array(types.uint32, 1, "C"))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where kernels are kept."""
    process.end()
    yield tmp_path / "penstock/kernels"
    process.end()


def builders(
    tmp_path: Path, changes: dict[str, dict[str, Any]] | None = None, kinds: Sequence[str] = ("own", "level")
) -> Builders:
    """Those of this processor, which is this process's, of a level, and of a GPU where it has changes."""
    own = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    environments = {"own": own, "level": own | level_environment("x86-64-v3")} | dict.fromkeys(changes or {}, own)
    return Builders(tmp_path, environments, "own", [*kinds], changes or {})


FIRST = """
from penstock.storage.base import missing_code
from penstock.storage.companion import process
put = lambda *told: False
process.replace(put, None)
process.install()  # by what opens the first graph
assert missing_code._missing is put
process.replace(None, None)
assert missing_code._missing is process._missing
"""


def test_what_is_put_in_place_of_a_companion_stays_when_a_graph_is_opened() -> None:
    child = python(FIRST)
    assert child.returncode == 0, child.stderr


@pytest.mark.slow
def test_each_kind_gets_a_kernel_of_its_own(tmp_path: Path, folder: Path) -> None:
    origin = unpack._origin  # type: ignore[attr-defined]
    with builders(tmp_path) as made:
        assert tell_missing("unpack", "entry", origin, TYPES)
        (own,) = folder.iterdir()
        for _ in range(2):
            tell_asked("unpack", origin, TYPES)
        made.finish()
        assert made.counts == (2, 2)
        assert made.last == "unpack"
    assert len(list(folder.glob("*.kernel"))) == 2
    assert own in folder.iterdir()
    assert (made.unknown, made.failed) == (set(), set())
    assert not list(tmp_path.glob(".companion*"))


@pytest.mark.slow
def test_jobs_of_runs_are_done_for_all_kinds_and_what_fails_is_named(tmp_path: Path, folder: Path) -> None:
    job = {"target": ["builtins", "print"], "packed": False, "counts": False}
    with builders(tmp_path, {"gpu": {"target": ["builtins", "nothing"]}}) as made:
        for source in range(3):
            process.offer(partial(dict, job, program=["", "", "BFS", {"source": source}]), 0)
        made.finish()
        assert made.counts == (6, 6)
        assert all(json.loads(one)["counts"] for one in made._jobs)  # as of graphs of many chunks
    assert made.failed == {"BFS for gpu"}


@pytest.mark.slow
def test_a_process_that_has_grown_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[process.Companion] = []

    def begin(*given: Any) -> process.Companion:
        begun.append(process.Companion(*given))
        return begun[-1]

    monkeypatch.setattr("penstock.storage.companion.builders.MOST_BYTES", 0)
    monkeypatch.setattr("penstock.storage.companion.builders.Companion", begin)
    with builders(tmp_path, kinds=("own",)) as made:
        process.offer(lambda: {"target": ["builtins", "print"], "packed": False, "program": ["", "", "BFS", {}]}, 0)
        made.finish()
        assert made.counts == (2, 2)
    assert len(begun) == 2
    assert all(one.process.returncode is not None for one in begun)
    assert made.failed == set()
    assert not list(tmp_path.glob(".companion*"))


def test_what_no_other_process_finds_is_noted(tmp_path: Path) -> None:
    def none() -> dict[str, Any]:
        raise TypeError("it is of a notebook")

    with builders(tmp_path) as made:
        tell_asked("one", None, TYPES)
        tell_asked("another", none, TYPES)
        process.offer(none, 0)
        process.offer(lambda: {"listed": []}, 0)  # of a conversion, which asks for all of it
        assert not tell_missing("another", "entry", none, TYPES)
        assert not tell_missing("one", "entry", None, TYPES)
        made.finish()
    assert made.unknown == {f"a function of arguments {TYPES} has no origin", "it is of a notebook"}
    assert made.counts == (0, 0)
