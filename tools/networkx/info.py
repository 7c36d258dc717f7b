"""What networkx reads of the backend whenever networkx itself is imported; so this file imports nothing."""

from __future__ import annotations

from typing import Any

FUNCTIONS = (
    "connected_components",
    "descendants",
    "has_path",
    "is_connected",
    "is_weakly_connected",
    "number_connected_components",
    "number_weakly_connected_components",
    "pagerank",
    "single_source_dijkstra_path_length",
    "single_source_shortest_path_length",
    "weakly_connected_components",
)


def get_info() -> dict[str, Any]:
    """What networkx shows of the backend in its documentation."""
    note = {"additional_docs": "Options of penstock.engine.run may be given by name.", "additional_parameters": {}}
    return {
        "backend_name": "penstock",
        "project": "penstock",
        "package": "penstock",
        "short_summary": "Algorithms on graphs larger than memory, on CPU and GPU.",
        "functions": dict.fromkeys(FUNCTIONS, note),
    }
