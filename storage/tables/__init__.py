"""Tables: columns read range by range, Arrow streams and frames, and the files that Arrow writes."""
