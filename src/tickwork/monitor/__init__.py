"""What a node tells of itself while it runs. Nothing here is imported before an option asks for it."""
