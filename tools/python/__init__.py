"""`penstock.run` and `penstock.convert`: those of the engine, which can show how far they are."""
