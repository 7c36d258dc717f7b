"""A raw graph becomes a graph file within a memory budget. `convert.py` is the story file."""
