"""What every input format shares: the `Source` protocol, numbers, pyarrow."""
