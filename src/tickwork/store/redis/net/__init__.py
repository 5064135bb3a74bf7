"""Connections to Redis: finding the server, sending commands, receiving replies and wake-ups."""
