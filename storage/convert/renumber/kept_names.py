"""The ids that the vertices of a graph file have already, as a conversion of that file keeps them."""

from penstock.storage.convert.renumber.name_store import NameStore, Original
from penstock.storage.convert.sort.memory_quota import ArrayStore
from penstock.storage.convert.sort.workspace import Workspace
from penstock.storage.encoding.string_array import StringArray
from penstock.storage.ingest.formats.graph_file import GraphFileSource


def known_ids(space: Workspace) -> tuple[Original, int | None]:
    """Original ids of the vertices, and of two sides how many sources; None and None for other inputs."""
    source = space.source
    if not isinstance(source, GraphFileSource):
        return None, None
    ids = source.original_ids()
    if not isinstance(ids, StringArray):
        return ids, source.left
    names = NameStore(ArrayStore(space.quota, space.scratch), sides=False, block_bytes=space.options.host_memory // 8)
    names.add(ids)
    return names, source.left
