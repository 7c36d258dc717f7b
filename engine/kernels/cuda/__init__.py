"""Kernels on a GPU, compiled by numba-cuda and launched through CuPy."""
