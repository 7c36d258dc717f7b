"""Kernels that are compiled before a run reaches them, by a second process."""
