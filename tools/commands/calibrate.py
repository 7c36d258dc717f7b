"""`penstock calibrate`: measure this machine, show the tables, store the rates."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from penstock.storage.base.atomic import scratch_folder
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import InputError
from penstock.tools.base.options import ANY, console_options
from penstock.tools.base.output import Console, pairs, seconds, table
from penstock.tools.base.progress import waiting
from penstock.tools.run import rates as kept

if TYPE_CHECKING:
    from penstock.engine.calibration.material import Material
    from penstock.transfer.calibration.calibration import Calibration
    from penstock.transfer.devices.device import Device

PROBE_BYTES = 512 << 20


@click.command(name="calibrate", short_help="Measure this machine's rates, for the cost model.")
@click.option("--device", default="auto", help="cpu, cuda:N, or auto (the default): the first GPU if there is one.")
@click.option("--file", "place", type=ANY, help="A graph file, or a folder, on the disk to measure (this folder).")
@click.option("--quick", is_flag=True, help="At most 2 seconds; the disk only if --file names a graph.")
@click.option("--force", is_flag=True, help="Measure again what is stored.")
@console_options
def command(device: str, place: Path | None, quick: bool, force: bool, console: Console) -> None:
    """Measure this machine's rates, for the cost model: link, kernels, memory, decoding, disk.

    Rates that are stored are shown, not measured again (but those of a quick measurement, a disk that is new, and that
    of a graph that is named); --force measures everything. Runs use what is stored, and measure quickly themselves
    where they need to. The disk is measured as a sweep reads it: on the file of the graph that is named, spread over
    it. In a folder a new file is written, which may be faster than a large old one; runs prefer what a graph gave.

    \b
    Examples:
      penstock calibrate
      penstock calibrate --device cuda:0 --file web.h5
      penstock calibrate --quick --json
      penstock calibrate --file /mnt/ssd --force
    """
    from penstock.engine.calibration.material import machine_fingerprint
    from penstock.engine.resources.config import Config
    from penstock.engine.resources.device_resources import device_of

    with closing(device_of(Config(device=device))) as opened:
        path = kept.place_of(machine_fingerprint(opened))
        known = None if force else _stored(path, quick=quick)
        with waiting("measuring", quiet=console.silent), _material(place, quick=quick) as material:
            found = _measure(opened, known, material, quick=quick)
    if found is not known:
        path = kept.store(found)
    facts = {"command": "calibrate", "file": path, "fingerprint": found.fingerprint, **found.facts()}
    console.answer(facts, lines(found, path))


def _stored(path: Path, *, quick: bool) -> Calibration | None:
    """The rates that need not be measured again, if there are any."""
    try:
        found = kept.load(path)
    except InputError:  # absent, or of no use: about to be replaced
        return None
    return found if quick or not found.quick else None


def _measure(device: Device, known: Calibration | None, material: Material, *, quick: bool) -> Calibration:
    """New rates; or the known ones, with those of a disk that is new to them, or of which a graph file is named."""
    from penstock.engine.calibration.calibrate import Effort, calibrate, disk_rates
    from penstock.storage.base.measurement import TimeBudget

    effort = Effort.quick() if quick else Effort.full()
    if known is None:
        return calibrate(device, effort, material)
    if not material.files or (material.graph is None and material.disk in known.disks):
        return known
    return replace(
        known, disks={**known.disks, material.disk: disk_rates(material, effort, TimeBudget(effort.seconds))}
    )


@contextmanager
def _material(place: Path | None, *, quick: bool) -> Iterator[Material]:
    """The graph that is named, or a file to read in the folder that is; by default this one, if there is time."""
    from penstock.engine.calibration.material import Material
    from penstock.storage.format.graph import Graph
    from penstock.storage.read.disk_probe import write_probe_file

    if place is not None and not place.is_dir():
        yield Material.of(Graph.open(place))
    elif place is None and (quick or not os.access(".", os.W_OK)):
        yield Material()
    elif quick:
        raise InputError(f"--file {place} is a folder: filling a file there takes longer than --quick; name a graph")
    else:
        with scratch_folder(place or Path()) as scratch:
            write_probe_file(scratch / "probe", PROBE_BYTES, lambda done: None)
            yield Material(files=(scratch / "probe",))


def lines(found: Calibration, path: Path) -> list[str]:
    """The tables, the rates and where they are stored, for people."""
    machine = found.machine
    device = machine["device"]
    rows: list[tuple[str, object]] = [
        ("processor", f"{machine['processor']}, {machine['cores']} cores"),
        ("device", ", ".join(str(value) for name, value in device.items() if value and name != "memory_bytes")),
        ("measured", f"{found.date}, in {seconds(found.seconds)}{', quickly' if found.quick else ''}"),
    ]
    rows += [("not measured", f"{name}: {why}") for name, why in found.missing.items()]
    return [
        *pairs(rows),
        *_links(found),
        *_threads(found),
        *_disks(found),
        "",
        *pairs(_rates(found)),
        f"stored in {path}",
    ]


def _links(found: Calibration) -> list[str]:
    shown: list[str] = []
    if copies := found.tables.get("copy"):
        fixed, rate = found.rates.copy_latency, found.rates.copy_bytes
        times = [(_micro(s.seconds), _micro(fixed + s.amount / rate)) for s in copies]
        cells = [[format_bytes(s.at), _giga(s.rate, "B/s"), *both] for s, both in zip(copies, times, strict=True)]
        shown += ["", *table(["pinned copy", "rate", "time", "model"], cells)]
    if runs := found.tables.get("lines"):
        cells = [[format_bytes(s.at), _mega(s.rate, "lines/s"), _giga(s.rate * min(s.at, 128), "B/s")] for s in runs]
        shown += ["", *table(["read in place, runs of", "lines", "bytes"], cells)]
    return shown


def _threads(found: Calibration) -> list[str]:
    by = {name: {s.at: s.rate for s in found.tables.get(name, ())} for name in ("decode", "gather", "kernel")}
    counts = sorted({at for rates in by.values() for at in rates if at})
    if not counts:
        return []
    cells = [
        [
            at,
            *(_giga(by[name][at], "B/s") if at in by[name] else "–" for name in ("decode", "gather")),
            _mega(by["kernel"][at], "edges/s") if at in by["kernel"] else "–",
        ]
        for at in counts
    ]
    return ["", *table(["threads", "decode", "gather", "pull"], cells)]


def _disks(found: Calibration) -> list[str]:
    depths = sorted({s.at for samples in found.disks.values() for s in samples})
    if not depths:
        return []
    cells = []
    for at in depths:
        rates = [[s.rate for s in samples if s.at == at] for samples in found.disks.values()]
        cells.append([at, *(_giga(rate[0], "B/s") if rate else "–" for rate in rates)])
    return ["", *table(["reads in flight", *(f"disk {name}" for name in found.disks)], cells)]


def _rates(found: Calibration) -> list[tuple[str, object]]:
    """The rates that the cost model takes, with those that were not measured marked."""
    rates, assumed = found.rates, set(found.missing)
    infinite = rates.copy_bytes == float("inf")
    shown = [
        ("disk", "disk", _giga(rates.disk_bytes, "B/s")),
        ("decode", "decode", _giga(rates.decode_bytes, "B/s")),
        ("gather", "gather", _giga(rates.gather_bytes, "B/s")),
        ("copy", "copy", f"{_giga(rates.copy_bytes, 'B/s')} after {_micro(rates.copy_latency)}"),
        ("lines", "read in place", _mega(rates.line_rate, "lines/s")),
        ("kernel", "kernel", f"{_mega(rates.kernel_edges, 'edges/s')} after {_micro(rates.kernel_latency)}"),
        ("sweep", "sweep", _mega(rates.sweep_edges, "edges/s")),
        ("unpack", "unpack", f"{_mega(rates.unpack_edges, 'edges/s')} after {_micro(rates.unpack_latency)}"),
    ]
    return [
        (name, f"{value} (assumed)" if key in assumed else value)
        for key, name, value in shown
        if key not in (("copy", "lines", "unpack") if infinite else ("sweep",))
    ]


def _giga(rate: float, unit: str) -> str:
    return f"{rate / 1e9:.2f} G{unit}"


def _mega(rate: float, unit: str) -> str:
    return f"{rate / 1e6:,.0f} M {unit}"


def _micro(duration: float) -> str:
    return f"{duration * 1e6:,.1f} us"
