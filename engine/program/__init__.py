"""What a program is: fields, combiner, parameters, checks, vertex ids, compiled bindings."""
