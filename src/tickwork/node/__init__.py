"""A running process: its parts, the leadership, and the duties that are repeated."""
