"""What tests on a real device need of the machine they meet: numba-cuda beside a NumPy that is newer than it."""

from __future__ import annotations

import importlib.util
import warnings

import numpy as np
import pytest

if not hasattr(np, "row_stack"):  # NumPy 2.5 has dropped it, and numba 0.68.0 still names it
    np.row_stack = np.vstack

if importlib.util.find_spec("numba_cuda") is not None:
    with warnings.catch_warnings():  # of what NumPy will drop next
        warnings.simplefilter("ignore", DeprecationWarning)
        import numba.cuda  # noqa: F401


def pytest_itemcollected(item: pytest.Item) -> None:
    """Numba's own use of what NumPy deprecates is not ours to mend."""
    item.add_marker(pytest.mark.filterwarnings("ignore::DeprecationWarning:numba"))
