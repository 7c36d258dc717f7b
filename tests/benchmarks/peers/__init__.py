"""Other programs, built by the user from their public sources, beside Penstock: the suite `peers` (suite.py)."""
