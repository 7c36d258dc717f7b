"""What tests on a real device need of the machine they meet."""

from __future__ import annotations

import numpy as np

if not hasattr(np, "row_stack"):  # NumPy 2.5 has dropped it, and numba 0.68.0 still names it
    np.row_stack = np.vstack
