"""A run begins from the answer of an earlier one, where its graph has only won edges since (`earlier=`).

An answer in HDF5 says of which graph and of which run it is. The graph's provenance lists what it was before each
change; added edges have the number of theirs, so those added since are known. Where edges were removed since, or the
answer is of another graph or run, the program begins from the start, and the log says so.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Sized
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.program import Program, fields_of
from penstock.storage.base.errors import InputError
from penstock.storage.encoding.codec import checksum
from penstock.storage.format.fingerprint import fingerprint
from penstock.storage.format.graph import Graph
from penstock.storage.format.schema import CHANGES

Answer = str | Path | None
"""An answer of an earlier run, in HDF5."""
PARAMETERS = ("source", "needs_weights", "target", "cutoff")
"""What of a program its answer depends on, of those that begin from an earlier one."""
_log = logging.getLogger("penstock.engine.program.earlier_answer")


def origin_of(program: Program, graph: Graph) -> str:
    """Return what an answer says of its run, and "" of programs that begin from no earlier answer."""
    if not hasattr(program, "earlier"):
        return ""
    told = {name: getattr(program, name, None) for name in PARAMETERS}
    names = sorted(name for name, field in fields_of(program).items() if field.output and name != "parent")
    digest = checksum(json.dumps([names, told], sort_keys=True, default=_plain).encode())
    return f"{fingerprint(graph)['content']} {digest:016x}"


def _plain(value: Any) -> Any:
    """All items of an array, of which `str` leaves some out; an iterator, whose items are gone, is like no other."""
    if isinstance(value, np.generic):
        return value.item()
    return list(value) if isinstance(value, Sized) and isinstance(value, Iterable) else os.urandom(8).hex()


class EarlierAnswer:
    """The values of one field of an earlier answer, by the vertices of a graph that has grown since."""

    def __init__(self, program: Program, graph: Graph, path: Answer, name: str) -> None:
        from penstock.storage.format.hdf5 import read_columns  # h5py takes long to import

        self.graph, self.path = graph, path
        columns, self._origin = read_columns(Path(str(path)))
        self._here = origin_of(program, graph)
        names, values = columns.get("vertex"), columns.get(name)
        if names is None or values is None or names.dtype.kind not in "iu" or len(names) != len(values):
            raise InputError(
                f"{path} has no {name} of vertices; name an answer in HDF5 (--output NAME.h5) of this program"
            )
        self._names, self._values = names, values

    def values(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Return a value for every vertex, and which have one."""
        place, known = self.places(np.arange(self.graph.vertices))
        return self._values[place], known

    def members(self) -> NDArray[np.int64]:
        """Return for every vertex the one that its value names; itself where it has no value."""
        group = np.arange(self.graph.vertices)
        place, known = self.places(group)
        vertices = np.empty(len(self._names), np.int64)
        vertices[place[known]] = group[known]
        named = np.minimum(np.searchsorted(self._names, self._values), len(self._names) - 1)
        group[known] = vertices[named[place[known]]]
        return group

    def places(self, vertices: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the rows of some vertices in the answer, which are in the order of their ids; which have one."""
        ids = self.graph.original_ids_of(vertices)
        place = np.minimum(np.searchsorted(self._names, ids), max(0, len(self._names) - 1))
        return place, (self._names[place] == ids if len(self._names) else np.zeros(len(ids), np.bool_))

    def added_since(self) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Return the ends of the edges that were added since, as rows have them; None, and why is logged: not only."""
        content, _, run = self._origin.partition(" ")
        graph, now = self.graph, self._here.partition(" ")
        if run != now[2]:
            return self._unusable("is of another program, of other parameters, or of a run that did not end")
        changes = graph.provenance.get(CHANGES, [])
        before = [*(change["content"] for change in changes), now[0]]
        if content not in before:
            return self._unusable(f"is of another graph, or of one that was compacted since, and not of {graph.path}")
        turn = before.index(content)
        if any(change["removed"] for change in changes[turn:]):
            return self._unusable(f"is of a time before edges of {graph.path} were removed")
        splice = graph.out.splice
        if turn == len(changes):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        if splice is None:
            return self._unusable(f"is of a time before {graph.path} was changed, and the added edges are not apart")
        new = splice.turns >= turn
        return graph.out.index().rows_of(splice.places[new]), splice.neighbors[new].astype(np.int64)

    def _unusable(self, why: str) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Say why the answer is of no use; returns None."""
        _log.warning("%s %s: the run begins from the start", self.path, why)
        return None


def joined_groups(group: NDArray[np.int64], ones: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the groups that edges join, each by the least of the members that name those it is joined of.

    group: of each vertex the member that names its group. ones, others: the ends of edges.
    """
    ends = np.stack([group[ones], group[others]])
    ends = ends[:, ends[0] != ends[1]]
    names, places = np.unique(ends, return_inverse=True)
    places, parent = places.reshape(ends.shape), np.arange(len(names))
    while True:
        roots = parent[places]
        if (roots[0] == roots[1]).all():
            break
        np.minimum.at(parent, roots.max(axis=0), roots.min(axis=0))
        while not np.array_equal(parent, parent[parent]):
            parent = parent[parent]
    table = np.arange(len(group))
    table[names] = names[parent]
    return table[group]
