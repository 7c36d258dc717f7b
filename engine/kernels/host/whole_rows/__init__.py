"""Kernels of programs on whole rows on the CPU cores."""
