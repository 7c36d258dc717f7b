"""What this machine moves per second: the numbers behind the measured cost model.

Owns `Rates`, a checked value. Refuses rates that are not positive and latencies that are
negative. An infinite rate means that the resource is not used (a host device has no link). The
defaults are the measurements of DESIGN section 1; `penstock calibrate` replaces them by those of
the machine at hand.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray
from penstock.storage.base.errors import InputError

LINE_BYTES = 128
SECTOR_BYTES = 32
TASK_SECONDS = 2e-4
"""What one more task takes: launches and events of the host, 200 to 250 us on an H200's (transfer/measurements.md)."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Bytes, lines and edges per second of each resource; latencies in seconds.

    `line_rate` is lines of 128 bytes per second for addresses in ascending order, `sector_rate`
    requests per second when a run touches only 32 bytes of its line. `gather_bytes` are those of a
    packed buffer, index included, filled from rows of 16 edges. `kernel_rows` are active rows that
    kernels find, besides their edges; unknown before a run, which learns it (`feedback.py`), as it does `line_latency`
    and `line_rows`: what a kernel that reads in place takes besides its lines.
    `sweep_edges` are edges of sweeps on the host's cores, whose kernels ask ahead for messages that are grouped by how
    often they are read (forecasts use it).
    `unpack_edges` are packed edges that a device decodes, `unpack_latency` is what a task of
    its own takes the host and the device. `line_runs`, where it was measured, replaces `line_rate` and
    `sector_rate`: (bytes of a run, lines per second), by ascending length.
    """

    disk_bytes: float = 3.0e9
    decode_bytes: float = 0.8e9
    gather_bytes: float = 1.0e9
    copy_bytes: float = float("inf")
    copy_latency: float = 0.0
    line_rate: float = float("inf")
    sector_rate: float = float("inf")
    kernel_edges: float = 2.0e8
    kernel_latency: float = 2.0e-6
    kernel_rows: float = float("inf")
    sweep_edges: float = 6.0e8
    unpack_edges: float = float("inf")
    unpack_latency: float = 0.0
    line_runs: tuple[tuple[float, float], ...] = ()
    line_latency: float = 0.0
    line_rows: float = float("inf")

    def __post_init__(self) -> None:
        lengths = [length for length, _ in self.line_runs]
        if sorted(set(lengths)) != lengths or not all(length > 0 and rate > 0 for length, rate in self.line_runs):
            raise InputError(
                f"rate line_runs is {self.line_runs}; it must be lengths and rates above zero, by ascending length: "
                "run `penstock calibrate` again"
            )
        for name, latency in _CHECKED:
            value = getattr(self, name)
            if not (value >= 0 if latency else value > 0):
                wanted = "zero or more seconds" if latency else "above zero per second"
                raise InputError(f"rate {name} is {value}; it must be {wanted}: run `penstock calibrate` again")

    @classmethod
    def host(cls, threads: int) -> Rates:
        """Return what `threads` cores do on edges that they read in place (no link)."""
        workers = max(1, threads)
        return cls(
            decode_bytes=min(0.8e9 * workers, 10e9),
            gather_bytes=min(1e9 * workers, 8e9),
            kernel_edges=2.0e8 * workers,
            sweep_edges=6.0e8 * workers,
        )

    @classmethod
    def pcie5(cls, threads: int) -> Rates:
        """Return the rates measured on one H200 behind PCIe 5 x16 (DESIGN section 1)."""
        workers = max(1, threads)
        return cls(
            disk_bytes=3.3e9,
            decode_bytes=min(0.8e9 * workers, 10e9),
            gather_bytes=min(1e9 * workers, 8e9),
            copy_bytes=53e9,
            copy_latency=8e-6,
            line_rate=402e6,
            sector_rate=700e6,
            kernel_edges=22e9,
            kernel_latency=4e-6,
            unpack_edges=150e9,
            unpack_latency=TASK_SECONDS,
        )

    @classmethod
    def emulated(cls, threads: int, link_bytes: float | None) -> Rates:
        """Return the rates of `threads` cores behind a link that carries so many bytes per second.

        Lines read in place travel whole, at the rate of copies, and nothing has a latency (`emulated.py`). Without a
        rate the link takes no time, and what is planned is planned as for a real one.
        """
        if link_bytes is None:
            return cls.pcie5(threads)
        lines = link_bytes / LINE_BYTES
        return replace(cls.host(threads), copy_bytes=link_bytes, line_rate=lines, sector_rate=lines)

    def line_seconds(
        self, lines: NDArray[np.float64] | np.float64, run_bytes: NDArray[np.float64] | np.float64
    ) -> NDArray[np.float64]:
        """Return the seconds in which the link brings `lines` lines read in place.

        `run_bytes` is the mean length of a run (one active row) in bytes. The seconds of one line
        are linear between the lengths that were measured, and constant outside of them; without
        `line_runs` a run of 32 bytes or less costs a short request, one of a line or more a full
        line. Both arrays have shape (p,) or (); so has the answer.
        """
        runs = self.line_runs or ((SECTOR_BYTES, self.sector_rate), (LINE_BYTES, self.line_rate))
        each = np.interp(run_bytes, [length for length, _ in runs], [1.0 / rate for _, rate in runs])
        return np.asarray(lines * each, dtype=np.float64)


_CHECKED = [(field.name, field.name.endswith("latency")) for field in fields(Rates) if field.name != "line_runs"]
"""Every rate's name, and whether it is a latency; listed once, for rates are made anew in most iterations."""
