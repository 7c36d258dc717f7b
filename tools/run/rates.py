"""Where measured rates are kept, and which rates a run uses.

They are in the user's cache folder, one file for each machine and device. A run takes those of `--rates`, else the
stored ones, else measures quickly and stores if edges do not fit; a damaged or foreign file is reported once and
measured anew. None of this ends a run: what cannot be measured or stored is reported on stderr, and the built-in rates
are used.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.storage.base.atomic import write_text
from penstock.storage.base.errors import InputError, PenstockError
from penstock.storage.base.stage_clock import stage
from penstock.storage.base.user_cache import make_place, user_cache
from penstock.tools.base.output import plain, seconds

if TYPE_CHECKING:
    from penstock.engine.resources.config import Config
    from penstock.storage.format.graph import Graph
    from penstock.transfer.calibration.calibration import Calibration
    from penstock.transfer.devices.device import Device
    from penstock.transfer.values.rates import Rates

Note = Callable[[str], None]
DISK_SECONDS = 0.5
"""For a disk that is new to a machine whose rates are known."""


@dataclass(frozen=True)
class UsedRates:
    """The rates of a run and where they came from; `rates` None: the engine's own."""

    rates: Rates | None = None
    calibration: Calibration | None = None
    path: Path | None = None

    def options(self) -> dict[str, Any]:
        """As an option of the engine; none where its own rates serve."""
        return {} if self.rates is None else {"rates": self.rates}

    def facts(self) -> dict[str, Any]:
        """For machines."""
        known = self.calibration
        return {
            "source": "built-in" if known is None else "measured",
            "file": self.path,
            "date": None if known is None else known.date,
            "quick": None if known is None else known.quick,
            "missing": {} if known is None else dict(known.missing),
            "values": None if self.rates is None else asdict(self.rates),
        }


def place_of(fingerprint: str) -> Path:
    """The file of a machine's rates."""
    return user_cache() / f"rates-{fingerprint}.json"


def store(calibration: Calibration) -> Path:
    """Write rates to their file, whole or not at all; return it. Raises InputError or RunError where it cannot."""
    path = place_of(calibration.fingerprint)
    try:
        make_place(path.parent)
    except OSError as error:
        raise InputError(f"{path.parent} cannot be made: {error.strerror}; set XDG_CACHE_HOME") from error
    write_text(path, json.dumps(plain(calibration.facts()), indent=1) + "\n", force=True)
    return path


def load(path: Path) -> Calibration:
    """Read rates. Raises InputError naming the file where they are missing, damaged or not ours."""
    from penstock.storage.ingest.bytes.file import open_text
    from penstock.transfer.calibration.calibration import Calibration

    with open_text(path, "`penstock calibrate` measures rates") as file:
        text = file.read()
    try:
        return Calibration.of(json.loads(text))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is no file of rates ({error}); `penstock calibrate` makes one") from error
    except InputError as error:
        raise InputError(f"{path}: {error}; `penstock calibrate` makes a new one") from error


def rates_for(graph: Graph, config: Config, note: Note, path: Path | None = None, *, measure: bool = True) -> UsedRates:
    """The rates for running on a graph with these options of the engine.

    They are those of the file `path` (--rates), else those stored for this machine. If none are stored and edges may
    cross a link again and again, or come from disk because host memory does not hold them, the machine is measured, if
    `measure`. `note` takes a line for people. Raises InputError for a bad --rates file.
    """
    with stage("imports"):
        from penstock.engine.calibration.material import Material, machine_fingerprint
        from penstock.engine.resources.device_resources import device_of, fits, fits_device

    material = Material.of(graph)
    disk = material.disk if material.files else None
    if path is not None:
        known = load(path)
        return UsedRates(known.at(config.thread_count, disk), known, path)
    with ExitStack() as stack:
        device = device_of(config)
        stack.callback(device.close)
        streamed = not fits(graph, config.memory_bytes)
        try:
            place = place_of(machine_fingerprint(device))
            found = _stored(place, note)
            path = None if found is None else place
            if found is None and measure and graph.edges and (streamed or not fits_device(graph, config, device)):
                found, path = _measured(config, device, material, note)
        except PenstockError as error:
            note(f"penstock: rates of this machine are not known ({error}); built-in ones are used")
            found = None
        if found is not None and streamed and measure and disk not in found.disks:
            found = _with_disk(found, material, note)
    return UsedRates() if found is None else UsedRates(found.at(config.thread_count, disk), found, path)


def _stored(path: Path, note: Note) -> Calibration | None:
    if not os.path.isfile(path):  # nor a pipe, which would be waited for
        return None
    try:
        known = load(path)
    except InputError as error:
        note(f"penstock: {error}")
        return None
    if place_of(known.fingerprint) != path:
        note(f"penstock: {path} holds the rates of another machine, and is not used")
        return None
    return known


def _measured(config: Config, device: Device, material: Any, note: Note) -> tuple[Calibration, Path | None]:
    from penstock.engine.calibration.calibrate import Effort, calibrate
    from penstock.storage.base.budget import available_memory

    effort = Effort.quick(min(config.memory_bytes, available_memory()))
    with stage("calibrating"):
        found = calibrate(device, effort, material, kernels=config.kernels)
    lacking = f", not measured: {', '.join(found.missing)}" if found.missing else ""
    try:
        path = store(found)
    except PenstockError as error:
        note(f"penstock: measured this machine in {seconds(found.seconds)}{lacking}; not kept: {error}")
        return found, None
    note(
        f"penstock: measured this machine in {seconds(found.seconds)}{lacking}; rates are kept in {path} "
        "(`penstock calibrate` measures longer, --no-calibrate never)"
    )
    return found, path


def _with_disk(known: Calibration, material: Any, note: Note) -> Calibration:
    """Rates with those of the disk that the graph lies on, which they lack: measured now, and stored."""
    from penstock.engine.calibration.calibrate import Effort, disk_rates
    from penstock.storage.base.measurement import TimeBudget

    try:
        with stage("calibrating"):
            samples = disk_rates(material, Effort.quick(), TimeBudget(DISK_SECONDS))
    except InputError:  # too short to tell, or no direct reads: the rate known so far serves
        samples = ()
    if not samples:
        return known
    more = replace(known, disks={**known.disks, material.disk: samples})
    try:
        kept = f"its rate is kept in {store(more)}"
    except PenstockError as error:
        kept = f"not kept: {error}"
    note(f"penstock: measured the disk of {material.files[0]}; {kept}")
    return more
