"""Answers of several programs on one graph as one table: a row for each vertex, the columns of each program in turn."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from penstock.engine.program.program import Program, fields_of
from penstock.engine.state.answer_table import AnswerTable
from penstock.engine.state.result_columns import columns_of, property_columns
from penstock.storage.base.errors import InputError

if TYPE_CHECKING:
    from penstock.engine.state.result import Result
    from penstock.storage.format.graph import Graph
    from penstock.storage.tables.columns import Column, Columns


class JoinedAnswers(AnswerTable):
    """Answers that are kept in files until they are written as one table, so that no two of them are in memory.

    graph: on which all programs run. folder: where the files lie. joined: properties of the vertices that are the last
    columns.
    """

    def __init__(self, graph: Graph, folder: Path, joined: tuple[str, ...] = ()) -> None:
        self.graph, self.joined, self._folder = graph, joined, folder
        self._columns: dict[str, Column] = {}

    def add(self, result: Result) -> None:
        """Keep the answer of one program. Raises RunError where it cannot be written."""
        self._columns |= result.kept_in(self._folder)

    def _table(self) -> Columns:
        """Return the columns of all answers, and properties, to be read range by range."""
        found = {**columns_of(self.graph, {}), **self._columns}
        return {**found, **property_columns(self.graph, self.joined, found)}


def column_names(program: Program, prefix: str = "") -> list[str]:
    """Return the names of the columns that the answer of a program in its form has beside the ids."""
    names = []
    for name, field in fields_of(program).items():
        if field.output:
            places = range(int(np.prod(field.shape, dtype=np.int64)))
            names += [f"{prefix}{name}_{place}" for place in places] if field.shape else [prefix + name]
    return names


def check_columns(answers: Iterable[tuple[str, Iterable[str]]], joined: Iterable[str]) -> None:
    """Refuse columns of one name. answers: of each program its title and its columns; joined: properties beside them.

    Raises InputError.
    """
    taken: dict[str, str] = {}
    for title, names in answers:
        for name in names:
            if name in taken:
                raise InputError(
                    f"{taken[name]} and {title} both have a column {name!r}, and there is one table for all answers; "
                    f'write a prefix below [[programs]] of one of them, as in prefix = "second_"'
                )
            taken[name] = title
    for name in joined:
        if name in taken:
            raise InputError(f"--join {name}: {taken[name]} has a column of that name; rename the property")
