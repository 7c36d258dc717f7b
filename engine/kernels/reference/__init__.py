"""The kernels in plain Python: the definition of what is right."""
