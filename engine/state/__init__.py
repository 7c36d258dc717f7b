"""Vertex state: frontier, arrays on host and device, row blocks, records, results."""
