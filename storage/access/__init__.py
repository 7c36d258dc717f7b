"""What a graph answers about its vertices and edges: lookup of ids, neighbors, edges as a table."""
