"""Which kernels a run uses, and their compiling before it reaches them, by a second process."""
