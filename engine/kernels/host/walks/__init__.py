"""Kernels of random walks and sampled neighborhoods on the CPU cores."""
