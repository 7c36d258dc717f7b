"""The machines that a plan is for: what a host has, what each of its ranks has, and what lies between hosts.

Owns `Machine`, checked as it is read from TOML. Refuses unknown keys, missing ones and values out of range.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from penstock.storage.base.budget import parse_bytes
from penstock.storage.base.errors import InputError

EXAMPLE = """\
# One host of eight GPUs. Rates are per second; sizes are bytes, or text such as "130GiB".
ranks_per_host = 8
disk_bytes = 13e9            # of a host: its ranks share the disks
host_memory = "1.5TiB"       # of a host
host_bytes = 300e9           # memory bandwidth of a host; left out: it never limits
device_memory = "130GiB"     # of a rank; leave this and the next two out for CPU ranks, whose kernels decode
copy_bytes = 53e9            # of a rank's link from host memory
unpack_edges = 150e9         # packed edges that a rank decodes
kernel_edges = 22e9          # edges that a rank's kernels walk
local_bytes = 100e9          # that a rank receives from ranks of its host; left out: as from other hosts
network_bytes = 25e9         # that a host receives from other hosts
network_latency = 10e-6      # seconds of a message
price_per_hour = 30.0        # of a host; may be left out
"""
SIZES = ("host_memory", "device_memory")


@dataclass(frozen=True)
class Machine:
    """Hosts of several ranks each; `EXAMPLE` says what each value is. device_memory 0: the ranks are CPU cores."""

    ranks_per_host: int
    disk_bytes: float
    host_memory: int
    kernel_edges: float
    network_bytes: float
    network_latency: float
    host_bytes: float = math.inf
    device_memory: int = 0
    copy_bytes: float = math.inf
    unpack_edges: float = math.inf
    local_bytes: float | None = None
    price_per_hour: float | None = None

    @classmethod
    def of(cls, content: Mapping[str, Any], source: object) -> Machine:
        """Of a file's keys and values; source: its name for messages. Raises InputError."""
        known = {field.name: field for field in fields(cls)}
        for key in content:
            if key not in known:
                raise InputError(f"{source}: {key} is no key of a machine: take one of {', '.join(known)}")
        needed = list(known)[: list(known).index("host_bytes")] + (["copy_bytes"] if "device_memory" in content else [])
        for key in needed:
            if key not in content:
                raise InputError(
                    f"{source}: {key} is missing: add {key} = NUMBER, as in `penstock plan --write-example`"
                )
        return cls(**{key: _value(key, value, source) for key, value in content.items()})


def _value(key: str, value: Any, source: object) -> Any:
    """A checked value. Raises InputError naming the key."""
    if key in SIZES and isinstance(value, str):
        try:
            return parse_bytes(value)
        except InputError as error:
            raise InputError(f"{source}: {key}: {error}") from error
    whole = key == "ranks_per_host"
    number = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
    low = key in ("network_latency", "price_per_hour")
    if not number or not math.isfinite(value) or not (value >= 0 if low else value > 0):
        wanted = "a whole number" if whole else "a number"
        raise InputError(f"{source}: {key} is {value!r}: give {wanted} {'of at least' if low else 'above'} 0")
    return int(value) if key in SIZES else value
