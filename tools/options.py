"""Owns the options that several commands share, and how options become one checked value.

`taking` gathers a group of options into an object before the command sees them, so that a command's
function has few parameters and each group has one home. Refuses to act.
"""

import functools
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from penstock.storage.base.budget import parse_bytes
from penstock.storage.base.errors import InputError
from penstock.tools import log
from penstock.tools.output import Speaker
from penstock.tools.programs import is_negative, read_vertex

Command = Callable[..., Any]


class Size(click.ParamType):  # type: ignore[type-arg]
    """A number of bytes: 800MiB, 1.5GB, 2g."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read the text of a size."""
        try:
            return parse_bytes(value)
        except InputError as error:
            self.fail(str(error), param, ctx)


class WeightRange(click.ParamType):  # type: ignore[type-arg]
    """Smallest and largest weight: 1..63."""

    name = "low..high"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Read the text of a range."""
        if isinstance(value, tuple):
            return value
        low, dots, high = str(value).partition("..")
        if not (dots and low.strip().isdigit() and high.strip().isdigit()):
            self.fail(f"{value!r} is not a range of whole numbers such as 1..63", param, ctx)
        return int(low), int(high)


class Vertex(click.ParamType):  # type: ignore[type-arg]
    """An id of a vertex: a number, or a string where ids are strings."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Read the text of an id."""
        if is_negative(str(value)):
            self.fail(f"{value} is negative, and no vertex has such an id", param, ctx)
        return read_vertex(value) if isinstance(value, str) else int(value)


SIZE = Size()
VERTEX = Vertex()
FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
ANY = click.Path(path_type=Path)


class Option(click.Option):
    """An option that knows under which title the help lists it."""

    title = "Options"


class Titled(click.Command):
    """A command whose help lists the options of each group under the group's title."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each title, in the order in which they come first."""
        rows: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                rows.setdefault(getattr(parameter, "title", Option.title), []).append(record)
        for title, records in rows.items():
            with formatter.section(title):
                formatter.write_dl(records)


def option(*names: str, **settings: Any) -> Option:
    """One option, to be given to `taking`; defaults are shown in the help."""
    settings.setdefault("show_default", settings.get("default") is not None)
    return Option(names, **settings)


@dataclass(frozen=True)
class Group:
    """Options that become one value: a decorator that gives a command ``make(**their values)`` under ``name``."""

    name: str
    make: Command
    options: tuple[Option, ...]

    def of(self, values: Mapping[str, Any]) -> Any:
        """The value that they make; values: of these and maybe other options, by the names of their parameters."""
        return self.make(**{str(given.name): values[str(given.name)] for given in self.options})

    def __call__(self, function: Command) -> Command:
        """Give a command these options."""

        @functools.wraps(function)
        def gathered(**values: Any) -> Any:
            mine = {str(given.name): values.pop(str(given.name)) for given in self.options}
            return function(**values, **{self.name: self.of(mine)})

        earlier = list(getattr(function, "__click_params__", []))
        gathered.__click_params__ = [*earlier, *reversed(self.options)]  # type: ignore[attr-defined]
        return gathered


def taking(name: str, make: Command, *options: Option, title: str | None = None) -> Group:
    """Give a command these options; it receives ``make(**their values)`` as parameter ``name``; title: see `Titled`."""
    if title is None:
        return Group(name, make, options)
    mine = tuple(copy(given) for given in options)
    for given in mine:
        given.title = title
    return Group(name, make, mine)


def gathering(name: str, *groups: Group) -> Callable[[Command], Command]:
    """Give a command the options of several groups; it receives their values by the groups' names, as one mapping."""
    names = [group.name for group in groups]

    def decorate(function: Command) -> Command:
        @functools.wraps(function)
        def gathered(**values: Any) -> Any:
            mine = {key: values.pop(key) for key in names}
            return function(**values, **{name: mine})

        whole: Command = gathered
        for group in reversed(groups):
            whole = group(whole)
        return whole

    return decorate


def _speaker(as_json: bool, quiet: bool, verbose: int) -> Speaker:
    log.show(verbose, quiet=quiet)
    return Speaker(as_json, quiet)


speaking = taking(
    "speaker",
    _speaker,
    option("--json", "as_json", is_flag=True, help="Answer with one JSON object on stdout."),
    option("-q", "--quiet", is_flag=True, help="Say nothing but errors."),
    option("-v", "--verbose", count=True, help="Say on stderr what happens below; -vv: every plan."),
)
"""Every command takes --json, --quiet and --verbose, and receives a `Speaker`."""

THREADS = option("--threads", type=click.IntRange(1), help="Threads; every core by default.")
PARTITION_BYTES = option("--partition-bytes", type=SIZE, help="Edges decided on at once (32MiB).")
DEVICE_MEMORY = option(
    "--device-memory", type=SIZE, help="Most memory to take on the GPU (nine tenths of what is free)."
)
FORCE = option("--force", is_flag=True, help="Replace existing files.")


def host_memory_option() -> Option:
    """--host-memory, a hard ceiling in bytes."""
    return option(
        "--host-memory",
        type=SIZE,
        help="Most memory to allocate, for instance 800MiB; by default a share of what is free.",
    )


def stripe_option(what: str) -> Option:
    """--stripe DIR, repeatable."""
    return option("--stripe", "stripes", type=FOLDER, multiple=True, help=what)
