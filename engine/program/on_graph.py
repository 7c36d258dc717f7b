"""A phase that runs on another graph than the program's own, in a session of its own (`Session`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from penstock.engine.program.program import Program
    from penstock.storage.format.graph import Graph


@dataclass
class OnGraph:
    """What a program of phases yields to run a program on a graph that it makes.

    Parameters
    ----------
    program : Program
        The program to run there.
    make : callable
        make(memory_bytes, threads) returns the graph. No edge of other runs is in memory then.

    on_cores : callable, optional
        on_cores(memory_bytes, threads, on_device) returns the answer of the program, computed on the cores of the host
        without a session, or None: then the program runs on the graph. on_device: whether it would run on a device.

    Attributes
    ----------
    fields : dict of str to ndarray
        The answer of the program, when the generator goes on.
    """

    program: Program
    make: Callable[[int, int], Graph]
    on_cores: Callable[[int, int, bool], dict[str, NDArray[Any]] | None] | None = None
    fields: dict[str, NDArray[Any]] = field(default_factory=dict)
