"""Makes tools/python/typed_convert.pyi, the types of `penstock.convert`, from the options of the command `convert`."""

from __future__ import annotations

import typing
from textwrap import fill
from typing import Any, Literal

import click
from penstock.storage.convert.sort.options import ConvertOptions
from penstock.storage.ingest.core.source import IngestOptions
from penstock.tools.base.options import lasting_console_options
from penstock.tools.commands.convert import command
from support.typed_run import written

WIDER = {
    "columns": "str | Sequence[int | str] | None",
    "edge_properties": "str | Sequence[str] | None",
    "host_memory": "int | str | None",
    "query_reads": "_Path | Sequence[_Path]",
    "scratch": "_Path | None",
    "stripe": "_Path | Sequence[_Path]",
    "vertices": "_Path | None",
}
"""Options that take more from Python than their fields hold, by the names that they have there."""
ONLY_THERE = {"any_suffix"}
"""Options of the command alone, besides those of its output."""
HEAD = '''"""Types of `penstock.convert`: options of `penstock convert`; written by tests/support/typed_convert.py."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Literal

from penstock.storage.convert.sort.options import ConvertProgress
from penstock.storage.format.graph import Graph

_Path = str | PathLike[str]

def convert(
    inputs: _Path | Sequence[_Path],
    output: _Path,
    *,
    progress: bool | Callable[[ConvertProgress], None] = False,
'''


def options() -> dict[str, click.Option]:
    """The options of the command that describe a conversion, by the names that they have in Python."""

    @lasting_console_options
    def none(console: Any) -> None: ...

    others = {one.name for one in getattr(none, "__click_params__", [])} | ONLY_THERE
    named = {one.opts[0][2:].replace("-", "_"): one for one in command.params if isinstance(one, click.Option)}
    return {name: one for name, one in named.items() if one.name not in others}


def kind_of(name: str, option: click.Option) -> str:
    """The type of an option, as it is written."""
    if name in WIDER:
        return WIDER[name]
    if isinstance(option.type, click.Choice):
        choices = written(Literal[tuple(option.type.choices)])
        return choices if isinstance(option.default, str) else f"{choices} | None"
    hints = {**typing.get_type_hints(IngestOptions), **typing.get_type_hints(ConvertOptions)}
    kind = bool if name == "string_ids" else hints[option.name or name]
    return written(kind)


def default_of(name: str, option: click.Option) -> str:
    """What an option is if it is not given, as it is written."""
    if option.multiple:
        return "()"
    if isinstance(option.default, str):
        return f'"{option.default}"'
    return "False" if option.is_flag and not option.secondary_opts else "None"


def text() -> str:
    """The whole file."""
    found = options()
    lines = [f"    {name}: {kind_of(name, option)} = {default_of(name, option)},\n" for name, option in found.items()]
    about = [f"{name}: {' '.join(str(option.help).split())}" for name, option in found.items()]
    told = "\n".join(fill(one, 112, initial_indent=" " * 4, subsequent_indent=" " * 8) for one in about)
    return f'{HEAD}{"".join(lines)}) -> Graph:\n    """Turn raw edge lists into a graph file.\n\n{told}\n    """\n'
