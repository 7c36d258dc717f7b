"""Kernels of random walks on a GPU."""
