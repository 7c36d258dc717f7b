"""Whether this process can run kernels on several threads.

The threads of kernels are Numba's, and its OpenMP layer ends the whole process where they cannot start, and in one that
was forked after they had started. Both are found out before, and said.
"""

from __future__ import annotations

import os

import numba
from penstock.storage.base.errors import InputError
from penstock.storage.base.threads import check_startable

FORKED = (
    "this process was forked from one whose kernels had run, and their threads are not in it; begin processes with "
    "multiprocessing's 'spawn' or 'forkserver', or fork before the first run"
)


class _Known:
    """What is known of this process: whether kernels' threads can start; whether it was forked from where they had."""

    startable = False
    forked = False


def check_workers(threads: int) -> None:
    """Make sure that kernels can run on so many threads.

    Raises InputError in a process that was forked too late, RunError where no further threads can start.
    """
    if _Known.forked:
        raise InputError(FORKED)
    if not _Known.startable:
        check_startable(threads - 1, "penstock-kernel")
        _Known.startable = True


def _after_fork() -> None:
    try:
        _Known.forked = _Known.forked or numba.threading_layer() == "omp"
    except ValueError:  # no threads have started
        return


os.register_at_fork(after_in_child=_after_fork)
