"""Raw input as bytes: files, decompressed streams, blocks of lines."""
