"""Options that several commands share, and groups of options that become one checked value.

`option_group` makes a group of options one object before the command gets them, so that a command's function has few
parameters and each group is declared in one place.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args, get_origin

import click
from penstock.engine.resources.config import Config, options_of
from penstock.storage.base.atomic import check_target, keep_inputs
from penstock.storage.base.budget import parse_bytes
from penstock.storage.base.errors import InputError, brief
from penstock.storage.base.measurement import parse_seconds
from penstock.storage.base.places import local, place_of
from penstock.storage.tables.formats import TableStyle, check_style, format_of, formats_of, style_options
from penstock.tools.base import log
from penstock.tools.base.find_program import is_negative, read_vertex
from penstock.tools.base.output import NAME, Console

Command = Callable[..., Any]


class ParsedType(click.ParamType):  # type: ignore[type-arg]
    """A text that a function reads; what it refuses is the option's error. A default may be a value already."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name, self.read = name, read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the text."""
        try:
            return self.read(value) if isinstance(value, str) else value
        except InputError as error:
            self.fail(str(error), param, ctx)


def _weight_range(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"\s*([0-9]{1,20})\s*\.\.\s*([0-9]{1,20})\s*", text)
    if found is None:
        raise InputError(f"{brief(text)!r} is not a range of whole numbers such as 1..63")
    return int(found[1]), int(found[2])


def _vertex(text: str) -> int | str:
    if is_negative(text):
        raise InputError(f"{brief(text)} is negative, and no vertex has such an id")
    return read_vertex(text)


SIZE = ParsedType("size", parse_bytes)
"""A number of bytes: 800MiB, 1.5GB, 2g."""
VERTEX = ParsedType("id", _vertex)
"""An id of a vertex: a number, or a string where ids are strings."""
WEIGHT_RANGE = ParsedType("low..high", _weight_range)
"""Smallest and largest weight: 1..63."""


class _HereType(click.Path):
    """A path of this machine; an address of a store is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(local(place_of(value)), param, ctx)


FOLDER = _HereType(file_okay=False, path_type=Path)
FILE = _HereType(dir_okay=False, path_type=Path)
ANY = _HereType(path_type=Path)


class _PlaceType(click.Path):
    """A path of this machine, or an address of a store."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return place_of(os.fsdecode(super().convert(value, param, ctx)))


PLACE = _PlaceType()
GRAPH_SUFFIXES = (".h5", ".hdf5")
"""How the name of a graph file ends."""


class OutputFile(click.Path):
    """The path of a file to write; `-` is refused. Storage checks whether it can be written (`atomic.check_target`)."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the text of a path."""
        if str(value) == "-":
            self.fail("- stands for standard output, and this goes to a file; name a file", param, ctx)
        return super().convert(value, param, ctx)


OUTPUT = OutputFile(path_type=Path)


def is_graph_name(path: Path) -> bool:
    """Whether a name ends as that of a graph file does."""
    return path.suffix.lower() in GRAPH_SUFFIXES


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
    """One option, to be given to `option_group`; defaults are shown in the help."""
    settings.setdefault("show_default", settings.get("default") is not None)
    return Option(names, **settings)


@dataclass(frozen=True)
class OptionGroup:
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


def option_group(name: str, make: Command, *options: Option, title: str | None = None) -> OptionGroup:
    """Give a command these options; it receives ``make(**their values)`` as parameter ``name``; title: see `Titled`."""
    if title is None:
        return OptionGroup(name, make, options)
    mine = tuple(copy(given) for given in options)
    for given in mine:
        given.title = title
    return OptionGroup(name, make, mine)


def _interval(text: str) -> float:
    seconds = 0.0 if text.strip() == "0" else parse_seconds(text)
    if seconds is None or (seconds == 0 and text.strip() != "0"):
        raise InputError(f"{text!r} is no time; give one such as 30s, 5min or 2h, or 0 for none")
    return seconds


INTERVAL = ParsedType("time", _interval)
"""Seconds: 30s, 5min, 2h; 0."""


def _console(as_json: bool, quiet: bool, verbose: int, log_every: float | None = None) -> Console:
    log.show(verbose, quiet=quiet)
    return Console(as_json, quiet, log_every=log_every)


_CONSOLE = (
    option("--json", "as_json", is_flag=True, help="Answer with one JSON object on stdout."),
    option("-q", "--quiet", is_flag=True, help="Say nothing but errors."),
    option("-v", "--verbose", count=True, help="Log the steps on stderr; -vv: every plan, too."),
)
console_options = option_group("console", _console, *_CONSOLE)
"""Every command takes --json, --quiet and --verbose, and receives a `Console`."""

lasting_console_options = option_group(
    "console",
    _console,
    *_CONSOLE,
    option(
        "--log-every",
        type=INTERVAL,
        help="Write a line of progress on stderr this often (30s, 5min); 0: never. By default every minute where "
        "stderr is no terminal, and none with --json.",
    ),
)
"""Those of a command that may last: also how often it says in a log how far it is."""


_DECLARED = options_of(Config)


def engine_option(name: str, **settings: Any) -> Option:
    """The option of a run that `Config` declares under this name; settings: what is otherwise here."""
    kind, declared = _DECLARED[name]
    help, default = declared.help, getattr(Config, name)
    flag = f"--{name}"
    if kind is bool:
        settings = {"is_flag": True, **settings}
        if default:
            flag, help = f"--no-{name}", f"Never {help[0].lower()}{help[1:]}"
    elif declared.size:
        settings = {"type": SIZE, **settings}
    elif get_origin(kind) is Literal:
        settings = {"type": click.Choice(get_args(kind)), "default": default, **settings}
    elif any(get_origin(one) is tuple for one in get_args(kind)):
        settings = {"metavar": "N,N...", **settings}
    elif isinstance(default, str):
        settings = {"default": default, **settings}
    elif Path in get_args(kind):
        settings = {"type": FOLDER, **settings}
    elif declared.least is not None:
        settings = {"type": click.IntRange(declared.least), **settings}
    return option(flag.replace("_", "-"), **{"help": help, **settings})


RUN_OPTIONS = tuple(engine_option(name) for name, (_, one) in _DECLARED.items() if one.command)
"""All options of a run that the command line has."""
THREADS = engine_option("threads")
PARTITION_BYTES = engine_option("partition_bytes")
DEVICE_MEMORY = engine_option("device_memory")
HOST_MEMORY = engine_option("host_memory")
FORCE = option("--force", is_flag=True, help="Replace existing files.")
STYLES = tuple(
    option(f"--{name.replace('_', '-')}", name, is_flag=True, help=one.help) for name, one in style_options().items()
)
"""The options of output that `TableStyle` declares."""


def style_of(values: Mapping[str, Any]) -> TableStyle:
    """Those that are set among the values of `STYLES`."""
    return cast(TableStyle, {name: value for name, value in values.items() if value})


def flags_of(style: TableStyle) -> str:
    """The options of a style as they are given here."""
    return ", ".join(f"--{name.replace('_', '-')}" for name in style)


@dataclass(frozen=True)
class TableOutput:
    """Where a command writes its table, and how."""

    output: Path | None
    format: str | None
    force: bool
    style: TableStyle

    @classmethod
    def of(cls, format: str | None, force: bool, output: Path | None = None, **style: bool) -> TableOutput:
        """Of the options' values."""
        return cls(output, format, force, style_of(style))

    def to(self, what: str, inputs: Sequence[Path], *, printed: str = "csv") -> tuple[Path, str]:
        """The file and the name of its format, `printed` on standard output. what: as in `formats_of`.

        Refuses, before the inputs are read, what could not be written. Raises InputError.
        """
        assert self.output is not None, "the command takes an output"
        name = self.format or printed if self.output == NAME else format_of(self.output, self.format, what)
        check_style(self.style, name)
        if self.output != NAME:
            check_target(self.output, force=self.force)
            keep_inputs(self.output, inputs)
        return self.output, name


def table_output(what: str, *more: Option, help: str, title: str | None = None) -> OptionGroup:
    """The options of an output; a command receives them as `writing`. what: as in `formats_of`; help: of --format."""
    format = option("--format", type=click.Choice(list(formats_of(what))), help=help)
    return option_group("writing", TableOutput.of, *more, format, *STYLES, FORCE, title=title)


def stripe_option(what: str) -> Option:
    """--stripe DIR, repeatable."""
    return option("--stripe", "stripes", type=FOLDER, multiple=True, help=what)


STRIPES = stripe_option("Folder to which shards of a striped graph were moved. Repeatable.")
