"""The options that say what becomes of an answer: which rows are shown, and where it is written."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from penstock.storage.base.atomic import check_place
from penstock.storage.base.errors import InputError
from penstock.storage.base.places import FilePlace, beside
from penstock.storage.tables.formats import (
    ANSWERS,
    TableStyle,
    check_streamed,
    check_style,
    endings_of,
    format_of,
    formats_of,
)
from penstock.tools.base.options import PLACE, STYLES, OptionGroup, flags_of, option, option_group, style_of
from penstock.tools.base.output import NAME

if TYPE_CHECKING:
    from penstock.engine.program.program import Program
    from penstock.storage.format.graph import Graph


@dataclass(frozen=True)
class AnswerOptions:
    """What to do with the answer. smallest: whether the smallest values come first; None: as the program means them."""

    top: int = 0
    path: FilePlace | None = None
    format: str | None = None
    by: str | None = None
    smallest: bool | None = None
    join: str | None = None
    prefix: str | None = None
    style: TableStyle = field(default_factory=TableStyle)

    @classmethod
    def of(cls, **given: Any) -> AnswerOptions:
        """Of the options' values."""
        style = {str(one.name): given.pop(str(one.name)) for one in STYLES}
        return cls(**given, style=style_of(style))

    @property
    def joined(self) -> tuple[str, ...]:
        """The properties of the vertices that rows of the answer have, too."""
        return tuple(name.strip() for name in (self.join or "").split(",") if name.strip())

    @property
    def printed(self) -> bool:
        """Whether it goes to standard output."""
        return self.path == NAME

    @property
    def file_format(self) -> str | None:
        """The name of the output's format; None without an output. Raises InputError for a name that says none."""
        if self.path is None:
            return None
        return (self.format or "csv") if self.printed else format_of(self.path, self.format, ANSWERS)

    def inside(self, folder: Path, name: str) -> AnswerOptions:
        """The same with a relative output in a folder, and with an output in any case: `name`.parquet by default."""
        if self.printed:
            raise InputError("--output - and --run-dir exclude each other: a run directory keeps the answer as a file")
        ending = ".txt" if self.format == "graphalytics" else f".{self.format or 'parquet'}"
        return replace(self, path=beside(folder, self.path or Path(f"{name}{ending}")))

    def beside(self, folder: Path) -> AnswerOptions:
        """The same with a relative output in a folder, if there is an output in a file."""
        return self if self.path is None or self.printed else replace(self, path=beside(folder, self.path))

    def check(self, *, force: bool, there: bool = True, table: bool = False) -> None:
        """Refuse, before the run, what could not be written.

        there: whether its folder is made already. table: whether a table of all answers has this one's columns.
        """
        if self.path is None and self.format is not None:
            raise InputError(f"--format {self.format} is the format of an output, and there is none; add --output FILE")
        if self.path is None and self.style:
            raise InputError(f"{flags_of(self.style)} is for an output, and there is none; add --output FILE")
        if self.prefix is not None and (("/" in self.prefix) or not (self.path is not None or table)):
            raise InputError(
                f"--prefix {self.prefix} begins the names of columns: leave / out, and say --output FILE, or in a job "
                "file an output of all programs"
            )
        if not self.top and (self.by is not None or self.smallest is not None):
            said = f"--by {self.by}" if self.by is not None else "--smallest" if self.smallest else "--largest"
            raise InputError(f"{said} is the order of the vertices that --top shows; add --top K")
        if self.join is not None:
            self._check_join()
        if self.path is not None:
            check_style(self.style, str(self.file_format))
            if self.printed:
                check_streamed(self.format or "csv", ANSWERS)
                return
            if there:
                check_place(self.path, force=force)

    def _check_join(self) -> None:
        if not self.joined or len(set(self.joined)) < len(self.joined):
            raise InputError(
                f"--join {self.join} must name different properties with commas between, as in name,country"
            )
        if self.path is None and not self.top:
            raise InputError(f"--join {self.join} adds columns to an answer; add --output FILE or --top K")
        self.check_columns(f"--join {self.join}")

    def check_columns(self, what: str) -> None:
        """Refuse a format of one field where there are several columns."""
        if self.path is not None and self.file_format in ("npy", "graphalytics"):
            raise InputError(f"{what}: {self.file_format} has one field; write .csv, .parquet, .feather or .h5")

    def check_fields(self, program: Program, graph: Graph) -> None:
        """Refuse a field to order by that the program does not have, and properties that the graph does not have."""
        from penstock.engine.program.program import fields_of

        fields = fields_of(program)
        if self.path is not None and self.file_format == "graphar":
            from penstock.storage.tables.graphar_group import check_vertices

            check_vertices(self.path, graph.vertices, plain=graph.original is None and graph.left is None)
        if self.joined:
            from penstock.storage.tables.properties import open_properties

            properties = open_properties(graph.path, graph.provenance, graph.vertices)
            for name in self.joined:
                properties.column(name)
                if name in {(self.prefix or "") + field for field in fields}:
                    raise InputError(f"--join {name}: the answer has a field of that name; rename the property")
        if self.by is not None and self.by not in fields:
            known = [name for name, field in fields.items() if field.output]
            raise InputError(f"--by {self.by}: the answer has no such field; it has {', '.join(known)}")


wanting = option_group(
    "wanted",
    AnswerOptions.of,
    option("--top", type=click.IntRange(0), default=0, help="Show the K largest values; of distances the smallest."),
    option("--by", metavar="FIELD", help="With --top: the field to order by (the first one)."),
    option(
        "--smallest/--largest",
        "smallest",
        default=None,
        help="With --top: the smallest values, or the largest. By default the smallest of distances and levels.",
    ),
    option(
        "--join",
        metavar="NAME,NAME...",
        help="Add properties of the vertices to --top and --output: those that convert --vertices nodes.csv kept.",
    ),
    option("--prefix", metavar="TEXT", help="Put this before the names of columns in --output, as in weak_."),
    option(
        "-o",
        "--output",
        "path",
        type=PLACE,
        help=f"Write all values: {endings_of(ANSWERS)}; - is standard output. Beside a job file: of all its programs, "
        "as one table.",
    ),
    option(
        "--format",
        type=click.Choice(list(formats_of(ANSWERS))),
        help="Of the output; by its name if not given (-: csv). graphalytics: `id value` lines, as LDBC has them.",
    ),
    *STYLES,
    title="Answer",
)

_OF_A_TABLE = {"join", "path", "format", *(one.name for one in STYLES)}
tabling = OptionGroup("table", AnswerOptions.of, tuple(one for one in wanting.options if one.name in _OF_A_TABLE))
"""What a job says of one table of all its answers."""
