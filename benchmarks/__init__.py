"""Tickwork against its peers, by store: `make bench`, or `python -m benchmarks --help`. They need Linux.

Every scenario of every subject and round gets processes of its own, in the environment of the peer. On Redis that is a
server (a free port, no persistence), a client and a worker; memory, and SQLite beside it, are measured in one process
that submits and works. What they use is read from outside, so it is the same for all: CPU from the kernel, for the
worker with all its children; CPU of Redis from INFO; memory key by key. A handler writes down that it ran in a file
that all processes map, which costs well under a microsecond.

For a drain a worker process is started, runs some tasks, is stopped (SIGSTOP) while the queue is filled and goes on:
neither imports nor connecting are counted. In one process the queue is filled before the worker begins. CPU is taken
half a second after the last start, so that all results are written.

`growth/` asks what a task costs as things grow, `costs.py` where it goes, `guard.py` whether it has come to cost more,
in multiples of what `references.py` measures.
"""
