"""Which kernels another process compiles for a run on a device, while this one waits for the first that reads."""

from typing import Any

import numpy as np
from penstock.storage.companion.job_compiler import requests_of


def reading_requests(vertices: Any, degrees: Any) -> list[dict[str, Any]]:
    """Requests, as `compile_listed` takes them, of what reads rows without weights; of these dtypes on disk."""
    from penstock.storage.encoding import unpack
    from penstock.storage.format import index

    words, numbers, lengths = np.zeros(1, np.uint32), np.zeros(1, np.int64), np.zeros(1, degrees)
    rows = numbers, words, 0
    return requests_of(
        [
            (unpack.unpack, words, np.zeros(1, vertices)),
            (index._append_degrees, lengths, 0, 0, 0, numbers, words),
            (index._add_lengths, *rows, 0, numbers),
            (index._rows_of, *rows, 0, 0, numbers, numbers),
        ]
    )
