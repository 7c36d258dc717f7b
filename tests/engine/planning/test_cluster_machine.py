"""A machine file is checked: errors name the key, the value and the way out."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from penstock.engine.planning.cluster_machine import EXAMPLE, Machine
from penstock.storage.base.errors import InputError

WHOLE = tomllib.loads(EXAMPLE)


def test_the_example_is_a_machine() -> None:
    machine = Machine.of(WHOLE, "m.toml")
    assert (machine.ranks_per_host, machine.device_memory, machine.host_memory) == (8, 130 << 30, 3 << 39)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gpus": 8}, "m.toml: gpus is no key of a machine: take one of ranks_per_host"),
        ({"disk_bytes": 0}, "disk_bytes is 0: give a number above 0"),
        ({"kernel_edges": "fast"}, "kernel_edges is 'fast'"),
        ({"kernel_edges": float("inf")}, "kernel_edges is inf"),
        ({"ranks_per_host": 1.5}, "ranks_per_host is 1.5: give a whole number"),
        ({"ranks_per_host": True}, "ranks_per_host is True"),
        ({"network_latency": -1}, "network_latency is -1: give a number of at least 0"),
        ({"host_memory": "much"}, "m.toml: host_memory"),
        ({"network_bytes": None}, "network_bytes is missing: add network_bytes = NUMBER"),
        ({"copy_bytes": None}, "copy_bytes is missing"),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], words: str) -> None:
    content = {key: value for key, value in (WHOLE | changes).items() if value is not None}
    with pytest.raises(InputError, match=words.replace("(", r"\(")):
        Machine.of(content, "m.toml")


def test_cores_need_no_link() -> None:
    gone = ("device_memory", "copy_bytes", "unpack_edges", "price_per_hour", "local_bytes", "host_bytes")
    machine = Machine.of({key: value for key, value in WHOLE.items() if key not in gone}, "m.toml")
    assert (machine.device_memory, machine.price_per_hour) == (0, None)
