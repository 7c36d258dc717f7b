"""Which vertices of a graph are chosen by conditions on their neighborhoods, components, cores, degrees and ids."""
