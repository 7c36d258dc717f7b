"""Raw graph data in every input format, as edge batches. `open_source.py` is the entry."""
