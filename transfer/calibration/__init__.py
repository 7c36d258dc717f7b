"""Rates of this machine: copy probe, fitted kernel cost, feedback from records."""
