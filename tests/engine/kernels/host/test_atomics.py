"""What LLVM offers and Numba's CPU code does not: choices without a branch."""

from __future__ import annotations

import numba
import numpy as np
from penstock.engine.kernels.host.atomics import choose


def test_a_choice_has_the_type_of_the_other():
    """Both sides are taken as what the array holds, as an assignment would."""

    @numba.njit
    def chosen(array, conditions, value):  # type: ignore[no-untyped-def]
        for i in range(len(array)):
            array[i] = choose(conditions[i], value, array[i])

    for array, value, expected in (
        (np.array([5, 6, 7], dtype=np.uint32), 2**40 + 1, [1, 6, 1]),
        (np.array([0.5, 0.25, 0.125], dtype=np.float32), 3, [3, 0.25, 3]),
    ):
        chosen(array, np.array([True, False, True]), value)
        assert array.tolist() == expected
