"""Connections to Redis: where it is, who is the master, sending and receiving."""
