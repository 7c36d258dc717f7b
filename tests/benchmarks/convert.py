"""The suite `convert`: `penstock generate` and `penstock convert` by format and options, each in a process of its own.

R-MAT of edge factor 16. The untimed first run brings inputs into the page cache and compiles kernels. `--folder` needs
about 16 GB at scale 25.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from penstock.engine import Graph

from benchmarks.runner import Runner, penstock

WRITTEN = 2 << 30


def convert(runner: Runner) -> None:
    """Generate, convert pairs of 32 bits, raw CSR arrays and text; the text and some pairs are one scale smaller."""
    scale = runner.choices.scale or 25
    with tempfile.TemporaryDirectory(dir=runner.choices.folder) as name:
        folder = Path(name)
        tell_machine(runner, folder)
        _pairs(runner, folder, scale)
        _csr(runner, folder, scale)
        _text(runner, folder, scale - 1)


def tell_machine(runner: Runner, folder: Path) -> None:
    """Say how much room there is, whether memory comes in huge pages, and how fast the disk takes data."""
    huge = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    probe = folder / "zeros"
    block, began = bytes(8 << 20), time.perf_counter()
    with probe.open("wb") as file:
        for _ in range(WRITTEN // len(block)):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    rate = WRITTEN / (time.perf_counter() - began) / 1e9
    probe.unlink()
    runner.say(
        f"huge pages {huge.read_text(encoding='utf-8').strip() if huge.exists() else 'unknown'}; the disk takes "
        f"{rate:.2f} GB/s and has {shutil.disk_usage(folder).free / 1e9:.0f} GB free"
    )


def _pairs(runner: Runner, folder: Path, scale: int) -> None:
    less, most = (folder / f"{each}.bin" for each in (scale - 1, scale))
    _time(runner, f"generate rmat{scale} pairs", "generate", "rmat", "--scale", scale, "--output", most)
    _time(runner, f"generate rmat{scale} graph", "generate", "rmat", "--scale", scale, "--output", folder / "out.h5")
    inputs = {less: scale - 1, most: scale}
    for path, size in inputs.items():
        _time(runner, f"pairs rmat{size}", *_converting(folder, "--format", "binary32", path), needs=(path, size))
    as_list = _converting(folder, "--format", "binary32", less, "--layout", "list")
    _time(runner, f"pairs rmat{scale - 1} list", *as_list, needs=(less, scale - 1))
    options: dict[str, tuple[object, ...]] = {
        "8 threads": ("--threads", 8),
        "4 threads": ("--threads", 4),
        "16 GiB": ("--host-memory", "16GiB"),
        "undirected": ("--undirected",),
    }
    for name, words in options.items():
        command = _converting(folder, "--format", "binary32", most, *words)
        _time(runner, f"pairs rmat{scale} {name}", *command, needs=(most, scale))
    for path in (less, most):
        path.unlink(missing_ok=True)


def _csr(runner: Runner, folder: Path, scale: int) -> None:
    names = {"": (), " 8 threads": ("--threads", 8), " both": ("--direction", "both")}
    if not runner.wants(*(f"csr rmat{scale}{name}" for name in names)):
        return
    stored, neighbors, offsets = folder / "csr.h5", folder / "neighbors.bin", folder / "offsets.bin"
    penstock("generate", "rmat", "--scale", scale, "--output", stored)
    adjacency: Any = Graph.open(stored).out
    with neighbors.open("wb") as file:
        for some in adjacency.neighbors.load():
            some.tofile(file)
    degrees = np.concatenate([some.astype(np.uint64) for some in adjacency.degrees.load()])
    np.concatenate([np.zeros(1, np.uint64), np.cumsum(degrees, dtype=np.uint64)]).tofile(offsets)
    stored.unlink()
    for name, words in names.items():
        _time(runner, f"csr rmat{scale}{name}", *_converting(folder, "--format", "csr", offsets, neighbors, *words))
    neighbors.unlink()
    offsets.unlink()


def _text(runner: Runner, folder: Path, scale: int) -> None:
    path = folder / "rmat.txt"
    _time(runner, f"generate rmat{scale} text", "generate", "rmat", "--scale", scale, "--output", path)
    _time(runner, f"text rmat{scale}", *_converting(folder, path), needs=(path, scale))


def _converting(folder: Path, *words: object) -> tuple[object, ...]:
    """A `penstock convert` into a file that is replaced each time."""
    return ("convert", *words, folder / "out.h5")


def _generate(path: Path, scale: int) -> None:
    if not path.exists():
        penstock("generate", "rmat", "--scale", scale, "--output", path)


def _time(runner: Runner, name: str, *command: object, needs: tuple[Path, int] | None = None) -> None:
    """Measure what the command says of its own time; `needs`: a generated input and its scale."""
    if not runner.wants(name):
        return
    if needs is not None:
        _generate(*needs)
    facts: dict[str, Any] = {}

    def once() -> float:
        facts.update(penstock(*command, "--force"))
        return float(facts["seconds"])

    runner.measure(name, "s", once, note=lambda: note_of(facts))


def note_of(facts: dict[str, Any]) -> str:
    """Edges a second, CPU time, page faults, memory, scratch space and the seconds of each stage."""
    edges = facts.get("input_edges", facts["edges"])
    stages = " ".join(f"{stage} {part:.2f}" for stage, part in facts.get("stage_seconds", {}).items())
    peak, scratch = facts["peak_memory_bytes"] / 2**30, facts.get("scratch_bytes", 0) / 2**30
    return (
        f"{edges / facts['seconds'] / 1e6:.1f} M edges/s, user {facts['user_seconds']:.1f} system "
        f"{facts['system_seconds']:.1f} s, {facts['page_faults'] / 1e6:.1f} M faults, peak {peak:.1f} scratch "
        f"{scratch:.1f} GiB, {stages}"
    )
