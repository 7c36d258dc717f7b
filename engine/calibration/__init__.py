"""Measuring this machine: one calibration and its probes."""
