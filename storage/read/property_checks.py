"""What is wrong with the properties of a graph's vertices: their file, its rows, the ids that they are of."""

from collections.abc import Iterator

import numpy as np
from penstock.storage.base.errors import InputError, RunError
from penstock.storage.format.graph import Graph
from penstock.storage.read.scan import GraphProblem
from penstock.storage.tables.properties import open_properties, property_path


def property_problems(graph: Graph) -> Iterator[GraphProblem]:
    """Read all properties of a graph's vertices; they belong to its ids, in ascending order."""
    if graph.path is None or not graph.properties:
        return
    place = str(property_path(graph.path))
    try:
        properties = open_properties(graph.path, graph.provenance, graph.vertices)
        stored = graph.original_ids()
        wanted = np.arange(graph.vertices, dtype=np.uint64) if stored is None else np.sort(stored)
        first = 0
        for ids in properties.checked_ids():
            if not np.array_equal(ids, wanted[first : first + len(ids)]):
                yield GraphProblem(place, f"rows {first} to {first + len(ids) - 1} are not those of the graph's ids")
            first += len(ids)
    except (InputError, RunError) as error:
        yield GraphProblem(place, str(error))
