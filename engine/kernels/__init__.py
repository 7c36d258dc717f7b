"""Kernels: the few loops over edges and vertices into which an author's functions are compiled."""
