"""The first of several processes to end is found, though none is a child of who asks, and all end soon after it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from penstock.tools.run.launch_ranks import FirstDeath

PARENT = """
import os, subprocess, time
children = [subprocess.Popen(["sleep", "60"]) for _ in range(3)]
print(*(child.pid for child in children), flush=True)
while all(child.poll() is None for child in children):
    time.sleep(0.001)
time.sleep(0.2)
for child in children:
    child.kill()
    child.wait()
"""


def test_the_first_of_several_is_found() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(pid) for pid in parent.stdout.readline().split()]
        first = FirstDeath()
        for pid in pids:
            first.add(pid)
        time.sleep(0.05)
        os.kill(pids[1], signal.SIGTERM)
    found = first.found()
    assert found is not None
    assert found in ((pids[1], signal.SIGTERM), (pids[1], None))


def test_one_that_has_ended_before_is_the_first() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    first = FirstDeath()
    first.add(ended.pid)
    assert first.found() == (ended.pid, None)
    assert FirstDeath().found() is None


def test_of_several_that_have_ended_before_none_is_known_to_be_the_first() -> None:
    with subprocess.Popen(["true"]) as one, subprocess.Popen(["sleep", "60"]) as other:
        one.wait()
        first = FirstDeath()
        first.add(other.pid)
        other.kill()
        other.wait()
        time.sleep(0.1)
        first.add(one.pid)
    assert first.found() is None
    assert first.watches
