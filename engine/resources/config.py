"""The settings of a session: one frozen value, checked when it is made.

Owns defaults and ranges. Refuses unknown names, so that a misspelled option is never silently dropped.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal, get_args, get_origin, get_type_hints

from penstock.storage.base.budget import cores, default_host_memory, parse_bytes
from penstock.storage.base.errors import InputError
from penstock.transfer.values.rates import Rates

_OVER_A_LINK = ("route", "model", "combine", "residency", "packed", "device_memory", "device_edge_memory", "link_rate")
_IDLE = {
    "host": (_OVER_A_LINK, "the CPU reads edges where they are", "emulated or cuda:0"),
    "cuda": (("link_rate",), "a GPU's link is as fast as it is", "emulated"),
}
"""By kind of device: options that could change nothing on it, why, and on which devices they would."""


@dataclass(frozen=True)
class Config:
    """How to run, whatever the program.

    Parameters
    ----------
    host_memory : int, optional
        Ceiling in bytes on what Penstock allocates in host memory; None: a share of what is free.
    partition_bytes : int
        Bytes of the neighbors of a partition.
    threads : int, optional
        CPU threads; None: all.
    direct_io : bool
        Read past the page cache.
    direction, mode : str
        Force push or pull, synchronous or asynchronous execution.
    kernels : {"host", "reference", "cuda"}
        "reference" runs the plain Python definition; "cuda" the kernels of a GPU, simulated on an emulated device.
    throttle : float, optional
        Bytes per second and stripe that are read, for tests.
    device : str
        "auto", "cpu", "cuda:N", or "emulated": a host device behind a link, for tests.
    device_memory, device_edge_memory : int, optional
        Ceilings in bytes on all that is allocated on the device, and on edges there.
    route : str
        Force one of the routes to the device.
    model : {"measured", "published"}
        The cost model.
    link_rate : float, optional
        Bytes per second of an emulated link.
    feedback : bool
        Correct the rates by measured seconds of earlier iterations, if the link has a rate.
    combine : int
        Filter partitions that travel as one task; 1: none.
    priority : bool
        Largest pending value first, instead of ascending order.
    local_rounds : int
        Further rounds on the edges of a loaded view (asynchronous programs).
    layers : int
        Layers of rows of which one after another sends until it is quiet (programs of free order; it
        helps SSSP where edges do not all fit, and not PageRank); 0: no layers.
    residency : {"value", "none"}
        Which edge ranges stay on a device that cannot hold all: those that save most traffic, or none.
    packed : {"auto", "never"}
        Whether edges that a device cannot all hold travel to it, and stay there, packed, or never.
    rates : Rates, optional
        What this machine moves per second; None: built-in figures.
    repartition : bool
        Of several ranks: whether rows move between them while a run goes on, where some are busy for longer.
    shares : tuple of float, optional
        Of several ranks: their relative speeds, by which they get edges at the start; None: by their threads.

    Raises
    ------
    InputError
        A value is out of range or no choice.
    """

    host_memory: int | None = None
    partition_bytes: int = 32 << 20
    threads: int | None = None
    direct_io: bool = False
    direction: Literal["auto", "push", "pull"] = "auto"
    mode: Literal["auto", "sync", "async"] = "auto"
    kernels: Literal["host", "reference", "cuda"] = "host"
    throttle: float | None = None
    device: str = "auto"
    device_memory: int | None = None
    device_edge_memory: int | None = None
    route: Literal["auto", "resident", "filter", "compaction", "zero-copy", "blocks", "cel"] = "auto"
    model: Literal["measured", "published"] = "measured"
    link_rate: float | None = None
    feedback: bool = True
    combine: int = 4
    priority: bool = True
    local_rounds: int = 0
    layers: int = 0
    residency: Literal["value", "none"] = "value"
    packed: Literal["auto", "never"] = "auto"
    rates: Rates | None = None
    repartition: bool = True
    shares: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(Config).items():
            choices = get_args(kind) if get_origin(kind) is Literal else ()
            if choices and getattr(self, name) not in choices:
                raise InputError(f"{name} is {getattr(self, name)!r}; choose one of {', '.join(choices)}")
        for name in ("partition_bytes", "threads", "combine", "local_rounds", "layers"):
            value, least = getattr(self, name), 0 if name in ("local_rounds", "layers") else 1
            if value is not None and value < least:
                raise InputError(f"{name} is {value}; it must be at least {least}")
        if self.shares is not None and not all(0 < share < float("inf") for share in self.shares):
            raise InputError(f"shares is {self.shares}; give a number above zero for each rank, as in 1,3")

    @classmethod
    def of(cls, **options: Any) -> Config:
        """A Config from keyword arguments; sizes may be texts such as "1GiB". Unknown names: InputError."""
        known = {entry.name for entry in fields(cls)}
        for name in options:
            if name not in known:
                raise InputError(f"unknown option {name!r}; the options are {', '.join(sorted(known))}")
        for name in ("host_memory", "partition_bytes", "device_memory", "device_edge_memory"):
            if isinstance(options.get(name), str):
                options[name] = parse_bytes(options[name])
        shares = options.get("shares")
        if isinstance(shares, str):
            try:
                options["shares"] = tuple(float(share) for share in shares.split(","))
            except ValueError:
                raise InputError(f"shares is {shares!r}; give a number above zero for each rank, as in 1,3") from None
        elif shares is not None:
            options["shares"] = tuple(shares)
        return cls(**options)

    def check_used(self, kind: str) -> None:
        """Refuse what was chosen and could change nothing on a device of this kind ("host", "emulated", "cuda").

        Raises InputError naming the option, its value and the way out.
        """
        names, why, where = _IDLE.get(kind, ((), "", ""))
        for name in names:
            value = getattr(self, name)
            if value != getattr(Config, name):
                raise InputError(
                    f"{name} is {value!r}, and would change nothing: {why}; leave it out, or run with --device {where}"
                )

    def of_cores(self) -> Config:
        """The same without what changes nothing on CPU cores: of a rank of cores beside ranks behind links."""
        return replace(self, **{name: getattr(Config, name) for name in _OVER_A_LINK})

    def rates_on(self, kind: str) -> Rates:
        """The rates of runs on a kind of device ("host", "emulated", "cuda")."""
        if self.rates is not None:
            return self.rates
        if kind == "emulated":
            return Rates.emulated(self.thread_count, self.link_rate)
        return Rates.host(self.thread_count) if kind == "host" else Rates.pcie5(self.thread_count)

    @cached_property
    def memory_bytes(self) -> int:
        """The ceiling in bytes; where none was given, what was free when it was first asked for."""
        return self.host_memory if self.host_memory is not None else default_host_memory()

    @cached_property
    def thread_count(self) -> int:
        """CPU threads to use; where no number was given, as many as there were cores when it was first asked for."""
        return self.threads if self.threads is not None else cores()
