"""What is left out of Numba's work on a kernel, and what is not."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from numba import types
from penstock.engine.kernels.cuda.compiler import CLOSURES, LEFT_OUT, _remembered, _shortened


class Manager:
    """Passes by name."""

    def __init__(self, *names: str) -> None:
        self.passes = [(SimpleNamespace(_name=name), "") for name in names]
        self.finalized = 0

    def finalize(self) -> None:
        self.finalized += 1


def plain(value: int) -> int:
    return value + 1


def nested(value: int) -> Callable[[], int]:
    return lambda: value


@pytest.mark.parametrize(("function", "kept"), [(plain, ["typing"]), (nested, [CLOSURES, "typing"])])
def test_closures_are_inlined_where_there_are_any(function: Any, kept: list[str]) -> None:
    manager = Manager(*sorted(LEFT_OUT), CLOSURES, "typing")
    compiler = SimpleNamespace(state=SimpleNamespace(func_id=SimpleNamespace(code=function.__code__)))
    (found,) = _shortened(lambda given: [manager])(compiler)
    assert [kind._name for kind, _ in found.passes] == kept
    assert found.finalized == 1


def test_a_call_is_resolved_once_for_its_types() -> None:
    asked = []

    def resolve(function: Any, arguments: Any, named: Any) -> Any:
        asked.append((function, arguments))
        return None if function == "fails" else object()

    known = _remembered(resolve)
    assert known(plain, (types.int64,), {}) is known(plain, (types.int64,), {})
    assert known(plain, (types.int32,), {}) is not known(plain, (types.int64,), {})
    assert known(nested, (types.int64,), {}) is not known(plain, (types.int64,), {})
    assert len(asked) == 3
    assert known("static_getitem", (types.int64, 1), {}) is not known("static_getitem", (types.int64, True), {})
    assert known(plain, (types.int64,), {"value": types.int64}) is not known(plain, (types.int64,), {})
