"""A second process that compiles kernels for this one."""
