"""Buffers and copies between disk, host memory and device."""
