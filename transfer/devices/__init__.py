"""Devices: the cores, CUDA, an emulated link, timestamps."""
