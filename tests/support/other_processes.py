"""What tests run in other processes: a spawned one finds this module by its name, but not every test's.

`pytest` alone does not have the folder of the sources among the places of modules, as `python -m pytest` has.
"""

from __future__ import annotations

from typing import Any


def send_sample(sampler: Any, sender: Any) -> None:
    """Send a sample of three seeds through a pipe."""
    sender.send(sampler.sample([3, 17, 60], seed=9))
