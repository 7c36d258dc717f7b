"""Python's search for unused objects that refer to each other: paused while a command is imported.

What is imported stays; searching all of it again and again takes a tenth of a short command.
"""

import gc
import sys


def pause() -> None:
    """Search for none, until `resume`."""
    gc.disable()


def resume() -> None:
    """Search again, among objects made from now on; does nothing where the search was not paused."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def leave_out() -> None:
    """Search no object that there is now again, so that the process ends without looking at all of them once more.

    DuckDB's library looks, and prints what it finds: its objects are to be gone by then.
    """
    if "duckdb" not in sys.modules:
        gc.freeze()
