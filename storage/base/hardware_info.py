"""What this machine is, as far as its speed depends on it: processor, cores, bus, driver, software.

It is read from /proc and /sys; what they do not say is left out, never guessed. What changes while the machine runs
(free memory, clock rates, the present state of a link that sleeps when idle) is left out too: the facts are a name
under which measurements are kept.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock import __version__
from penstock.storage.base.budget import cores


def facts(root: Path = Path("/")) -> dict[str, Any]:
    """Return the processor's model, the cores this process may use, and the version of this software."""
    return {"processor": _processor(root), "cores": cores(root), "penstock": __version__}


def fingerprint(of: Mapping[str, Any]) -> str:
    """Return 16 hexadecimal digits that differ where any fact does (SHA-256, cut)."""
    text = json.dumps(of, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def bus_link(address: str, root: Path = Path("/")) -> str | None:
    """Return the best link of a PCI device, such as ``32.0 GT/s PCIe x16``; None where it is not said.

    ``address`` is the device's, ``0000:17:00.0``. The best and not the present one, because a link idles at less.
    """
    folder = root / "sys/bus/pci/devices" / address.lower()
    speed, width = _read(folder / "max_link_speed"), _read(folder / "max_link_width")
    return f"{speed} x{width}" if speed and width else None


def module_version(name: str, root: Path = Path("/")) -> str | None:
    """Return the version of a kernel module such as ``nvidia``; None where there is none."""
    return _read(root / "sys/module" / name / "version")


def disk_of(path: Path) -> str:
    """Return a name for the disk (or network file system) that a file or folder is on, such as ``259:1``."""
    device = path.stat().st_dev
    return f"{os.major(device)}:{os.minor(device)}"


def _processor(root: Path) -> str:
    match = re.search(r"^model name\s*:\s*(.+)$", _read(root / "proc/cpuinfo") or "", re.MULTILINE)
    return match[1].strip() if match else platform.processor() or platform.machine()


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except OSError:
        return None
