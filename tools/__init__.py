"""The command line: the only floor that prints, exits or reads the environment."""
