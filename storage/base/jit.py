"""How storage's inner loops are compiled: once per machine (kept in the user's cache), without Python's lock.

No kernel here is parallel: storage's loops run inside worker threads, and two threads must not enter Numba's own at
once.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from penstock.storage.base.kernel_cache import kept

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compile a function of numbers and arrays at its first call; later processes load it."""
    return cast(F, kept(numba.njit(nogil=True)(function)))
