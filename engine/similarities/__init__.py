"""Similarity of vertices by the neighbors that they share; see `similarity.py`."""
