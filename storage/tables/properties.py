"""What a graph file says of the properties of its vertices, and where they are: a Parquet file beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.storage.base.errors import InputError

if TYPE_CHECKING:
    from penstock.storage.tables.property_file import PropertyFile

PROPERTIES = "properties"
"""In the provenance: the identity of the table, and the types of the properties by name."""
IDENTITY = "table"


def property_path(graph: Path) -> Path:
    """Where the properties of a graph file's vertices are: beside the file itself, where its name is a link."""
    place = graph.resolve() if graph.is_symlink() else graph
    return place.with_name(f"{place.stem}.vertices.parquet")


def hidden_path(graph: Path, identity: str) -> Path:
    """Where they are from before the graph has its name until they have theirs, so that no kill parts the two."""
    place = property_path(graph)
    return place.with_name(f".{re.sub('[^0-9a-f]', '', identity)[:16]}.{place.name}")


def property_facts(identity: str, types: Mapping[str, str]) -> dict[str, Any]:
    """What the provenance says of properties."""
    return {IDENTITY: identity, "types": dict(types)}


def property_types(provenance: Mapping[str, Any]) -> dict[str, str]:
    """The types of the properties by name, as Arrow calls them; none where there are none."""
    found = provenance.get(PROPERTIES)
    types = found.get("types") if isinstance(found, dict) else None
    return {str(name): str(kind) for name, kind in types.items()} if isinstance(types, dict) else {}


def open_properties(graph: Path | None, provenance: Mapping[str, Any], vertices: int) -> PropertyFile:
    """Open the properties of a graph. Raises InputError where it has none, or their file is missing or another's."""
    types = property_types(provenance)
    if graph is None or not types:
        place = graph or "a graph in memory"
        raise InputError(f"{place} has no properties of vertices; convert with --vertices nodes.csv, a table of them")
    from penstock.storage.tables.property_file import PropertyFile, identity_of

    identity, place = str(provenance[PROPERTIES].get(IDENTITY)), property_path(graph)
    hidden = hidden_path(graph, identity)
    if hidden.exists() and identity_of(place) != identity:
        place = hidden
    return PropertyFile(place, identity, vertices, types)
