"""Loops over the edges of a list, on the CPU cores: pushes and links by blocks of edges."""
