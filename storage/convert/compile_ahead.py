"""Which kernels a second process compiles for a conversion, while this one compiles those that it needs first."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from penstock.storage.companion.job_compiler import listed_job
from penstock.storage.companion.process import end, expect, offer
from penstock.storage.convert.sort import radix, spill
from penstock.storage.convert.sort.options import ConvertOptions


@contextmanager
def compiled_ahead(options: ConvertOptions) -> Iterator[None]:
    """Let a second process compile kernels of a conversion to rows, from the first on that is missing within."""
    expect("convert")
    offer(_job if options.workers > 1 and options.layout == "rows" else None, options.host_memory)
    try:
        yield
    finally:
        end()


def _job() -> dict[str, Any]:
    """The job of nearly every conversion, with ids of 32 bits."""
    from penstock.storage.encoding import bitpack, codec

    keys, numbers, ids = np.zeros(1, np.uint64), np.zeros(1, np.int64), np.zeros(1, np.uint32)
    calls: list[tuple[Any, ...]] = [  # those that are needed last come first, but for those of weights
        (bitpack.pack, ids, ids, True),
        (codec._differences, keys, keys),
        (radix.split_sources, keys, 0, 0, ids),
        (radix.split_keys, keys, 0, ids, ids),
        (radix.move_digit, keys, ids, (keys[0], keys[0]), numbers, keys, ids),
        (radix.count_digits, keys, keys, keys, np.zeros((1, 1), np.int64)),
        (spill.copy_keys, keys, numbers, numbers, keys),
        (radix.sort_ties, keys, ids),
        (spill.copy_weights, keys, numbers, numbers, numbers, ids),
    ]
    return listed_job(calls)
