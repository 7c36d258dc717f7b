"""What this process need not hold beside the memory that it was asked to use: given back, or held by others."""
