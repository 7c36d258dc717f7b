"""What this process holds beside the memory that it was asked to use, given back where it is not needed."""
