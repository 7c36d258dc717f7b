"""A fetch under way: its jobs, counted; its result, or the first error.

`result` returns or raises only when no job writes to the caller's slab any more. Every job that began
ends: an error while its outcome is added up is the outcome. The threads of reader.py run the jobs.
"""

import threading
from dataclasses import dataclass

from penstock.storage.clocks.stage_clock import waiting


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """What a fetch cost: bytes read, chunks decoded, and busy seconds summed over the threads."""

    bytes: int = 0
    chunks: int = 0
    read_seconds: float = 0.0
    decode_seconds: float = 0.0

    def __add__(self, other: "ReadRecord") -> "ReadRecord":
        return ReadRecord(
            self.bytes + other.bytes,
            self.chunks + other.chunks,
            self.read_seconds + other.read_seconds,
            self.decode_seconds + other.decode_seconds,
        )


class PendingRead:
    """A fetch under way."""

    def __init__(self, jobs: int) -> None:
        self._changed = threading.Condition()
        self._waiting, self._running = jobs, 0
        self._error: BaseException | None = None
        self._cancelled = False
        self._record = ReadRecord()

    def result(self) -> ReadRecord:
        """Wait for the fetch and return what it cost. Raises RunError as the reader found it."""
        with self._changed:
            if not self._settled():
                with waiting():
                    self._changed.wait_for(self._settled)
            if self._error is not None:
                raise self._error
            if self._cancelled:
                raise RuntimeError("the result of a cancelled fetch is asked for")
            return self._record

    def cancel(self) -> None:
        """Drop the jobs that have not begun and wait for those that have."""
        with self._changed:
            self._cancelled = True
            self._changed.wait_for(lambda: self._running == 0)
            self._changed.notify_all()

    @property
    def done(self) -> bool:
        """Whether ``result`` would return at once."""
        with self._changed:
            return self._settled()

    def begin(self) -> bool:
        """Claim a job (for the reader); False when it is not wanted any more."""
        with self._changed:
            self._waiting -= 1
            if self._cancelled or self._error is not None:
                return False
            self._running += 1
            return True

    def end(self, outcome: ReadRecord | BaseException) -> None:
        """Report a job that was begun (for the reader)."""
        with self._changed:
            self._running -= 1
            try:
                if isinstance(outcome, ReadRecord):
                    self._record += outcome
                elif self._error is None:
                    self._error = outcome
            except MemoryError as error:
                self._error = error
            finally:
                self._changed.notify_all()

    def _settled(self) -> bool:
        dropped = self._cancelled or self._error is not None
        return self._running == 0 and (dropped or self._waiting == 0)
