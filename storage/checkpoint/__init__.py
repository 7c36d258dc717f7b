"""Checkpoint files and the folder that holds the checkpoints of a run."""
