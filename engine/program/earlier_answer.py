"""A run begins from the answer of an earlier one (`run --from`), where its graph has only won edges since.

An answer in HDF5 says of which graph and of which run it is. The graph's provenance lists what it was before each
change; added edges have the number of theirs, so those added since are known. Where edges were removed since, or the
answer is of another graph or run, the program begins from the start, and the log says so.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Sized
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.engine.program.program import Program, absent_value, fields_of
from penstock.engine.program.vertex_ranges import each_range
from penstock.storage.access.vertex_lookup import vertices_of_ids
from penstock.storage.base.errors import InputError
from penstock.storage.encoding.codec import checksum
from penstock.storage.encoding.string_array import distinct
from penstock.storage.format.fingerprint import fingerprint
from penstock.storage.format.graph import Graph
from penstock.storage.format.schema import CHANGES

Answer = str | Path | None
"""An answer of an earlier run, in HDF5."""
ANSWER_BYTES = 24
"""Memory of a vertex while an answer is taken: its id, its value and its number."""
PARAMETERS = ("source", "needs_weights", "target", "cutoff")
"""What of a program its answer depends on, of those that begin from an earlier one."""
Ends = tuple[NDArray[np.int64], NDArray[np.int64]]
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

        self.graph, self.path, self._name = graph, Path(str(path)), name
        self._bounded, self._here = getattr(program, "bounded", False), origin_of(program, graph)
        self._read = partial(read_columns, self.path)

    def fill(self, out: NDArray[Any], *, members: bool = False) -> None:
        """Set `out`, (vertices,), where the answer has a value; members: to the vertex that this names."""
        graph, (columns, _) = self.graph, self._read(("vertex", self._name))
        names, values = columns.get("vertex"), columns.get(self._name)
        if names is None or values is None or len(names) != len(values):
            raise InputError(
                f"{self.path} has no {self._name} of vertices; name an answer in HDF5 of this program (--output A.h5)"
            )
        two_sided = graph.left is not None  # rows are in the order of vertices, which values number
        vertices = np.arange(len(names)) if two_sided else vertices_of_ids(graph, names)
        if members and values.dtype.kind == "T":
            ids, numbers = distinct(values)
            values, members = vertices_of_ids(graph, ids)[numbers], False
        most = np.inf if values.dtype.kind == "f" else np.iinfo(values.dtype).max
        held = most if out.dtype.kind == "f" else np.iinfo(out.dtype).max - 1

        def take(first: int, last: int) -> None:
            part, places = values[first:last], vertices[first:last]
            known = (places >= 0) & (places < graph.vertices) & (part < most)
            if members and not two_sided:
                part = vertices[np.minimum(np.searchsorted(names, part), len(names) - 1)]
            out[places[known]] = np.minimum(part[known], held)

        each_range(take, len(vertices))

    def added_since(self) -> Ends | None:
        """Return the ends of the edges that were added since, as rows have them; None, and why is logged: not only."""
        graph, now = self.graph, self._here.partition(" ")
        content, _, run = self._read(())[1].partition(" ")
        if self._bounded:
            return self._unusable("does not serve a run with a target or a cutoff")
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

    def _unusable(self, why: str) -> Ends | None:
        """Say why the answer is of no use; returns None."""
        _log.warning("%s %s: the run begins from the start", self.path, why)
        return None


def join_groups(group: NDArray[Any], ones: NDArray[np.int64], others: NDArray[np.int64]) -> None:
    """Join groups along edges, each to the least of the members that name those it is joined of.

    group: of each vertex the member that names its group; changed. ones, others: the ends of edges.
    """
    ends = np.stack([group[ones], group[others]])
    names, roots = joined_ends(ends[:, ends[0] != ends[1]])
    joined = np.flatnonzero(roots != names)
    old, new = names[joined], roots[joined]

    def rename(first: int, last: int) -> None:
        part = group[first:last]
        at = np.minimum(np.searchsorted(old, part), len(old) - 1)
        part[:] = np.where(old[at] == part, new[at], part)

    if len(old):
        each_range(rename, len(group))


def joined_ends(ends: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the numbers that occur in pairs, (2, pairs), ascending, and of each the least one that it is joined to."""
    names, places = np.unique(ends, return_inverse=True)
    places, parent = places.reshape(ends.shape), np.arange(len(names))
    while True:
        roots = parent[places]
        if (roots[0] == roots[1]).all():
            return names, names[parent]
        np.minimum.at(parent, roots.max(axis=0), roots.min(axis=0))
        while not np.array_equal(parent, parent[parent]):
            parent = parent[parent]


def improved(program: Any, graph: Graph, distance: NDArray[Any], first: NDArray[Any]) -> NDArray[Any]:
    """Take distances of an earlier answer; return the vertices to begin with, from which edges were added.

    program: that finds them, `earlier` the answer. first: what it begins with from the start.
    """
    name = next(iter(fields_of(program)))
    answer = EarlierAnswer(program, graph, program.earlier, name)
    added = answer.added_since()
    if added is None:
        return first
    answer.fill(distance)
    begin = np.unique(added[0])
    return np.asarray(begin[distance[begin] != absent_value(program, name, distance)])
