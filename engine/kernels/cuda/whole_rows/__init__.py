"""Kernels of programs on whole rows on a GPU."""
