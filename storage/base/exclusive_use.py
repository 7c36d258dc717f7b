"""Exclusive use of an object that threads share; it is refused once the object is closed, or after a fork."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from penstock.storage.base.errors import InputError


class ExclusiveUse:
    """Lets one thread at a time use an object, until it is closed, in the process that made it.

    name: the object, for messages.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._owner: int | None = None
        self._closed = False

    def check(self) -> None:
        """Raise InputError where the object cannot be used any more, or not here."""
        if os.getpid() != self._process:
            raise InputError(
                f"this {self._name} is of process {self._process}, from which this one was forked without its threads; "
                f"open a {self._name} here"
            )
        if self._closed:
            raise InputError(f"this {self._name} is closed; open another one")

    @contextmanager
    def acquired(self) -> Iterator[None]:
        """Wait for exclusive use and have it for a block. Raises InputError as `check`, and in a thread that has it."""
        self.check()
        if self._owner == threading.get_ident():
            raise InputError(
                f"this {self._name} is in the middle of a run: end it, or close its steps(), before another one begins"
            )
        with self._lock:
            self.check()
            self._owner = threading.get_ident()
            try:
                yield
            finally:
                self._owner = None

    @contextmanager
    def closing(self) -> Iterator[None]:
        """Wait for the other threads, and let none follow. A run of this thread is cut off."""
        if os.getpid() != self._process or self._owner == threading.get_ident():
            self._closed = True
            yield
            return
        with self._lock:
            self._closed = True
            yield
