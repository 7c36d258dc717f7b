"""What ranks must have in common before they share a run, and that they still have it at its end.

Devices may differ. Budgets are made equal; threads are counted. Refused are ranks with another graph, version or
option, and what runs of several ranks do not do yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from penstock import __version__
from penstock.engine.ranks.communicator import number_of
from penstock.engine.ranks.rank_devices import AUTO, devices_of_host
from penstock.engine.ranks.repartition import starting_shares
from penstock.engine.resources.config import options_of
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.checkpoint.state_pages import FILE_ROWS
from penstock.storage.encoding.codec import checksum
from penstock.storage.format.fingerprint import fingerprint

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.program.program import Program
    from penstock.engine.ranks.communicator import Communicator
    from penstock.engine.resources.config import Config
    from penstock.storage.format.graph import Graph


def agree(config: Config, graph: Graph, ranks: Communicator) -> tuple[Config, int]:
    """The options with the smallest memory budget of all ranks and this rank's device, and the threads of all ranks.

    Raises InputError where ranks cannot run together.
    """
    tuning = config.tuning
    if tuning.layers:
        raise InputError(
            f"layers is {tuning.layers}, and layers follow one another in one process: leave it out, or run in one"
        )
    if tuning.local_rounds:
        raise InputError(
            f"local_rounds is {tuning.local_rounds}, and marks of further rounds stay in one process: leave it out, or "
            "run without ranks"
        )
    if config.route == "cel":
        raise InputError(
            "route is 'cel', which sends along edges that other ranks have: leave --route out, or run without ranks"
        )
    same = {name: value for name, value in asdict(config).items() if not options_of(type(config))[name][1].each_rank}
    found = ranks.gather_numbers(
        np.array([number_of(__version__), number_of(fingerprint(graph)), number_of(same)], dtype=np.uint64)
    )
    for what, numbers in zip(("version of Penstock", "graph", "set of options"), found.T, strict=True):
        others = np.flatnonzero(numbers != numbers[0])
        if len(others):
            raise InputError(
                f"rank {int(others[0])} has another {what} than rank 0: start all ranks with the same command, on the "
                "same graph file or copies of it"
            )
    if config.shares is not None and len(config.shares) != ranks.size:
        raise InputError(
            f"shares is {config.shares}, and there are {ranks.size} ranks: give a number for each, or leave it out"
        )
    budgets = ranks.gather_numbers(np.array([config.memory_bytes, config.thread_count], dtype=np.int64))
    devices, own = devices_of_host(ranks, "cpu" if config.kernels == "reference" else config.device)
    device = devices[own] if config.device == AUTO else config.device
    agreed = replace(config, host_memory=int(budgets[:, 0].min()), threads=config.thread_count, device=device)
    return agreed, int(budgets[:, 1].sum())


def with_shares(config: Config, ability: tuple[float, float, float], edges: int, ranks: Communicator) -> Config:
    """The options with the share of the edges that each rank begins with, by what it can do, if none are given.

    ability: of this rank, as `starting_shares` takes that of all.
    """
    abilities = ranks.gather_numbers(np.array(ability, dtype=np.float64))
    return config if config.shares is not None else replace(config, shares=starting_shares(abilities, edges))


def check_combines(program: Program, *, asynchronous: bool) -> None:
    """Refuse an asynchronous run that sums, of which ranks would count a value once each. Raises InputError."""
    if asynchronous and program.combine == "sum":
        raise InputError(
            f"{type(program).__name__} is self_combining and sums, which several ranks cannot do asynchronously: run "
            "with --mode sync, or with one rank"
        )


def check_same(
    program: Program, iteration: int, fields: Mapping[str, NDArray[Any]], marks: NDArray[Any], ranks: Communicator
) -> None:
    """Compare the fields and marks of all ranks, in host memory or a file. Raises RunError where they differ."""
    numbers = [iteration, checksum(marks)]
    for values in fields.values():  # range by range
        parts = (values[first : first + FILE_ROWS] for first in range(0, len(values), FILE_ROWS))
        sums = [checksum(np.ascontiguousarray(part)) for part in parts]
        numbers.append(checksum(np.array(sums, dtype=np.uint64)))
    found = ranks.gather_numbers(np.array(numbers, dtype=np.uint64))
    others = np.flatnonzero((found != found[0]).any(axis=1))
    if len(others):
        raise RunError(
            f"{type(program).__name__}: rank {int(others[0])} has other values than rank 0 after {iteration} "
            "iterations; a program has to compute the same in every process (seed its random numbers), and --resume "
            "needs a --checkpoint folder that all ranks see"
        )
