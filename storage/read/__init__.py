"""Reading chunks of a graph with several threads (`reader.py`), the cache of partitions, verification, probes."""
