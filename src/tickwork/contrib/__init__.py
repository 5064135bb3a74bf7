"""Bridges to frameworks, each imported by those who use it and by nobody else."""
