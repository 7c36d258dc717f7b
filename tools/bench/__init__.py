"""Benchmarks: what the systems are asked, how they are timed and compared."""
