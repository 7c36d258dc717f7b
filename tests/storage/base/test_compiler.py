"""What Numba looks up while it compiles is looked up once, and is what it was."""

from __future__ import annotations

from typing import Any

import numba
import pytest
from llvmlite.binding import ffi
from numba import types
from numba.core.compiler import Flags
from numba.core.registry import cpu_target
from numba.core.targetconfig import ConfigStack
from numba.core.types.functions import BaseFunction
from penstock.storage.base.compiler import look_up_once


def _entered(**values: Any) -> Flags:
    flags = Flags()
    for name, value in values.items():
        setattr(flags, name, value)
    with ConfigStack().enter(flags):
        return ConfigStack.top_or_none()


def test_functions_of_the_same_options_share_one_object_which_cannot_be_told_from_its_copy() -> None:
    flags = _entered(nrt=True, forceinline=False, no_cfunc_wrapper=True)
    assert flags is _entered(nrt=True, release_gil=True)
    assert flags is not _entered(nrt=False)
    assert flags != _entered(nrt=True, error_model="numpy")
    copied = flags.copy()
    assert (copied, hash(copied), type(copied)) == (flags, hash(flags), Flags)
    copied.forceinline = True
    assert not flags.forceinline


def test_an_operation_is_typed_once_for_the_same_types_and_options(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        asked.append((self.key[0], args))
        self._impl_keys[args] = "implementation"
        return types.int64(*args)

    monkeypatch.setattr(BaseFunction, "get_call_type", call_type)
    monkeypatch.setattr(ConfigStack, "enter", ConfigStack.enter)
    look_up_once()
    cpu_target.target_context.refresh()
    least, context = cpu_target.typing_context.resolve_value_type(min), object()
    pair = types.int64, types.int64
    for flags, found in ({"nrt": True}, 1), ({"nrt": True}, 1), ({"nrt": False}, 2):
        changed = Flags()
        changed.nrt = flags["nrt"]
        with ConfigStack().enter(changed):
            least._impl_keys.pop(pair, None)
            assert least.get_call_type(context, pair, {}).args == pair
            assert least._impl_keys.pop(pair) == "implementation"
        assert len(asked) == found


def test_functions_of_other_options_are_compiled_for_these() -> None:
    def quotient(value: Any, by: Any) -> Any:
        return min(value // by, by)

    strict, lenient = numba.njit(quotient), numba.njit(error_model="numpy")(quotient)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            strict(1, 0)
        assert lenient(1, 0) == 0
    assert strict(7, 2) == lenient(7, 2) == 2


def test_numba_takes_no_time_of_the_calls_of_llvm() -> None:
    assert ffi.lib._lock._cblist == []
