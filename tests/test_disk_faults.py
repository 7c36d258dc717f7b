"""Whatever a disk does, a run ends in the right answer or in one error that names the file.

Reads that fail, end early, come in pieces or crawl; bits that flip; files cut short: each injected
into whole runs of every program, which must neither hang, nor leave threads, nor answer wrongly.
"""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from penstock.engine import Graph, run
from penstock.storage.base.errors import InputError, PenstockError, RunError
from support.covering import covering
from support.faults import break_disk, cut_short, flip_bit
from support.graphs import on_disk, shape
from support.program_cases import PROGRAMS, check, program_of

EDGES = shape("skewed", weights="uint8")
pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A graph of a good many chunks in both directions."""
    file = tmp_path / "faulty.h5"
    on_disk(EDGES, file)
    return file


def attempt(name: str, path: Path) -> PenstockError | None:
    """Open, run and check; the error if there was one. Fails for a wrong answer or a thread left behind."""
    before = threading.active_count()
    try:
        result = run(program_of(name, EDGES), Graph.open(path))
    except PenstockError as error:
        return error
    finally:
        assert threading.active_count() <= before, "a thread was left behind"
    check(name, EDGES, result.fields)
    return None


@covering("name, first, kind", PROGRAMS, (0, 1, 5), ("eio", "end"))
def test_a_dead_disk_is_an_error(name: str, first: int, kind: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From read number `first` on, nothing can be read; afterwards the same graph answers well."""
    with monkeypatch.context() as patch:
        disk = break_disk(patch, kind, lambda number: number >= first)
        error = attempt(name, path)
    assert disk.reads > 0
    assert (error is not None) == (disk.broken > 0)
    assert error is None or (isinstance(error, RunError) and "faulty.h5" in str(error))
    assert attempt(name, path) is None


@covering("name, poor", PROGRAMS, (("hiccup", 3), ("short", 1), ("short", 2), ("slow", 4)), strength=1)
def test_a_poor_disk_gives_the_right_answer(
    name: str, poor: tuple[str, int], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Single errors are tried again, pieces are put together, delays are waited for."""
    kind, every = poor
    disk = break_disk(monkeypatch, kind, lambda number: number % every == every - 1)
    assert attempt(name, path) is None
    assert disk.reads > 0


def complaints(name: str, path: Path, places: list[int]) -> list[PenstockError]:
    """The errors of runs with one bit flipped at each of `places`."""
    whole = path.read_bytes()
    found = []
    for place in places:
        path.write_bytes(whole)
        flip_bit(path, place, bit=place % 8)
        error = attempt(name, path)
        if error is not None:
            assert path.name in str(error), f"byte {place}: {error}"
            found.append(error)
    return found


@pytest.mark.parametrize("flips", [20, pytest.param(200, marks=pytest.mark.full)])
@pytest.mark.parametrize("name", ["sssp", "pagerank"])
def test_a_flipped_bit_never_changes_an_answer(name: str, flips: int, path: Path) -> None:
    size = path.stat().st_size
    assert complaints(name, path, np.random.default_rng(5).integers(0, size, flips).tolist())


@pytest.mark.parametrize("apart", [2000, pytest.param(600, marks=pytest.mark.full)])
def test_a_flipped_bit_in_an_adjacency_names_the_chunk(apart: int, path: Path) -> None:
    places = list(range(0, path.stat().st_size, apart))
    found = complaints("pagerank", path, places)
    assert any(isinstance(error, RunError) and "chunk" in str(error) for error in found)


def test_a_truncated_file_is_refused(path: Path) -> None:
    whole = path.read_bytes()
    for size in np.linspace(0, len(whole) - 1, 20).astype(int).tolist():
        path.write_bytes(whole)
        cut_short(path, size)
        with pytest.raises(InputError, match=path.name):
            Graph.open(path)
