"""Where the user's cache folder is: what Penstock may make again at any time is kept there and nowhere else.

$XDG_CACHE_HOME/penstock, or ~/.cache/penstock. Compiled kernels are in its folder `kernels`, or below $NUMBA_CACHE_DIR
where that is set. Nothing is ever kept beside the sources: what an installation does not list is left behind when it is
removed, and Python then takes those folders for packages. This file reads the environment (of the files below `tools`
only `engine/kernels/host/threads/openmp.py` does so too), because a kernel that is called from Python is kept in the
same place as that of a command.
"""

import os
from pathlib import Path

from penstock.storage.base.errors import InputError


def user_cache() -> Path:
    """Return the cache folder, which need not exist. Raises InputError where the user has no home folder."""
    return _below(os.environ.get("XDG_CACHE_HOME", ""))


def kernel_folder() -> Path:
    """Return the folder of compiled kernels, which need not exist. Raises InputError as `user_cache`."""
    return _below(os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME", "")) / "kernels"


def _below(given: str) -> Path:
    if os.path.isabs(given):  # the XDG specification: others are to be ignored
        return Path(given) / "penstock"
    try:
        return Path.home() / ".cache" / "penstock"
    except RuntimeError as error:
        raise InputError(f"there is no home folder to keep anything in ({error}); set XDG_CACHE_HOME") from error
