"""What a run works with: configuration, direction, edge streams, host and device memory."""
