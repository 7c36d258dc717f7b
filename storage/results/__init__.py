"""Result tables in every output format."""
