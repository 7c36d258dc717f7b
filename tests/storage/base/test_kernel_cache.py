"""Compiled kernels are kept in the user's cache: found again, never stale, nowhere else, and not needed."""

from __future__ import annotations

import hashlib
import importlib
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
import numpy as np
import pytest
from numba.core.bytecode import FunctionIdentity
from numba.core.registry import cpu_target
from penstock.storage.base import function_digest, kernel_cache
from penstock.storage.base.errors import InputError
from penstock.storage.base.kernel_cache import kept
from penstock.storage.base.user_cache import kernel_folder, user_cache
from penstock.storage.encoding.bitpack import pack
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
    function_digest.file_digest.cache_clear()
    original = function_digest.file_digest
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(function_digest, "file_digest", lambda path: (paths.add(path), original(path))[1])
        functions = [value for value in vars(unpack).values() if hasattr(value, "py_func")]
        assert len({function_digest.function_digest(function) for function in functions}) == len(functions)
    assert {unpack.__file__, simd.__file__} <= paths


def test_a_module_that_has_two_names_makes_no_difference() -> None:
    """Numba's types are `numba.types` once `numba.cuda` has imported them so, before that `numba.core.types`."""
    digests = set()
    for module in ("numba.core.types", "numba.types"):
        made: dict[str, Any] = {"types": importlib.import_module(module), "__name__": "made"}
        exec("def width(): return types.int64", made)
        digests.add(function_digest.function_digest(made["width"]))
    assert len(digests) == 1


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
for function in (_starts.compiled, JitKernel(_starts.py_func, "trial")):
    function(np.array([7]), np.array([0, 2, 3], np.uint32), 4, 0, out)
print(*out)
"""


COMPUTED = """
import hashlib, sys
import numpy as np
from penstock.engine.kernels.host.jit import loop_kernel, use_workers
from penstock.storage.base.stage_clock import compile_times
from penstock.storage.encoding.unpack import unpack

@loop_kernel("trial", counted=True)
def steps(first, last, ids, sums):
    for i in range(first, last):
        sums[i] = np.sqrt(ids[i]) / (1 + ids[: 7 * i].astype(np.float64).sum())

use_workers(2)
ids, sums = np.empty(5000, np.uint32), np.empty(100)
assert unpack(np.load(sys.argv[1]), ids) == ids.max()
steps(2, 100, ids, sums)
print(hashlib.sha256(ids).hexdigest(), hashlib.sha256(sums).hexdigest())
print(compile_times().compiled)
"""


@pytest.fixture
def packed(tmp_path: Path) -> str:
    """A file with the payload of 5,000 ids; made before a test has a cache of its own."""
    words, ids = np.zeros(20000, np.uint32), np.sort(np.random.default_rng(1).integers(0, 1 << 30, 5000))
    np.save(tmp_path / "packed.npy", words[: pack(ids.astype(np.uint32), words, True)])
    return str(tmp_path / "packed.npy")


@pytest.mark.parametrize("level", ["x86-64-v3", pytest.param("x86-64-v4", marks=pytest.mark.full)])
def test_what_is_compiled_for_a_level_computes_the_same_in_a_process_for_this_processor(
    level: str, tmp_path: Path, packed: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing is kept for the processor itself; and only a process of the level makes entries for it."""
    processors = kernel_cache.processors(*cpu_target.target_context.codegen().magic_tuple())
    if level not in [name for _, name, *_ in processors]:
        pytest.skip("this processor is not of that level")
    answer, compiled = python(COMPUTED, packed).stdout.splitlines()
    shipped = tmp_path / level / "penstock" / "kernels"
    with monkeypatch.context() as patch:
        patch.setenv("NUMBA_CACHE_DIR", str(tmp_path / level))
        for name, value in kernel_cache.level_environment(level).items():
            patch.setenv(name, value)
        made = python(COMPUTED, packed)
        assert made.stdout.splitlines() == [answer, compiled], made.stderr
    with monkeypatch.context() as patch:
        patch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "empty"))
        patch.setenv("PENSTOCK_KERNELS", str(shipped))
        found = python(COMPUTED, packed)
        assert found.stdout.splitlines() == [answer, "0"], found.stderr
    assert not (tmp_path / "empty").exists()
    names = {path.name for path in shipped.iterdir()}
    assert len(names) == len(list(folder.iterdir())) == 2
    assert not names & {path.name for path in folder.iterdir()}


HAS = ("x86_64-unknown-linux-gnu", "znver4", f"+64bit,{kernel_cache.LEVELS['x86-64-v4']},-xop")


def test_levels_are_looked_for_after_the_processor_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def names(*processor: str) -> list[str]:
        kernel_cache.processors.cache_clear()
        return [name for _, name, *_ in kernel_cache.processors(*processor)]

    assert names(*HAS) == ["znver4", "x86-64-v4", "x86-64-v3"]
    assert names(*HAS[:2], HAS[2].replace("+avx512vl", "-avx512vl")) == ["znver4", "x86-64-v3"]
    assert names(*HAS[:2], HAS[2].replace("+movbe", "-movbe")) == ["znver4"]
    assert names("aarch64-unknown-linux-gnu", "neoverse-n1", "+neon") == ["neoverse-n1"]
    monkeypatch.setattr("numba.config.CPU_NAME", "znver4")
    assert names(*HAS) == ["znver4"]
    monkeypatch.setattr("numba.config.CPU_NAME", None)
    monkeypatch.setattr("numba.config.CPU_FEATURES", HAS[2])
    assert names(*HAS) == ["znver4"]
    kernel_cache.processors.cache_clear()


def test_code_that_calls_the_library_of_vector_functions_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel_cache.processors.cache_clear()
    plain = kernel_cache.processors(*HAS)
    kernel_cache.processors.cache_clear()
    monkeypatch.setattr("numba.config.USING_SVML", True)
    with_library = kernel_cache.processors(*HAS)
    kernel_cache.processors.cache_clear()
    assert plain[0] != with_library[0]
    assert plain[1:] == with_library[1:]


def test_what_does_not_change_machine_code_is_in_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(numpy: str = "2.4.6", flags: str = "") -> tuple[str, ...]:
        kernel_cache.versions.cache_clear()
        monkeypatch.setattr("numpy.__version__", numpy)
        monkeypatch.setattr("sys.abiflags", flags)
        return kernel_cache.versions()

    assert told() == told("2.4.7rc1")
    assert len({told(), told("2.5.0"), told(flags="t")}) == 3
    kernel_cache.versions.cache_clear()


def test_nothing_is_kept_beside_the_sources(folder: Path) -> None:
    """pip would leave it there, and it would hide the next installation."""

    def beside() -> set[Path]:
        return {path for floor in FLOORS for path in (ROOT / floor).rglob("*") if path.suffix != ".pyc"}

    before = beside()
    child = python(KERNELS)
    assert (child.returncode, child.stdout) == (0, "7 9\n"), child.stderr
    assert beside() == before
    assert len(list(folder.iterdir())) == 2
