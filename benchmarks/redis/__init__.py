"""Tickwork on Redis against its peers: `python -m benchmarks --redis`.

Every scenario of every subject and round gets a Redis server of its own (a free port, no persistence), a client process
and a worker process, each in the environment of the peer. What they use is read from outside, so it is the same for
all: CPU from the kernel, for the worker with all its children; CPU of Redis from INFO; memory key by key. A handler
writes down that it ran in a file that all processes map, which costs well under a microsecond.

For a drain the worker is started, runs some tasks, is stopped (SIGSTOP) while the queue is filled and goes on: neither
imports nor connecting are counted. CPU is taken half a second after the last start, so that all results are written.

`growth.py` asks what a task costs as things grow, `costs.py` where it goes, `guard.py` whether it has come to cost
more.
"""
