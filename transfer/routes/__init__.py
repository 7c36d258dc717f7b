"""The routes by which edges reach a device, one file each; `registry.py` names them."""
