"""Standard output as a file for tables: bytes in order, so that nothing else may be printed there."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any

NAME = Path("-")
"""What stands for it among paths."""


class StandardOutput:
    """What is written goes to standard output at once."""

    closed = False

    def __init__(self) -> None:
        sys.stdout.flush()
        self._size = 0

    def write(self, data: Any) -> int:
        """Write all of the data; return its bytes."""
        view = memoryview(data).cast("B")
        sys.stdout.buffer.write(view)
        self._size += len(view)
        return len(view)

    def write_all(self, pieces: Generator[Any, None, None]) -> None:
        """Write pieces one after another; they are closed, whatever happens."""
        with closing(pieces):
            for piece in pieces:
                self.write(piece)

    def tell(self) -> int:
        """Bytes written so far."""
        return self._size

    def flush(self) -> None:
        """Hand over what is buffered."""
        sys.stdout.buffer.flush()
