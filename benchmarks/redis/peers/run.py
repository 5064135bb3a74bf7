"""`python -m benchmarks.redis.peers.run saq worker`: one side of one peer, as the harness starts it."""

from __future__ import annotations

import importlib
import sys

from benchmarks.redis.peers.common import AsyncPeer, SyncPeer, serve

if __name__ == "__main__":
    name, role = sys.argv[1:]
    peer: AsyncPeer | SyncPeer = importlib.import_module(f"benchmarks.redis.peers.{name}").peer
    if role == "worker":
        peer.work()
    else:
        serve(peer)
