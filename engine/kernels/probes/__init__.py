"""Kernels that measure a machine: on the CPU cores, and on a GPU."""
