"""The command line: the only floor that prints or exits."""
