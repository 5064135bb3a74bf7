"""What operators of a Redis store need: rights, health, audits, planned failovers."""
