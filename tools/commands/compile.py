"""`penstock compile`: kernels compiled ahead into a folder, where other processes find them.

What is needed is found out by running: small graphs are made and every program is run on them, in a temporary folder.
What these runs ask for is compiled for each kind of processor by processes that run nothing (`Builders`).
"""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from penstock.storage.base.atomic import scratch_folder
from penstock.storage.base.budget import format_bytes
from penstock.storage.base.errors import InputError, PenstockError, RunError, brief
from penstock.storage.base.user_cache import LEVELS, level_environment, own_place
from penstock.tools.base import compiled_runs
from penstock.tools.base.find_program import completed
from penstock.tools.base.options import FOLDER, ParsedType, lasting_console_options
from penstock.tools.base.output import Console, answer_of, counted, seconds
from penstock.tools.base.progress import looked_at, progress

if TYPE_CHECKING:
    from penstock.engine.programs.catalogue import ProgramInfo

NATIVE = "native"
SUFFIXES = (".kernel", ".cubin")
KERNELS_ELSEWHERE = "PENSTOCK_KERNELS", "NUMBA_CACHE_DIR"
"""Variables that name other places of kernels."""
GPU = ["penstock.engine.kernels.ahead.compile_ahead_cuda", "compile_all"]
"""What compiles the kernels of a run for a GPU."""
_log = logging.getLogger("penstock.tools.commands.compile")


def _capabilities(text: str) -> dict[str, tuple[int, int]]:
    """The kinds of GPUs in a text, by name. Raises InputError for another name."""
    found = {name: re.fullmatch(r"sm_(\d+)(\d)", name.strip()) for name in text.split(",")}
    kinds = {name.strip(): (int(match[1]), int(match[2])) for name, match in found.items() if match}
    if len(kinds) < len(found):
        raise InputError(f"{brief(repr(text))} names no kinds of GPUs; write sm_90, or sm_80,sm_90")
    return kinds


@click.command(name="compile", short_help="Compile kernels ahead, into a folder that travels.")
@click.argument("programs", nargs=-1, metavar="[PROGRAM]...", shell_complete=completed)
@click.option("--all", "everything", is_flag=True, help="Every program.")
@click.option(
    "--level",
    "levels",
    multiple=True,
    default=[NATIVE],
    metavar="LEVEL",
    show_default=True,
    help="Kind of processor: x86-64-v3, x86-64-v4, or native, which is this one. Repeatable.",
)
@click.option(
    "--device",
    "devices",
    type=ParsedType("capabilities", _capabilities),
    default={},
    metavar="sm_90,...",
    help="Kinds of GPUs, by their compute capability, besides; none need be here, but numba-cuda must. Lists, walks "
    "and similarities compile at a GPU's first run.",
)
@click.option("--output", type=FOLDER, required=True, help="Folder of the kernels; what it has stays.")
@lasting_console_options
def command(
    programs: tuple[str, ...],
    everything: bool,
    levels: tuple[str, ...],
    devices: dict[str, tuple[int, int]],
    output: Path,
    console: Console,
) -> None:
    """Compile the kernels of programs ahead, and those that read and convert graphs, into a folder.

    \b
    Examples:
      penstock compile bfs pagerank --output kernels
      penstock compile --all --level x86-64-v3 --level x86-64-v4 --output kernels
      penstock compile bfs --device sm_90 --output kernels
    """
    from penstock.storage.companion.builders import Builders

    began = time.perf_counter()
    for level in levels:
        if level != NATIVE and level not in LEVELS:
            raise InputError(
                f"--level {brief(repr(level))} is no kind of processor; give {NATIVE}, {', '.join(LEVELS)}"
            )
    if devices and importlib.util.find_spec("numba_cuda") is None:
        raise InputError(
            f"--device {','.join(devices)}: kernels of GPUs are compiled by numba-cuda, which is not installed; "
            "pip install '.[cuda]' adds it"
        )
    chosen = _chosen(programs, everything=everything)
    place = _place(output)
    before = _entries(place)
    refused: list[str] = []
    kinds = list(dict.fromkeys(levels))
    own = next((kind for kind in kinds if _runs_here(kind)), NATIVE)
    with scratch_folder() as scratch, progress(console) as update:
        (scratch / "penstock").mkdir()
        (scratch / "penstock" / "kernels").symlink_to(place)
        environments = {kind: _environment(kind, scratch) for kind in (*kinds, *devices)}
        changes = {name: {"capability": one, "target": GPU} for name, one in devices.items()}
        compiled_runs.write_inputs(scratch)
        with (
            _environment_as(environments.setdefault(own, dict(os.environ))),
            Builders(scratch, environments, own, kinds, changes) as builders,
            looked_at(update, lambda: update("compiling", *builders.counts, "kernels", builders.last)),
        ):
            for line in compiled_runs.lines_of(chosen):
                _run(line, scratch, refused)
            builders.finish()
    after = _entries(place)
    facts: dict[str, Any] = {
        "command": "compile",
        "output": place,
        "levels": [*kinds, *devices],
        "kernels": len(after),
        "new_kernels": len(after.keys() - before.keys()),
        "bytes": sum(after.values()),
        "seconds": time.perf_counter() - began,
        "refused": refused,
        "compiled_by_each_process": sorted(builders.unknown),
        "failed": sorted(builders.failed),
    }
    console.answer(facts, _lines(facts))
    if builders.failed:
        raise RunError(f"{counted(len(builders.failed), 'kernel')} could not be compiled: {', '.join(facts['failed'])}")


def _chosen(names: tuple[str, ...], *, everything: bool) -> list[ProgramInfo]:
    """The records of the programs. Raises InputError for a name that is none, and where none is given."""
    from penstock.engine.programs.catalogue import CATALOGUE
    from penstock.engine.programs.table import info_of, named

    if everything == bool(names):
        raise InputError("name programs, as in 'penstock compile bfs pagerank', or give --all, not both")
    for name in names:
        named(name)
    return [info for info in CATALOGUE if everything or info in map(info_of, names)]


def _place(output: Path) -> Path:
    """The folder, made where it was missing. Raises InputError where it cannot be written, or would not be read."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        found = own_place(output, "name another folder")
    except OSError as error:
        raise InputError(f"--output {output} cannot be made: {error.strerror}; name another folder") from error
    except InputError as error:
        raise InputError(f"kernels in --output {output} would not be read: {error}") from error
    if not os.access(found, os.W_OK | os.X_OK):
        raise InputError(f"--output {output} cannot be written; name another folder")
    return found


def _runs_here(level: str) -> bool:
    """Whether this process can run code for a kind of processor: it has such a one, and has not chosen another yet."""
    if level == NATIVE:
        return True
    import llvmlite.binding

    has = {*llvmlite.binding.get_host_cpu_features().flatten().split(",")}
    return "numba" not in sys.modules and {*LEVELS[level].split(",")} <= has


def _environment(level: str, scratch: Path) -> dict[str, str]:
    """That of processes that compile for a kind of processor: what they keep and measure is below `scratch`."""
    inherited = {name: value for name, value in os.environ.items() if name not in KERNELS_ELSEWHERE}
    return {**inherited, "XDG_CACHE_HOME": str(scratch), **(level_environment(level) if level in LEVELS else {})}


@contextmanager
def _environment_as(wanted: dict[str, str]) -> Iterator[None]:
    """Give this process another environment within the block."""
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(wanted)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _entries(place: Path) -> dict[str, int]:
    """Bytes of the kernels in a folder, by name."""
    return {file.name: file.stat().st_size for file in place.iterdir() if file.suffix in SUFFIXES}


def _run(line: str, scratch: Path, refused: list[str]) -> None:
    """Run a command in a folder, or note why it cannot run so."""
    words = [f"{scratch}{word}" if word.startswith("/") else word for word in line.split()]
    try:
        answer_of(words)
    except (PenstockError, click.UsageError) as error:
        refused.append(f"{line}: {error}")
        _log.info("%s: %s", line, error)


def _lines(facts: dict[str, Any]) -> list[str]:
    levels = " and ".join(facts["levels"])
    made = f"{counted(facts['kernels'], 'kernel')} for {levels} in {facts['output']}, {format_bytes(facts['bytes'])}"
    lines = [f"{made}: {facts['new_kernels']:,} compiled now, {seconds(facts['seconds'])}"]
    each = facts["compiled_by_each_process"]
    return [*lines, *(f"{counted(len(each), 'kernel')} that each process compiles: {one}" for one in each)]
