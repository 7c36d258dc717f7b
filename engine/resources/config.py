"""The settings of a session: one frozen value, checked when it is made.

Each option is declared here alone, with its type, its default, what it does and where it applies: the command line, job
files, Python's stubs and what ranks compare follow. Refuses unknown names, so that a misspelled option is never
silently dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

from penstock.storage.base.budget import cores, default_host_memory, parse_bytes
from penstock.storage.base.errors import PROCESS_MIB, InputError, brief

if TYPE_CHECKING:
    from penstock.transfer.devices.device import Device
    from penstock.transfer.values.rates import Rates


@dataclass(frozen=True)
class Declared:
    """What is declared of an option besides its type and its default.

    help: what it does, as the command line says it. size: whether it is a number of bytes, which may be given as a text
    such as "1GiB". least: the smallest number. applies: where it changes something. each_rank: whether ranks of one run
    may have different values. command: whether the command line and job files have it, too.
    """

    help: str
    size: bool = False
    least: int | None = None
    applies: Literal["everywhere", "link", "emulated"] = "everywhere"
    each_rank: bool = False
    command: bool = True


@dataclass(frozen=True)
class Tuning:
    """How edges reach a device, in parts that can be changed one by one: for research and tests.

    Each field says beside it what it does. Raises InputError for a value that is out of range or no choice.
    """

    throttle: Annotated[float | None, Declared("Bytes per second and stripe that are read.")] = None
    model: Annotated[Literal["measured", "published"], Declared("The cost model.", applies="link")] = "measured"
    link_rate: Annotated[float | None, Declared("Bytes per second of an emulated link.", applies="emulated")] = None
    feedback: Annotated[
        bool, Declared("Correct the rates by measured seconds of earlier iterations, if the link has a rate.")
    ] = True
    combine: Annotated[
        int, Declared("Filter partitions that travel as one task, at most; 1: none.", least=1, applies="link")
    ] = 4
    priority: Annotated[bool, Declared("Largest pending value first, instead of ascending order.")] = True
    local_rounds: Annotated[
        int, Declared("Further rounds on the edges of a loaded view (asynchronous programs).", least=0)
    ] = 0
    layers: Annotated[
        int,
        Declared(
            "Layers of rows of which one after another sends until it is quiet (programs of free order; it helps SSSP "
            "where edges do not all fit, and not PageRank); 0: no layers.",
            least=0,
        ),
    ] = 0
    residency: Annotated[
        Literal["value", "none"],
        Declared(
            "Which edges stay on a device that cannot hold all: what saves most traffic, or none.", applies="link"
        ),
    ] = "value"

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True)
class Config:
    """How to run, whatever the program.

    Each field says beside it what it does; sizes are bytes. Raises InputError for a value that is out of range or no
    choice.
    """

    host_memory: Annotated[
        int | None,
        Declared(
            "Most memory to allocate, for instance 800MiB; interpreter and libraries take up to "
            f"{PROCESS_MIB}MiB more. By default a share of what is free.",
            size=True,
            each_rank=True,
        ),
    ] = None
    direct_io: Annotated[bool, Declared("Read past the page cache, where possible.")] = False
    scratch: Annotated[
        Path | None,
        Declared(
            "Folder for values of vertices that memory has no room for; beside the graph if none.", each_rank=True
        ),
    ] = None
    direction: Annotated[
        Literal["auto", "push", "pull"], Declared("Along out-edges, against in-edges, or whichever is cheaper now.")
    ] = "auto"
    mode: Annotated[
        Literal["auto", "sync", "async"], Declared("Updates seen in the next iteration (sync) or at once (async).")
    ] = "auto"
    precision: Annotated[
        Literal["double", "single"],
        Declared("Type of real numbers: float64, or float32 in half of the memory (PageRank and programs like it)."),
    ] = "double"
    partition_bytes: Annotated[
        int, Declared("Bytes of edges for which a route is chosen at once (32MiB).", size=True, least=1)
    ] = 32 << 20
    threads: Annotated[int | None, Declared("Threads; every core by default.", least=1, each_rank=True)] = None
    device: Annotated[str, Declared("cpu, cuda:N, or auto: the first GPU if there is one.", each_rank=True)] = "auto"
    shares: Annotated[
        tuple[float, ...] | None,
        Declared("Relative speeds of the ranks, by which they get edges at the start. By default their threads."),
    ] = None
    repartition: Annotated[
        bool, Declared("Move edges between ranks while a program runs, where some are busy for longer.")
    ] = True
    device_memory: Annotated[
        int | None,
        Declared(
            "Most memory to take on the GPU (nine tenths of what is free).", size=True, applies="link", each_rank=True
        ),
    ] = None
    device_edge_memory: Annotated[
        int | None,
        Declared(
            "Most GPU memory for edges, those on their way included (what vertices leave).",
            size=True,
            applies="link",
            each_rank=True,
        ),
    ] = None
    route: Annotated[
        Literal["auto", "resident", "filter", "compaction", "zero-copy", "blocks", "cel"],
        Declared("How edges reach the GPU; auto decides for every partition. cel: searches only.", applies="link"),
    ] = "auto"
    packed: Annotated[
        Literal["auto", "never"],
        Declared(
            "Whether edges that a GPU cannot hold plain travel to it bit-packed, and stay there so.",
            applies="link",
            each_rank=True,
        ),
    ] = "auto"
    kernels: Annotated[
        Literal["host", "reference", "cuda"],
        Declared(
            "reference: the plain Python definition; cuda: those of a GPU, simulated on an emulated device.",
            each_rank=True,
            command=False,
        ),
    ] = "host"
    rates: Annotated[
        Rates | None,
        Declared("What this machine moves per second; None: built-in figures.", each_rank=True, command=False),
    ] = None
    tuning: Annotated[
        Tuning, Declared("How edges reach a device, in parts, for research and tests.", each_rank=True, command=False)
    ] = field(default_factory=Tuning)

    def __post_init__(self) -> None:
        _check(self)
        if self.shares is not None and not all(0 < share < float("inf") for share in self.shares):
            raise InputError(f"shares is {self.shares}; give a number above zero for each rank, as in 1,3")

    @classmethod
    def of(cls, **options: Any) -> Config:
        """A Config from keyword arguments, with sizes as texts and tuning as a mapping. Unknown names: InputError."""
        for name in options:
            _known(cls, name)
        for name, (_, declared) in options_of(cls).items():
            if declared.size and isinstance(options.get(name), str):
                options[name] = parse_bytes(options[name])
        if isinstance(options.get("scratch"), str):
            options["scratch"] = Path(options["scratch"])
        if isinstance(options.get("tuning"), Mapping):
            for name in options["tuning"]:
                _known(Tuning, name)
            options["tuning"] = Tuning(**options["tuning"])
        elif not isinstance(options.get("tuning", Tuning()), Tuning):
            raise InputError(f"tuning is {brief(repr(options['tuning']))}; give a mapping, as in {{'combine': 1}}")
        shares = options.get("shares")
        if shares is not None:
            try:
                options["shares"] = tuple(map(float, shares.split(",") if isinstance(shares, str) else shares))
            except (TypeError, ValueError):
                told = brief(repr(shares))
                raise InputError(f"shares is {told}; give a number above zero for each rank, as in 1,3") from None
        return cls(**options)

    def check_used(self, device: Device) -> None:
        """Refuse what was chosen and could change nothing on a device.

        Raises InputError naming the option, its value and the way out.
        """
        places, why, where = device.idle
        for options in (self, self.tuning):
            for name, (_, declared) in options_of(type(options)).items():
                value = getattr(options, name)
                if declared.applies in places and value != getattr(type(options), name):
                    raise InputError(
                        f"{name} is {value!r}, and would change nothing: {why}; leave it out, or run with "
                        f"--device {where}"
                    )

    def of_cores(self) -> Config:
        """The same without what changes nothing on CPU cores: of a rank of cores beside ranks behind links."""
        tuning = replace(self.tuning, **_of_links(Tuning))
        return replace(self, **_of_links(Config), tuning=tuning)

    def facts(self, *, changed: bool = False) -> dict[str, Any]:
        """The options as plain values, without the rates; changed: only those that are not as by default."""
        tuning = _facts(self.tuning, changed=changed)
        return _facts(self, changed=changed) | ({"tuning": tuning} if tuning else {})

    def rates_on(self, device: Device) -> Rates:
        """The rates of runs on a device."""
        return device.rates(self.thread_count) if self.rates is None else self.rates

    @cached_property
    def memory_bytes(self) -> int:
        """The ceiling in bytes; where none was given, what was free when it was first asked for."""
        return self.host_memory if self.host_memory is not None else default_host_memory()

    @cached_property
    def thread_count(self) -> int:
        """CPU threads to use; where no number was given, as many as there were cores when it was first asked for."""
        return self.threads if self.threads is not None else cores()


def _check(options: Config | Tuning) -> None:
    """Raise InputError for a value that is out of range or no choice."""
    for name, (kind, declared) in options_of(type(options)).items():
        value, choices = getattr(options, name), get_args(kind) if get_origin(kind) is Literal else ()
        if choices and value not in choices:
            raise InputError(f"{name} is {value!r}; choose one of {', '.join(choices)}")
        if kind is bool and value not in (True, False):
            raise InputError(f"{name} is {brief(repr(value))}; give True or False")
        if kind == Path | None and not isinstance(value, Path | None):
            raise InputError(f"{name} is {brief(repr(value))}; give a folder")
        least = declared.least
        if value is None or (least is None and kind != float | None):
            continue
        if not isinstance(value, int | float):
            wanted = "" if least is None else f" of at least {least}"
            raise InputError(f"{name} is {brief(repr(value))}; give a number{wanted}")
        if least is not None and value < least:
            raise InputError(f"{name} is {value}; it must be at least {least}")


def _facts(options: Config | Tuning, *, changed: bool) -> dict[str, Any]:
    values = {name: getattr(options, name) for name in options_of(type(options)) if name not in ("rates", "tuning")}
    return {name: value for name, value in values.items() if not changed or value != getattr(type(options), name)}


def _of_links(kind: type[Config | Tuning]) -> dict[str, Any]:
    """The defaults of options that apply only behind a link."""
    return {name: getattr(kind, name) for name, (_, one) in options_of(kind).items() if one.applies != "everywhere"}


def _known(kind: type[Config | Tuning], name: str) -> None:
    """Raise InputError for a name that is no option."""
    names = options_of(kind)
    if name not in names:
        way = in_tuning([name] if kind is Config else []) or f"the options are {', '.join(sorted(names))}"
        raise InputError(f"unknown option {name!r}; {way}")


def in_tuning(names: Iterable[str]) -> str:
    """Where one of these names belongs if it is an option of `Tuning`; else nothing."""
    found = [name for name in names if name in options_of(Tuning)]
    return f"{found[0]} is an option of tuning: give tuning={{{found[0]!r}: ...}}" if found else ""


def options_of(kind: type[Config | Tuning]) -> dict[str, tuple[Any, Declared]]:
    """The options of `Config` or `Tuning` by name: the type of each, and what is declared of it."""
    found: Any = kind
    return _declared(found)


@cache
def _declared(kind: Any) -> dict[str, tuple[Any, Declared]]:
    hints = get_type_hints(kind, localns={"Rates": object}, include_extras=True)
    return {name: (get_args(hint)[0], get_args(hint)[1]) for name, hint in hints.items()}
