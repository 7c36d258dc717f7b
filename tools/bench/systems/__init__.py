"""The systems compared: Penstock and its peers."""
