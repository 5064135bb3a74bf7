"""Assigned dispatch: the leader picks a worker for each task of a queue that says so."""
