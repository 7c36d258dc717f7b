"""Input ids to vertex ids 0 to n-1: sets, string names, orders by degree."""
