"""Edge lists and row lists in text: compiled parsers and the diagnosis of bad lines."""
