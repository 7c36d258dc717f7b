"""What several processes exchange between iterations."""
