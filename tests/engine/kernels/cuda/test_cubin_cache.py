"""Machine code is compiled once for what it depends on, kept, and compiled anew when it is damaged or refused."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.types import BaseTuple, float64, int64
from penstock.engine.kernels.cuda import cubin_cache
from penstock.engine.kernels.cuda.driver import kernel
from penstock.engine.program.bindings import bind
from penstock.engine.programs.bfs import BFS
from penstock.engine.programs.sssp import SSSP
from penstock.storage.base.user_cache import kernel_folder

TYPES = ("array(uint32, 1d, C)", "int64")
PLACE = (9, 0)


def kernel_of(edge: Callable[..., Any], factor: int = 2) -> Callable[..., Any]:
    """A kernel closed over an author's function and a number."""

    def kernel(values):  # type: ignore[no-untyped-def]
        values[0] = edge(values[1]) * factor

    return kernel


def double(value):  # type: ignore[no-untyped-def]
    return value + value


def triple(value):  # type: ignore[no-untyped-def]
    return value + value + value


class Compiler:
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self) -> bytes:
        self.times += 1
        return b"kernel_%d\0code" % self.times


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where code is kept, for once: a folder that need not exist."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    return kernel_folder()


def test_it_is_compiled_once(folder: Path) -> None:
    compiler = Compiler()
    texts = {cubin_cache.cubin_of(kernel_of(double), TYPES, PLACE, compiler) for _ in range(3)}
    assert (compiler.times, texts) == (1, {b"kernel_1\0code"})


def test_a_damaged_entry_is_compiled_anew(folder: Path) -> None:
    compiler = Compiler()
    cubin_cache.cubin_of(kernel_of(double), TYPES, PLACE, compiler)
    (entry,) = folder.iterdir()
    entry.write_bytes(entry.read_bytes()[:-3] + b"xyz")
    assert cubin_cache.cubin_of(kernel_of(double), TYPES, PLACE, compiler).startswith(b"kernel_2")
    assert cubin_cache.cubin_of(kernel_of(double), TYPES, PLACE, compiler).startswith(b"kernel_2")


def test_what_the_driver_refused_is_replaced(folder: Path) -> None:
    compiler = Compiler()
    cubin_cache.cubin_of(kernel_of(double), TYPES, PLACE, compiler)
    cubin_cache.renewed(kernel_of(double), TYPES, PLACE, compiler)
    assert cubin_cache.cubin_of(kernel_of(double), TYPES, PLACE, compiler).startswith(b"kernel_2")


def test_the_key_tells_everything_apart() -> None:
    key = cubin_cache.key_of(kernel_of(double), TYPES, PLACE)
    assert cubin_cache.key_of(kernel_of(double), TYPES, PLACE) == key
    others = [
        cubin_cache.key_of(kernel_of(triple), TYPES, PLACE),
        cubin_cache.key_of(kernel_of(double, 3), TYPES, PLACE),
        cubin_cache.key_of(kernel_of(double), TYPES[:1], PLACE),
        cubin_cache.key_of(kernel_of(double), TYPES, (9, 1)),
        *(cubin_cache.key_of(kernel(kernel_of(double), blocks).function, TYPES, PLACE) for blocks in (4, 5)),
    ]
    assert len({key, *others}) == 7


def test_the_key_tells_the_parts_of_named_tuples_apart() -> None:
    """Code that reads a part by its name finds it by its place."""
    kinds = [namedtuple("Pair", names) for names in (("one", "other"), ("other", "one"))]
    types = [BaseTuple.from_types([int64, float64], kind) for kind in kinds]
    inner = [BaseTuple.from_types([kind, int64]) for kind in types]
    keys = [cubin_cache.key_of(kernel_of(double), (kind,), PLACE) for kind in (*types, *inner)]
    assert len(set(keys)) == 4


def test_the_key_tells_versions_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    key = cubin_cache.key_of(kernel_of(double), TYPES, PLACE)
    monkeypatch.setattr(cubin_cache, "_versions", lambda: ("another",))
    assert cubin_cache.key_of(kernel_of(double), TYPES, PLACE) != key


def test_the_key_reaches_the_author() -> None:
    """Adapters call the author's functions by name, not from a closure."""

    class Wider(SSSP):
        def edge(distance, weight):  # type: ignore[no-untyped-def]
            return distance + weight + weight

    def edge_of(program: Any) -> Any:
        return bind(program, np.dtype(np.uint32), lambda function: function, plain=False).calls["edge"]

    keys = [cubin_cache.key_of(kernel_of(edge_of(program)), TYPES, PLACE) for program in (SSSP(0), SSSP(1), Wider(0))]
    assert keys[0] == keys[1] != keys[2]
    assert cubin_cache.key_of(kernel_of(edge_of(BFS(0))), TYPES, PLACE) not in keys
