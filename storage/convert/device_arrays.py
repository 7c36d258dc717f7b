"""Arrays of other libraries as NumPy's: tensors of PyTorch, arrays of CuPy, Numba and cuDF, on the host or a device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def host_array(values: Any) -> NDArray[Any]:
    """Values as an array of NumPy; copied from a device where they are on one.

    Known by what they can do: `detach` (PyTorch), `copy_to_host` (Numba), `get` beside a CUDA array interface (CuPy),
    `to_numpy` (cuDF, pandas, polars, pyarrow), `to_arrow` (columns of other libraries on a device).
    """
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        return np.asarray(values.detach().cpu().numpy())
    if hasattr(values, "__cuda_array_interface__"):
        for copied in ("copy_to_host", "get", "to_numpy"):
            if hasattr(values, copied):
                return np.asarray(getattr(values, copied)())
    if hasattr(values, "to_numpy"):
        return np.asarray(values.to_numpy())
    return np.asarray(values.to_arrow().to_numpy() if hasattr(values, "to_arrow") else values)
