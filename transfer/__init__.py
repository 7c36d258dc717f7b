"""Moves edges: partitions, costs, plans and the pipeline by which views reach a device. `pipeline.py`
is the story file."""
