"""Threads of kernels on the CPU cores: how they wait, and loops that they share."""
