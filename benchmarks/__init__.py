"""Tickwork against its peers: `make bench`, or `python -m benchmarks --help`."""
