"""A server that takes what the SDK of Sentry sends, on a free port of this host."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sentry_sdk.envelope import Envelope


class Endpoint(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Taker)
        self.bodies: list[bytes] = []

    @property
    def dsn(self) -> str:
        return f"http://key@127.0.0.1:{self.server_address[1]}/1"

    def _items(self, kind: str) -> list[dict[str, Any]]:
        envelopes = [Envelope.deserialize(body) for body in list(self.bodies)]
        return [item.payload.json or {} for each in envelopes for item in each.items if item.type == kind]

    @property
    def events(self) -> list[dict[str, Any]]:
        return self._items("event")

    @property
    def transactions(self) -> list[dict[str, Any]]:
        return self._items("transaction")


class _Taker(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.bodies.append(gzip.decompress(body) if self.headers["content-encoding"] == "gzip" else body)
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def sentry_endpoint() -> Iterator[Endpoint]:
    with Endpoint() as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        serving.start()
        try:
            yield server
        finally:
            server.shutdown()
            serving.join()
