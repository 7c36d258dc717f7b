"""What is asked of a graph beside programs: walks, samples, similar vertices, which vertices are chosen."""
