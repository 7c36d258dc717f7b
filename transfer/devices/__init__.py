"""Devices: the protocol, the host, CUDA, an emulated link, timestamps."""
