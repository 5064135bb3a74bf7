"""A running process: its parts, who leads, and the duties that are done again and again."""
