"""Memory and time of a run, computed before it starts."""
