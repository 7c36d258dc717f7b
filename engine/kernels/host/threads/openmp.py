"""Starts Numba's threads so that those that wait soon sleep: the only file of the engine that uses the environment.

Numba's OpenMP layer is libgomp, whose threads spin for milliseconds at every wait: on a busy machine they take the
cores from those they wait for. Here they spin for some 0.1 ms, in which the next kernel of an iteration mostly begins:
waking a thread of an idle machine takes longer than a small kernel. libgomp reads its policy from the environment, and
only while it is loaded, so the policy is there for that moment and no longer (`decisions/waiting_threads.md`). What the
user has set is left alone.
"""

from __future__ import annotations

import ctypes
import logging
import os

import numba

_log = logging.getLogger("penstock.engine.kernels.host.threads.openmp")
_POLICY = "OMP_WAIT_POLICY"
_SPIN = "GOMP_SPINCOUNT"
SPINS = "10000"
"""Turns for which a waiting thread spins before it sleeps; libgomp's own setting is 300,000."""
_SETTINGS = (_POLICY, _SPIN, "KMP_BLOCKTIME")
"""What a user may have set: OpenMP's own, GNU's, LLVM's."""


def start_threads() -> None:
    """Load Numba's threading layer, unless it is; a waiting thread soon sleeps, if the user did not set otherwise."""
    if _layer() is not None:
        return
    if any(name in os.environ for name in _SETTINGS):
        numba.get_num_threads()
        return
    if _loaded("libgomp.so.1"):
        _log.info(
            "another library loaded OpenMP before the first run, and its waiting threads may spin; on a busy machine "
            "set %s=passive before Python starts",
            _POLICY,
        )
    os.environ |= {_POLICY: "passive", _SPIN: SPINS}
    try:
        numba.get_num_threads()  # loads the layer
    finally:
        for name in (_POLICY, _SPIN):
            os.environ.pop(name, None)


def _layer() -> str | None:
    """The threading layer that is loaded, if one is."""
    try:
        return str(numba.threading_layer())
    except ValueError:
        return None


def _loaded(library: str) -> bool:
    """Whether a library is loaded; it is not loaded for that."""
    try:
        ctypes.CDLL(library, mode=os.RTLD_NOLOAD)
    except OSError:
        return False
    return True
