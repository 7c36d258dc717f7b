"""Which process compiles a kernel: none is compiled twice."""

import hashlib
from contextlib import suppress
from pathlib import Path


class Claims:
    """Which process compiles a kernel, as files of a folder that all know."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def take(self, name: str) -> bool:
        """Take a kernel; False if another has it, or the folder is gone."""
        try:
            self._file(name, "taken").touch(exist_ok=False)
        except OSError:
            return False
        return True

    def end(self, name: str) -> None:
        """Say that a kernel that was taken is kept now, or never will be."""
        with suppress(OSError):  # the folder is gone, and whoever waited
            self._file(name, "ended").touch()

    def ended(self, name: str) -> bool:
        """Whether the process that took the kernel has ended it."""
        return self._file(name, "ended").exists()

    def _file(self, name: str, kind: str) -> Path:
        return self.folder / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.{kind}"
