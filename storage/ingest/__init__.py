"""Raw graph data in any spelling, turned into edge batches. README.md says which parser and why."""
