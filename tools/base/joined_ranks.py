"""The ranks that this process belongs to, if several were started together: how it joins them, and how all end.

`mpiexec`, `srun` and others tell each process in its environment that there are several; only then is MPI imported, and
what MPI says counts. One failing rank ends all: it says why, and aborts.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import sys
import sysconfig
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
from penstock.storage.base.atomic import sweep_debris
from penstock.storage.base.errors import KEPT, InputError, installing, printable

if TYPE_CHECKING:
    from penstock.engine.ranks.communicator import Communicator

SIZES = {
    "PMI_SIZE": "mpiexec",
    "OMPI_COMM_WORLD_SIZE": "Open MPI's mpirun",
    "SLURM_STEP_NUM_TASKS": "srun",
    "WORLD_SIZE": "torchrun, or a launcher like it",
}
"""Variables that say how many processes were started together, and by what."""
LAUNCHED = "PENSTOCK_LAUNCHED"
"""Set in ranks that `penstock run --devices` started: their devices; and it is told which process is which rank."""
MARK = "\x1epenstock-rank"
"""Begins the line on stderr that tells it."""
NUMBERS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "RANK")
"""Variables that say which of them this is."""
INSTALL = f"install mpi4py and an MPI: {installing('ranks')}"
FIRST_SECONDS = 1.0
"""So long another rank waits before it says what went wrong: rank 0 says first what all ranks find."""
PASSED_SECONDS = 0.2
"""How long mpiexec has to pass on what a rank has written, before that rank ends all: it reads no more then."""


@dataclass
class Joined:
    """Several ranks, of which this process is one. mates: those that are on this host, this one too, ascending."""

    communicator: Communicator
    mates: tuple[int, ...]


def installed_mpiexec() -> str | None:
    """The mpiexec beside this Python, or on the path; None where there is none."""
    beside = Path(sysconfig.get_path("scripts")) / "mpiexec"
    return str(beside) if beside.exists() else shutil.which("mpiexec")


_joined: Joined | None = None
"""The ranks that this process has joined."""


def started_by() -> tuple[int, str] | None:
    """How many processes were started together, and by what, as the environment has it; None for one."""
    for name, starter in SIZES.items():
        text = os.environ.get(name, "")
        if text.isdecimal() and int(text) > 1:
            return int(text), starter
    return None


def join() -> Joined | None:
    """Join the ranks that were started together; None where this process is alone, and no MPI is imported then.

    Raises InputError where several processes were started that cannot talk to each other.
    """
    announced = started_by()
    if announced is None:
        return None
    size, starter = announced
    if importlib.util.find_spec("mpi4py") is None:
        raise InputError(f"{starter} has started {size} processes, and mpi4py is not installed: {INSTALL}")
    try:
        from penstock.engine.ranks.communicator import ranks_of_host
        from penstock.engine.ranks.mpi import MpiCommunicator
    except (ImportError, RuntimeError) as error:
        raise InputError(f"mpi4py finds no MPI ({error}): {INSTALL}") from error
    communicator = MpiCommunicator()
    if communicator.size != size:
        raise InputError(
            f"{starter} has started {size} processes, and MPI connects {communicator.size}: start them with the "
            "mpiexec of the MPI that mpi4py uses (beside this Python), with srun --mpi=pmi2, or with --devices; "
            f"where this process is to run alone, unset {', '.join(one for one in SIZES if one in os.environ)}"
        )
    global _joined
    _joined = Joined(communicator, ranks_of_host(communicator))
    if os.environ.get(LAUNCHED):
        os.write(2, f"{MARK} {communicator.rank} {os.getpid()}\n".encode())
    if communicator.rank:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # rank 0 ends them all
    return _joined


def is_silent() -> bool:
    """Whether another process says what is wrong with the command line, which all ranks read before they join."""
    return _joined is None and started_by() is not None and any(os.environ.get(n, "0") != "0" for n in NUMBERS)


def speaks() -> bool:
    """Whether stdout is this process' to write to: it is alone, or rank 0."""
    return not is_silent() and (_joined is None or _joined.communicator.rank == 0)


def speaker(message: str, *, common: bool = True) -> str:
    """A message on stderr, with the rank that it comes from; ranks but the first wait for the first.

    common: whether all ranks find the same, so that the first speaks for all of them.
    """
    joined = _joined
    if joined is None or (common and joined.communicator.rank == 0):
        return message
    if joined.communicator.rank:
        time.sleep(FIRST_SECONDS)
    communicator = joined.communicator
    return f"rank {communicator.rank} of {communicator.size} on {socket.gethostname()}: {message}"


def end_all(code: int) -> None:
    """End all ranks where this one has failed; return where there is one process, or nothing has failed."""
    joined = _joined
    if joined is None or code == 0:
        return
    sys.stdout.flush()
    sys.stderr.flush()
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)  # MPI would add a line of its own
    time.sleep(PASSED_SECONDS)
    joined.communicator.abort(code)


def end_all_crashed() -> None:
    """End all ranks where this one has met an error that nothing expects, after its traceback."""
    joined = _joined
    if joined is None:
        return
    lines = traceback.format_exc()
    click.echo(printable(f"penstock: {speaker(f'crashed: {lines}')}", KEPT), err=True)
    sweep_debris()
    end_all(1)
