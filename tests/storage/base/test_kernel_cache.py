"""Compiled kernels are kept in the user's cache: found again, never stale, nowhere else, and not needed."""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import pytest
from numba.core.bytecode import FunctionIdentity
from penstock.storage.base import kernel_cache
from penstock.storage.base.errors import InputError
from penstock.storage.base.kernel_cache import kept, source_digest
from penstock.storage.base.user_cache import kernel_folder, user_cache
from support.faults import python
from support.source_code import FLOORS, ROOT

CALLER = "from penstock.lower_trial import FACTOR, lower\ndef upper(x):\n    return lower(x) * FACTOR\n"
LOWER = "FACTOR = 2\ndef lower(x):\n    return x + 1\n"
Load = Callable[[str, str], ModuleType]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return kernel_folder()


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Make a module of ours from text, each time in a file of its own."""
    count = 0

    def make(name: str, text: str) -> ModuleType:
        nonlocal count
        count += 1
        path = tmp_path / f"{name}{count}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(f"penstock.{name}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        return module

    kernel_cache._say.cache_clear()
    yield make
    kernel_cache._say.cache_clear()


def compiled(load: Load, lower: str = LOWER, upper: str = CALLER) -> Any:
    below = load("lower_trial", lower)
    below.lower = numba.njit(below.lower)  # type: ignore[attr-defined]
    return kept(numba.njit(load("upper_trial", upper).upper))


def test_what_was_compiled_is_found_again(folder: Path, load: Load) -> None:
    first, again = compiled(load), compiled(load)
    assert (first(3), again(3)) == (8, 8)
    assert (sum(first.stats.cache_hits.values()), sum(again.stats.cache_hits.values())) == (0, 1)
    (entry,) = folder.iterdir()
    entry.write_bytes(entry.read_bytes()[:-1])  # torn: compiled anew
    third = compiled(load)
    assert third(3) == 8
    assert not third.stats.cache_hits


@pytest.mark.parametrize(
    ("lower", "upper", "value"),
    [
        (LOWER.replace("+ 1", "+ 5"), CALLER, 16),  # what it calls, in another file
        (LOWER.replace("2", "3"), CALLER, 12),  # a constant from another file
        (LOWER, CALLER.replace("*", "+"), 6),
    ],
)
def test_stale_code_is_never_found(folder: Path, load: Load, lower: str, upper: str, value: int) -> None:
    assert compiled(load)(3) == 8
    assert compiled(load, lower, upper)(3) == value


def test_types_options_and_versions_are_in_the_name(folder: Path, load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(load)(3)
    assert compiled(load)(3.0) == 8.0
    plain = load("upper_trial", CALLER).upper
    kept(numba.njit(error_model="numpy")(plain))(3)
    monkeypatch.setattr(kernel_cache, "versions", lambda: ("another",))
    compiled(load)(3)
    assert len(list(folder.iterdir())) == 4


def test_no_other_process_gives_machine_code_the_same_names() -> None:
    """The linker takes the first of two weak functions of a name, whichever entry needs the other."""
    first = next(FunctionIdentity._unique_ids)
    kernel_cache.number_apart()
    assert abs(next(FunctionIdentity._unique_ids) - first) > 1 << 20
    assert first > 1 << 20, "this process has not numbered its functions apart"


def test_sources_are_followed_through_intrinsics(load: Load) -> None:
    from penstock.storage.encoding import simd, unpack

    paths = set()
    kernel_cache._file_digest.cache_clear()
    original = kernel_cache._file_digest
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_cache, "_file_digest", lambda path: (paths.add(path), original(path))[1])
        functions = [value for value in vars(unpack).values() if hasattr(value, "py_func")]
        assert len({source_digest(function) for function in functions}) == len(functions)
    assert {unpack.__file__, simd.__file__} <= paths


def pickled(path: Path) -> bytes:
    """A pickle that makes a file when it is loaded."""

    class Attack:
        def __reduce__(self) -> tuple[object, tuple[Path]]:
            return Path.touch, (path,)

    return pickle.dumps(Attack())


def test_a_pickle_in_the_place_of_an_entry_is_never_loaded(folder: Path, load: Load, tmp_path: Path) -> None:
    """Not even one that is whole, and ours: what is read is data and machine code."""
    assert compiled(load)(3) == 8
    (entry,) = folder.iterdir()
    content = pickled(tmp_path / "executed")
    entry.write_bytes(hashlib.sha256(content).digest() + content)
    again = compiled(load)
    assert again(3) == 8
    assert not again.stats.cache_hits
    assert not (tmp_path / "executed").exists()


def test_a_folder_that_others_can_write_is_neither_read_nor_written(
    tmp_path: Path, folder: Path, load: Load, caplog: pytest.LogCaptureFixture
) -> None:
    assert compiled(load)(3) == 8
    folder.chmod(0o777)
    before = [(path.name, path.stat().st_mtime_ns) for path in folder.iterdir()]
    with caplog.at_level(logging.WARNING, "penstock.storage.base.kernel_cache"):
        anew, again = compiled(load), compiled(load)
        assert (anew(3), again(3), compiled(load)(3.0)) == (8, 8, 8.0)
    assert not anew.stats.cache_hits
    assert again.stats.cache_hits
    assert [(path.name, path.stat().st_mtime_ns) for path in folder.iterdir()] == before
    private = tmp_path / f"penstock-{os.geteuid()}" / "kernels"
    assert len(list(private.iterdir())) == 2
    (record,) = caplog.records
    assert str(private) in record.message
    assert f"chmod go-w {folder}" in record.message


@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_folder_that_cannot_be_made_is_said_once(
    elsewhere: bool, tmp_path: Path, load: Load, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path if elsewhere else tmp_path / "file"))
    with caplog.at_level(logging.WARNING, "penstock.storage.base.kernel_cache"):
        assert compiled(load)(3) == 8
        assert compiled(load)(3.0) == 8.0
    assert [str(tmp_path / "file") in record.message for record in caplog.records] == [True]
    assert ("are not kept" in caplog.text) is not elsewhere
    assert "XDG_CACHE_HOME" in caplog.text


def test_where_the_folder_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert (user_cache(), kernel_folder()) == (tmp_path / "x/penstock", tmp_path / "x/penstock/kernels")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "n"))
    assert (user_cache(), kernel_folder()) == (tmp_path / "x/penstock", tmp_path / "n/penstock/kernels")
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "h"))
    assert user_cache() == tmp_path / "h/.cache/penstock"

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(InputError, match="XDG_CACHE_HOME"):
        user_cache()


KERNELS = """
import numpy as np
from penstock.engine.kernels.host.jit import JitKernel
from penstock.storage.format.index import _starts
out = np.zeros(2, np.int64)
for function in (_starts, JitKernel(_starts.py_func, "trial")):
    function(np.array([7]), np.array([0, 2, 3], np.uint32), 4, 0, out)
print(*out)
"""


def test_nothing_is_kept_beside_the_sources(folder: Path) -> None:
    """pip would leave it there, and it would hide the next installation."""

    def beside() -> set[Path]:
        return {path for floor in FLOORS for path in (ROOT / floor).rglob("*") if path.suffix != ".pyc"}

    before = beside()
    child = python(KERNELS)
    assert (child.returncode, child.stdout) == (0, "7 9\n"), child.stderr
    assert beside() == before
    assert len(list(folder.iterdir())) == 2
