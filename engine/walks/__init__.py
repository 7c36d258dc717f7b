"""Random walks: their options, the memory that they take, and how walkers advance partition by partition."""
