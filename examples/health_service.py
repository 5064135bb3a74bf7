"""A capability of your own: a small HTTP server that tells how a node is, and a duty that looks at the backlog.

Both are added to a scheduler before it is started, and then belong to its node: the server listens before the first
task and until after the last one, and either is started again if it fails. docs/extending.md explains it.

Run me: python examples/health_service.py, and ask me: curl http://127.0.0.1:8081/health
"""

from __future__ import annotations

import argparse
import asyncio
import json

from tickwork import Duty, Scheduler, Service


class HealthServer:
    """Answers every request with the same few numbers."""

    def __init__(self, app: Scheduler, port: int) -> None:
        self.port = port  # 0: any that is free; known once it is started
        self._app = app
        self._waiting = 0
        self._server: asyncio.Server

    async def start(self) -> None:
        """Raises if the port is taken, and then the scheduler does not start."""
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def run(self) -> None:
        await self._server.serve_forever()

    async def look(self) -> None:
        """A duty: looks at the store now and then, so that no request has to."""
        stats = await self._app.queue_stats()
        self._waiting = stats.high_count + stats.normal_count + stats.low_count

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(5):
            await reader.readuntil(b"\r\n\r\n")
        body = json.dumps({"status": "healthy", "waiting": self._waiting}).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
        await writer.drain()
        writer.close()


def add_health(app: Scheduler, port: int) -> HealthServer:
    """All that a program has to call to get it."""
    server = HealthServer(app, port)
    app.add_service(Service("the health server", server.run, start=server.start))
    app.add_duty(Duty("look at the backlog", server.look, every=1.0, who="all"))
    return server


async def main(port: int, seconds: float | None) -> None:
    app = Scheduler("memory://")
    server = add_health(app, port)
    async with app:
        if seconds is None:
            print(f"http://127.0.0.1:{server.port}/health")
            await app.wait_stopped()
        else:
            print(await ask(server.port))


async def ask(port: int) -> str:
    """What a request is answered: the body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    answer = (await reader.read()).decode()
    writer.close()
    return answer.partition("\r\n\r\n")[2]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8081)
    parser.add_argument("--seconds", type=float, help="ask myself once, and end")
    arguments = parser.parse_args()
    asyncio.run(main(arguments.port, arguments.seconds))
