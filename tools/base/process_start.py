"""When this process began, so that the start of the interpreter and imports are part of a job's wall time."""

import os
import time

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
