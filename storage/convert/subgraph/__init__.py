"""Part of a graph becomes a graph: which vertices and edges stay, and how they are written."""
