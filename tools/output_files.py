"""What a command may write to: a file, not standard output, and never one of the files that it reads.

`OUTPUT` is the type of every option that names a file to write. Whether the folder is there and whether the file may
be replaced is checked by storage (`atomic.check_target`).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
from penstock.storage.base.errors import InputError

GRAPH_SUFFIXES = (".h5", ".hdf5")
"""How the name of a graph file ends."""


class OutputFile(click.Path):
    """The path of a file to write; `-` is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Read the text of a path."""
        if str(value) == "-":
            self.fail("- stands for standard output, and this goes to a file; name a file", param, ctx)
        return super().convert(value, param, ctx)


OUTPUT = OutputFile(path_type=Path)


def is_graph_name(path: Path) -> bool:
    """Whether a name ends as that of a graph file does."""
    return path.suffix.lower() in GRAPH_SUFFIXES


def keep_inputs(output: Path, inputs: Iterable[Path]) -> None:
    """Refuse an output that is one of the files to be read, under whatever name; `-` among the inputs is passed over.

    Raises:
        InputError: it is.
    """
    for path in inputs:
        if str(path) != "-" and path.exists() and output.exists() and path.samefile(output):
            raise InputError(f"{output} is an input too, and would be replaced; name another output")
