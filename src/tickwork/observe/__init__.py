"""Loggers, tracebacks, and the facts of this process for whoever listens."""
