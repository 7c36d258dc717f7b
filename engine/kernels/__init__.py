"""Compiled kernels: reference (plain Python), host (Numba), CUDA (numba-cuda)."""
