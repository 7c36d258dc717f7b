"""Penstock: graph algorithms on graphs larger than GPU memory and larger than host memory, on one machine.

This folder is the top package `penstock` (`pyproject.toml`, package-dir); its floors are packages of their own.
"""

__version__ = "0.1.0"
