"""Edges to sorted rows: keys, runs, spill, groups, compiled sorts."""
