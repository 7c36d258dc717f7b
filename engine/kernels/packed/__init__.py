"""Decoding payloads for a device: a kernel on a GPU, the host's decoder elsewhere (`storage/encoding/bitpack.py`)."""
