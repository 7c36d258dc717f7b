"""The dispatch backend of networkx."""
