"""A terminal for tests of what only a terminal is shown."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Sequence
from pathlib import Path


def on_a_terminal(command: Sequence[str], *, columns: int, folder: Path | None = None) -> str:
    """What a command that must end with 0 writes to a terminal as its stderr, escapes included; stdout is dropped."""
    parent, child = pty.openpty()
    settings = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns)}
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=child, env=settings)
    os.close(child)
    shown = b""
    while True:
        try:
            piece = os.read(parent, 4096)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    os.close(parent)
    assert process.wait() == 0
    return shown.decode()
