"""How a run advances: the loop and the operators with a schedule of their own."""
