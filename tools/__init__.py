"""Speaks: the command line. The only floor that prints, exits or reads the environment."""
