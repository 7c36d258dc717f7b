"""What networkx reads of the backend whenever networkx itself is imported; so this file imports nothing."""

from __future__ import annotations

from typing import Any

FUNCTIONS = (
    "ancestors",
    "articulation_points",
    "average_clustering",
    "average_neighbor_degree",
    "betweenness_centrality",
    "bfs_layers",
    "biconnected_components",
    "bidirectional_dijkstra",
    "bidirectional_shortest_path",
    "bridges",
    "closeness_centrality",
    "clustering",
    "connected_components",
    "core_number",
    "degree_assortativity_coefficient",
    "degree_centrality",
    "descendants",
    "descendants_at_distance",
    "diameter",
    "dijkstra_path",
    "dijkstra_path_length",
    "eccentricity",
    "eigenvector_centrality",
    "harmonic_centrality",
    "has_bridges",
    "has_path",
    "hits",
    "in_degree_centrality",
    "is_biconnected",
    "is_connected",
    "is_strongly_connected",
    "is_weakly_connected",
    "isolates",
    "jaccard_coefficient",
    "katz_centrality",
    "leiden_communities",
    "minimum_spanning_edges",
    "multi_source_dijkstra",
    "multi_source_dijkstra_path",
    "multi_source_dijkstra_path_length",
    "node_connected_component",
    "number_connected_components",
    "number_of_isolates",
    "number_strongly_connected_components",
    "number_weakly_connected_components",
    "out_degree_centrality",
    "pagerank",
    "shortest_path",
    "shortest_path_length",
    "single_source_dijkstra",
    "single_source_dijkstra_path",
    "single_source_dijkstra_path_length",
    "single_source_shortest_path",
    "single_source_shortest_path_length",
    "single_target_shortest_path_length",
    "strongly_connected_components",
    "transitivity",
    "triangles",
    "weakly_connected_components",
)


def get_info() -> dict[str, Any]:
    """What networkx shows of the backend in its documentation."""
    note = {
        "additional_docs": "Graphs of networkx, or graph files of any size (`penstock.Graph.open`). Options of "
        "penstock.run may be given by name.",
        "additional_parameters": {},
    }
    return {
        "backend_name": "penstock",
        "project": "penstock",
        "package": "penstock",
        "short_summary": "Algorithms on graphs larger than memory, on CPU and GPU.",
        "functions": dict.fromkeys(FUNCTIONS, note),
    }
