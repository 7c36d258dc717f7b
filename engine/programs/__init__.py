"""The programs that come with Penstock, one small file each."""
