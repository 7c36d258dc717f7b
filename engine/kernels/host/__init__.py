"""Kernels on the CPU cores, compiled by Numba."""
