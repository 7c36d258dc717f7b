"""Exactly the listed vertices exist (`--vertices`): an edge with any other id is refused, and named.

The list is sorted in memory, 8 bytes an id and at most 8 of guide, as the map of `--renumber` is. Ids that are exactly
0 to n-1 stay; others are renumbered, and results are in the original ids. Names are checked by `numbering.Named`.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from penstock.storage.convert.renumber.id_mapping import Numbered, Unlisted
from penstock.storage.convert.renumber.id_sets import IdMap, IdSet
from penstock.storage.convert.sort.workspace import Workspace
from penstock.storage.format.edges import EdgeBatch


class ListedIds:
    """The listed ids, ascending, are 0 to n-1; see `numbering.Numbering`."""

    def __init__(self, space: Workspace, blocks: Iterator[NDArray[Any]]) -> None:
        found = IdSet(space.share.id_bytes, "--vertices")
        for ids in blocks:
            found.add(np.unique(ids).astype(np.uint64))
        self._map = IdMap(found.merged())

    def look(self, batch: EdgeBatch) -> Unlisted | None:
        """The first edge of a batch that has an id which is not listed."""
        ends = [(batch.sources, "source"), (batch.targets, "target")]
        found = [(self._map.first_other(ids), role, ids) for ids, role in ends]
        bad = [(at, role, ids) for at, role, ids in found if at >= 0]
        if bad:
            at, role, ids = min(bad, key=lambda one: one[0])
            return Unlisted(str(ids[at]), role, at)
        at = -1 if batch.lone is None else self._map.first_other(batch.lone)
        return None if at < 0 or batch.lone is None else Unlisted(str(batch.lone[at]), "vertex", None)

    def take(self, batch: EdgeBatch, seen: Unlisted | None) -> EdgeBatch:
        """Return the batch. Raises Unlisted."""
        if seen is not None:
            raise seen
        return batch

    def finish(self) -> Numbered:
        """Map them."""
        ids = self._map.ids
        if len(ids) == 0 or int(ids[-1]) == len(ids) - 1:
            return Numbered(len(ids))
        return Numbered(len(ids), self._map, self._map, ids)
