"""Tools for operators of a Redis store: rights, health, audits, planned failovers."""
