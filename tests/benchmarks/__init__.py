"""Measurements of Penstock, their history, and comparisons; `python tests/benchmarks` runs them."""
