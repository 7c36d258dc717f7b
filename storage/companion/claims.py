"""Which process compiles a kernel: none is compiled twice."""

import hashlib
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_PLAN = ".plan"


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

    def plan(self, names: Iterable[str]) -> None:
        """Say which kernels a run will need, besides those that other processes say, for `counts`."""
        partial = self.folder / f"{os.getpid()}.partial"
        with suppress(OSError):
            partial.write_text("\n".join(_digest(name) for name in names), encoding="ascii")
            partial.replace(self.folder / f"{os.getpid()}{_PLAN}")

    def counts(self) -> tuple[int, int] | None:
        """Return how many kernels of the plans have been taken, and how many they have; None where there is no plan."""
        try:
            plans = [file.read_text(encoding="ascii").split() for file in self.folder.glob(f"*{_PLAN}")]
            taken = {file.stem for file in self.folder.glob("*.taken")}
        except OSError:
            return None
        planned = {name for plan in plans for name in plan}
        return (len(taken & planned), len(planned)) if plans else None

    def _file(self, name: str, kind: str) -> Path:
        return self.folder / f"{_digest(name)}.{kind}"


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:32]
