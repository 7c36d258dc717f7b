"""Writing graphs that keep the order of their input: keys in chunks, spans of blocks, degrees counted as edges pass."""
