"""Which device each rank of a host computes on, where it is told or may choose: ranks that see GPUs take one each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from penstock.engine.ranks.communicator import number_of, ranks_of_host
from penstock.storage.base.errors import InputError
from penstock.transfer.devices import cuda

if TYPE_CHECKING:
    from penstock.engine.ranks.communicator import Communicator

AUTO = "auto"
KINDS = ("cpu", "cuda", "emulated", AUTO)
"""What a rank may ask for; of the second kind there are several, by number."""


def devices_of_host(ranks: Communicator, asked: str) -> tuple[tuple[str, ...], int]:
    """The devices of the ranks of this host, in their order, and which of these ranks this process is.

    asked: `cpu`, `cuda:N`, `emulated`, or `auto` where this rank takes what is there. All ranks call it: those of a
    host tell each other which of its GPUs they see, which a batch system may decide. Raises InputError where these are
    fewer than the ranks that want one.
    """
    kind, _, number = asked.partition(":")
    seen = cuda.addresses() if kind == AUTO else ()
    asks = KINDS.index(kind) if kind in KINDS else 0
    wanted = int(number) if number.isdecimal() else 0
    told = np.array([asks, wanted, number_of(seen), len(seen)], dtype=np.uint64)
    every, mates = ranks.gather_numbers(told), ranks_of_host(ranks)
    return chosen(every[list(mates)].tolist()), mates.index(ranks.rank)


def chosen(told: Sequence[Sequence[int]]) -> tuple[str, ...]:
    """The devices of the ranks of a host, by what each tells the others.

    That is: the number of the kind of device that it asks for, which one, a number for the GPUs that it sees, and how
    many these are. Of ranks that see the same GPUs and leave the choice, the first takes the first, and so on; where
    a rank sees none, it takes the cores. Raises InputError where there are fewer GPUs than ranks that see them.
    """
    taken: Counter[int] = Counter()
    found = []
    for kind, number, view, count in told:
        name = KINDS[kind]
        if name == AUTO:
            name, number = ("cuda", taken[view]) if count else ("cpu", 0)
            taken[view] += 1
        found.append(f"cuda:{number}" if name == "cuda" else name)
    for *_, view, count in told:
        ranks = taken[view]
        if ranks > count > 0:
            names = ",".join([*(f"cuda:{at}" for at in range(count)), *["cpu"] * (ranks - count)])
            raise InputError(
                f"{ranks} ranks of this host see {count} GPU{'s' * (count > 1)}: start one for each (mpiexec -n "
                f"{count}, srun --ntasks-per-node {count}), or name all their devices, as in --devices {names}"
            )
    return tuple(found)
