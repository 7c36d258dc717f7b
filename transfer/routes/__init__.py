"""The routes by which edges reach a device, all named in `registry.py`."""
