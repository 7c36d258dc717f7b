"""Runs in which several devices of the host share the edges: what ranks will do, before there are any.

`run` and `Session` are the engine's own with one more option, `devices`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import penstock.engine
import pytest
from penstock.engine import Result
from penstock.engine.resources import host_resources
from penstock.transfer.devices.host import HostDevice


@contextmanager
def sharing(devices: int) -> Iterator[None]:
    """Let so many devices of the host share the edges of every run that begins inside."""

    def made(config: Any) -> list[HostDevice]:
        return [HostDevice(f"host:{number}", config.thread_count) for number in range(devices)]

    with pytest.MonkeyPatch.context() as patch:
        if devices > 1:
            patch.setattr(host_resources, "host_devices", made)
        yield


def run(program: Any, graph: Any, *, devices: int = 1, **options: Any) -> Result:
    """`penstock.engine.run`, on several devices of the host."""
    with sharing(devices):
        return penstock.engine.run(program, graph, **_on_host(devices), **options)


class Session(penstock.engine.Session):
    """A session whose runs share the edges among several devices of the host."""

    def __init__(self, graph: Any, *, devices: int = 1, **options: Any) -> None:
        self._devices = devices
        super().__init__(graph, **_on_host(devices), **options)

    def _equip(self, *asked: Any) -> Any:
        with sharing(self._devices):
            return super()._equip(*asked)


def _on_host(devices: int) -> dict[str, str]:
    return {"device": "cpu"} if devices > 1 else {}
