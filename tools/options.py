"""Owns the options that several commands share, and how options become one checked value.

`taking` gathers a group of options into an object before the command sees them, so that a command's
function has few parameters and each group has one home. Refuses to act.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from penstock.storage.budget import parse_bytes
from penstock.storage.errors import InputError
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
        if isinstance(value, str) and is_negative(value):
            self.fail(f"{value} is negative, and no vertex has such an id", param, ctx)
        return read_vertex(value) if isinstance(value, str) else int(value)


SIZE = Size()
VERTEX = Vertex()
FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
ANY = click.Path(path_type=Path)


def option(*names: str, **settings: Any) -> click.Option:
    """One option, to be given to `taking`; defaults are shown in the help."""
    settings.setdefault("show_default", settings.get("default") is not None)
    return click.Option(names, **settings)


def taking(name: str, make: Command, *options: click.Option) -> Callable[[Command], Command]:
    """Give a command these options; it receives ``make(**their values)`` as parameter ``name``."""
    keys = [given.name for given in options]

    def decorate(function: Command) -> Command:
        @functools.wraps(function)
        def gathered(**values: Any) -> Any:
            mine = {key: values.pop(key) for key in keys}
            return function(**values, **{name: make(**mine)})

        earlier = list(getattr(function, "__click_params__", []))
        gathered.__click_params__ = [*earlier, *reversed(options)]  # type: ignore[attr-defined]
        return gathered

    return decorate


speaking = taking(
    "speaker",
    Speaker,
    option("--json", "as_json", is_flag=True, help="Answer with one JSON object on stdout."),
    option("-q", "--quiet", is_flag=True, help="Say nothing but errors."),
)
"""Every command takes --json and --quiet and receives a `Speaker`."""

THREADS = option("--threads", type=click.IntRange(1), help="Threads; every core by default.")


def host_memory_option() -> click.Option:
    """--host-memory, a hard ceiling in bytes."""
    return option(
        "--host-memory",
        type=SIZE,
        help="Most memory to allocate, for instance 800MiB; by default a share of what is free.",
    )


def stripe_option(what: str) -> click.Option:
    """--stripe DIR, repeatable."""
    return option("--stripe", "stripes", type=FOLDER, multiple=True, help=what)
