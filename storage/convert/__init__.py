"""A raw graph becomes a graph file: inside its memory, whole or not at all. See README.md."""
