"""Storage keeps: files, formats, conversion, caches. It knows no device and no algorithm."""
