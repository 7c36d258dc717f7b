"""What `penstock report` reads, concludes and draws."""
