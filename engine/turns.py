"""Who may use a session now, and what it has to give back.

Owns that the threads that share a session take turns, and that a closed one, and one that a forked process inherited,
are refused. Refuses nothing else.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from penstock.storage.errors import InputError

if TYPE_CHECKING:
    from penstock.engine.equipment import Equipment
    from penstock.transfer.device import Device


class Turns:
    """The turns of one session: one thread at a time, until it is closed, in the process that made it."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._turn = threading.Lock()
        self._whose: int | None = None
        self._closed = False

    def check(self) -> None:
        """Raise InputError where the session cannot be used any more, or not here."""
        if os.getpid() != self._process:
            raise InputError(
                f"this Session is of process {self._process}, from which this one was forked without its threads; "
                "open a Session here"
            )
        if self._closed:
            raise InputError("this Session is closed; open another one: Session(graph)")

    @contextmanager
    def mine(self) -> Iterator[None]:
        """Wait for the turn and have it. Raises InputError as `check`, and in the thread that has the turn already."""
        self.check()
        if self._whose == threading.get_ident():
            raise InputError(
                "this Session is in the middle of a run: end it, or close its steps(), before another one begins"
            )
        with self._turn:
            self.check()
            self._whose = threading.get_ident()
            try:
                yield
            finally:
                self._whose = None

    @contextmanager
    def last(self) -> Iterator[None]:
        """Have the last turn: wait for the other threads, and let none follow. A run of this thread is cut off."""
        if os.getpid() != self._process or self._whose == threading.get_ident():
            self._closed = True
            yield
            return
        with self._turn:
            self._closed = True
            yield


class Held:
    """What a session has to give back: its equipment, its device, and the kernels that hold memory of it."""

    def __init__(self, device: Device | None, kernels: dict[Any, Any]) -> None:
        self.equipment: Equipment | None = None
        self._device, self._kernels = device, kernels

    def close(self) -> None:
        """Stop reading, and free the caches and what is on the device."""
        equipment, self.equipment = self.equipment, None
        if equipment is not None:
            equipment.close()
        if self._device is not None:
            for kernels in self._kernels.values():
                kernels.close()
            self._device.close()
        self._kernels.clear()
