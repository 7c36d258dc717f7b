"""The routes by which edges reach a device, one small file each; `table.py` names them."""
