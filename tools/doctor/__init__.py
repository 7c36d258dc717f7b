"""What this machine and this installation have, and what is missing: `penstock doctor`."""
