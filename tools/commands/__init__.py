"""The commands of the command line, one file each; each file holds `command`."""
