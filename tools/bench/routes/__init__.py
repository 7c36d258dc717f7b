"""The comparison of routes: what is compared, measured and drawn."""
