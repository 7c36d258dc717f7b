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


STARTED = 21
"""Index of `starttime` among the fields of /proc/self/stat (proc(5)), counted after the name of the program."""
_NAME_FIELDS = 2


def process_start() -> float:
    """The moment at which this process began, on the clock of time.perf_counter; to 10 ms.

    Where the system does not tell, it is as long ago as the process has used the processor.
    """
    now = time.perf_counter()
    try:
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
            stat = file.read()
        fields = stat.rpartition(")")[2].split()  # the name may hold spaces
        ticks = int(fields[STARTED - _NAME_FIELDS])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        age = -1.0
    used = time.process_time()
    return now - (age if age >= 0 else used)
