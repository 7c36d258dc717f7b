"""Kernels from the cache are loaded without the compiler; they compute and raise as those just compiled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core.registry import cpu_target
from penstock.storage.base.kernel_loading import load, stored
from support.faults import python

TRIAL = """
import sys, numba, numpy as np
from penstock.storage.base.kernel_cache import kept

@kept
@numba.njit
def add(values):
    if len(values) == 0:
        raise ValueError("nothing to add")
    return values.sum() + np.zeros(3)

def tried(values):
    try:
        return add(values).tolist()
    except ValueError as error:
        return str(error)
"""


def test_what_is_loaded_needs_none_of_the_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither Numba's registries, with scipy's BLAS behind them, nor the modules of what the kernel was made of."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    (tmp_path / "trial.py").write_text(TRIAL)
    begin = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from trial import *; "
    assert python(begin + "print(tried(np.ones(4)))").stdout == "[4.0, 4.0, 4.0]\n"
    code = (
        begin + "print(tried(np.ones(4)), tried(np.ones(0)), *add.stats.cache_hits.values()); "
        "print([name for name in ('numba.np.arraymath', 'scipy.linalg') if name in sys.modules]); "
        "print(tried(np.ones(4, np.int32)), *add.stats.cache_misses.values())"  # compiled after another was loaded
    )
    again = python(code)
    assert again.stdout.splitlines() == ["[4.0, 4.0, 4.0] nothing to add 1", "[]", "[4.0, 4.0, 4.0] 1"], again.stderr


CALLER = """
import numba
from trial import add, np

@numba.njit
def twice(values):
    return 2 * add(values)

print(add(np.ones(4)).tolist(), twice(np.ones(4)).tolist(), twice(np.ones(2)).tolist())
try:
    twice(np.ones(0))
except ValueError as error:
    print(error, *add.stats.cache_hits.values())
"""


def test_what_is_loaded_can_be_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its intermediate code is read when a function that calls it is compiled."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "trial.py").write_text(TRIAL)
    begin = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    assert python(begin + "from trial import *\nprint(tried(np.ones(4)))").stdout == "[4.0, 4.0, 4.0]\n"
    again = python(begin + CALLER)
    assert again.stdout.splitlines() == ["[4.0, 4.0, 4.0] [8.0, 8.0, 8.0] [4.0, 4.0, 4.0]", "nothing to add 1"], (
        again.stderr
    )


def total(values: Any, factor: float) -> Any:
    """Compiled below: it returns a tuple of a new array and a number."""
    if len(values) == 0:
        raise ValueError("nothing to add")
    return np.sort(values), values.sum() * factor


@pytest.fixture(scope="module")
def arguments() -> tuple[Any, ...]:
    return numba.types.Array(numba.float32, 1, "C"), numba.float64


@pytest.fixture(scope="module")
def content(arguments: tuple[Any, ...]) -> bytes:
    compiled = numba.njit(total)
    compiled.compile(arguments)
    return stored(compiled.overloads[arguments], arguments)


def loaded(content: bytes, arguments: tuple[Any, ...]) -> Any:
    return load(content, total, arguments, cpu_target.target_context)


def changed(content: bytes, **parts: Any) -> bytes:
    line, code = content.split(b"\n", 1)
    return json.dumps(json.loads(line) | parts).encode() + b"\n" + code


def test_what_is_stored_is_data_and_what_is_loaded_is_the_function(content: bytes, arguments: tuple[Any, ...]) -> None:
    told = json.loads(content.split(b"\n", 1)[0])
    assert told["returned"] == [["tuple", ["array", "float32", 1, "C", False, True], "float64"]]
    assert ["<f4"] in told["environments"].values()
    found = loaded(content, arguments)
    assert found.signature == numba.typeof((np.zeros(1, np.float32), 1.0))(*arguments)
    values, number = found.entry_point(np.array([3, 1, 2], np.float32), 2.0)
    assert (values.tolist(), values.dtype, number) == ([1, 2, 3], np.float32, 12)
    with pytest.raises(ValueError, match="nothing to add"):
        found.entry_point(np.zeros(0, np.float32), 2.0)


def test_what_is_no_description_is_nothing(content: bytes, arguments: tuple[Any, ...]) -> None:
    line, code = content.split(b"\n", 1)
    others = b"", b"{}", b"[]", b"null", b"3", b"[" * 100_000, b"\xff", line[:-1], line[1:], b"{}" + line
    for other in others:
        assert loaded(other + b"\n" + code, arguments) is None
    assert loaded(line, arguments) is None
    assert loaded(code, arguments) is None


WRONG = {
    "function": (None, 3, "", "total", "main", "_Z", "_ZN", "_ZN5totalE", "_Z\0", "_ZN\ud800", ["_ZN"]),
    "environments": ({}, [], None, {"_ZN08NumbaEnvnone": []}, {"main": ["<f4"]}, {"": []}, {"a": 3}, {"a": [{}]}),
    "returned": (
        *(None, "none", [], ["none", "none"], ["no type"], ["Type"], ["np"], [["tuple", "numpy"]], [[]], [{"a": 1}]),
        *([["array", "float32", "1", "C", False, True]], [["array", "float32", 1, "?", False, True]]),
    ),
    "bytes": (
        *(
            None,
            "3",
            -1,
            0,
            1 << 70,
            1.5,
            [],
            [1],
            [1, 2, 3],
            ["1", "2"],
            [None, 0],
            [1.5, 1.5],
            [0, 0],
            [-1, 1],
            [1, 1],
        ),
        *([1000, 1000], [1 << 70, 0], [0, 1 << 70]),
    ),
}


@pytest.mark.parametrize("part", WRONG)
def test_a_description_that_does_not_fit_is_nothing(part: str, content: bytes, arguments: tuple[Any, ...]) -> None:
    for value in WRONG[part]:
        assert loaded(changed(content, **{part: value}), arguments) is None, value
    line, code = content.split(b"\n", 1)
    known = json.loads(line)
    del known[part]
    assert loaded(json.dumps(known).encode() + b"\n" + code, arguments) is None


def test_what_is_no_machine_code_of_this_system_is_nothing(content: bytes, arguments: tuple[Any, ...]) -> None:
    """LLVM would end the process."""
    line, code = content.split(b"\n", 1)
    size = json.loads(line)["bytes"][0]
    for other in (b"", bytes(size), b"MZ" + bytes(size), b"\x7fELF" + bytes(size), code[: size // 2], code[1:size]):
        assert loaded(changed(line + b"\n" + other, bytes=[len(other), 0]), arguments) is None


def test_what_nothing_calls_is_kept_without_intermediate_code(content: bytes, arguments: tuple[Any, ...]) -> None:
    compiled = numba.njit(total)
    compiled.compile(arguments)
    alone = stored(compiled.overloads[arguments], arguments, linked=False)
    assert len(alone) < 0.7 * len(content)
    values, number = loaded(alone, arguments).entry_point(np.array([3, 1, 2], np.float32), 2.0)
    assert (values.tolist(), number) == ([1, 2, 3], 12)
    for cut in (alone[:-1], alone + b"\0", content[:-1], content + b"\0"):
        assert loaded(cut, arguments) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(part=st.sampled_from([*WRONG]), value=JSON)
def test_no_description_raises(part: str, value: Any, content: bytes, arguments: tuple[Any, ...]) -> None:
    loaded(changed(content, **{part: value}), arguments)


RECORD = np.dtype([("a", "i4")])


@pytest.mark.parametrize(
    ("function", "wanted"),
    [
        (lambda x: "text" if x else "other", None),
        (lambda x: {x: x}, "type"),
        (lambda x: np.zeros(3, RECORD), "type"),
    ],
)
def test_what_cannot_be_described_is_not_kept(function: Any, wanted: str | None) -> None:
    compiled = numba.njit(function)
    compiled.compile((numba.int64,))
    result = compiled.overloads[numba.int64,]
    if wanted is None:
        assert stored(result, (numba.int64,))
        with pytest.raises(TypeError, match="more than machine code"):
            stored(result, (numba.int32,))
    else:
        with pytest.raises(TypeError, match=wanted):
            stored(result, (numba.int64,))
