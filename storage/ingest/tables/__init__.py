"""Edge lists in CSV tables: layout, columns, records."""
