"""Starts the command `penstock`, unless what an earlier installation left behind hides this one.

Python takes a folder without `__init__.py` for a package, too. Penstock once kept compiled kernels beside the installed
sources; pip leaves those where they are, and an editable installation is then found after them.
"""

import importlib.util
import os
import signal
import sys
from typing import NoReturn

FLOORS = ("storage", "transfer", "engine")


def leftovers() -> str | None:
    """Return what hides this installation, and the way out; None where nothing does. Imports nothing of it."""
    for floor in FLOORS:
        spec = importlib.util.find_spec(f"penstock.{floor}")
        if spec is not None and spec.origin is None:
            folder = next(iter(spec.submodule_search_locations or [])).removesuffix(floor).rstrip("/")
            return (
                f"{folder} holds leftovers of an earlier installation (kernels that were compiled) and no sources, "
                f"and hides this installation; remove it: rm -r {folder}"
            )
    return None


def open_standard_files() -> None:
    """Open what the caller closed of standard input, output and error: no other file then gets their numbers.

    Standard error goes nowhere; what is written to standard output is an error.
    """
    for number, name, way in ((0, "stdin", os.O_RDONLY), (1, "stdout", os.O_RDONLY), (2, "stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, way), number)  # the lowest number that is free, which is this one
            setattr(sys, name, os.fdopen(number, "w" if number else "r"))


def main() -> NoReturn:
    """Run the command line and exit with its code."""
    open_standard_files()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until `signals.hear` it ends the process, without a traceback
    trouble = leftovers()
    if trouble is not None:
        print(f"penstock: {trouble}", file=sys.stderr)
        sys.exit(2)
    # NumPy's BLAS starts a thread for each core as it is imported, and all of them spin; nothing here gives them work
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from penstock.tools.base import process

    process.pause_search()
    from penstock.tools.cli import main as run

    try:
        run()
    finally:
        process.leave_out()


if __name__ == "__main__":
    main()
