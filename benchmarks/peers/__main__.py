"""`python -m benchmarks.peers saq worker`: one side of one peer, as the harness starts it."""

from __future__ import annotations

import importlib
import sys

from benchmarks.peers.common import AsyncPeer, SyncPeer, serve

name, role = sys.argv[1:]
peer: AsyncPeer | SyncPeer = importlib.import_module(f"benchmarks.peers.{name}").peer
if role == "worker":
    peer.work()
else:
    serve(peer)
