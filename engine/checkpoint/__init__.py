"""Checkpoints of a run: when, what, and whether one fits another run."""
