"""What several devices or processes exchange between iterations."""
