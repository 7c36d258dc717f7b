"""The graph file: schema, HDF5, stripes, index; opening a graph (`graph.py`) and writing one (`writer.py`)."""
