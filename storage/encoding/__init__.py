"""Encodings of ids and values: zstd frames, bit-packed differences, strings. Arrays in, bytes out, and back."""
