"""Moves edges: partitions, costs, plans and the pipeline by which views reach a device.

Owns everything between the chunks that storage keeps and the views that the engine pulls.
Knows no algorithm, prints nothing, calls nothing above it.
"""
