"""This process: when it began, and when Python searches it for unused objects that refer to each other.

Its start counts, so that the interpreter and imports are part of a job's wall time. The search is paused while a
command is imported: what is imported stays, and searching all of it again and again takes a tenth of a short command.
"""

import gc
import os
import sys
import time


def pause_search() -> None:
    """Search for none, until `resume_search`."""
    gc.disable()


def resume_search() -> None:
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


_STARTED = 22
"""`starttime` among the fields of `stat_field`."""


def stat_field(number: int, process: int | str = "self") -> int:
    """Return a field of /proc/PID/stat, counted from 1 (proc(5)). Raises OSError, ValueError, IndexError."""
    with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
        behind_name = file.read().rpartition(")")[2].split()  # the name may hold spaces
    return int(behind_name[number - 3])


def process_start() -> float:
    """The moment at which this process began, on the clock of time.perf_counter; to 10 ms.

    Where the system does not tell, it is as long ago as the process has used the processor.
    """
    now = time.perf_counter()
    try:
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - stat_field(_STARTED) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        age = -1.0
    used = time.process_time()
    return now - (age if age >= 0 else used)
