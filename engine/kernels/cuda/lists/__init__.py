"""Loops over the edges of a list, on a GPU: pushes and links by blocks of edges."""
