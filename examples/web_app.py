"""A web application without an event loop: its views submit tasks through `app.sync` and ask what became of them.

    python examples/web_app.py                until Ctrl-C, on http://127.0.0.1:8000
    python examples/web_app.py --seconds 1    orders something from itself, and stops after a second

    curl -d '{"order": 7, "email": "ada@example.org"}' http://127.0.0.1:8000/orders
    curl http://127.0.0.1:8000/tasks/order-7

The server is the one of the standard library, to need nothing else; the views would look the same in Flask or Django.
The worker runs in this process too. In a real deployment it is a process of its own: `tickwork up web_app:app`.
"""

from __future__ import annotations

import argparse
import json
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tickwork import Scheduler, TaskExists, TaskNotFound

Reply = tuple[int, dict[str, Any]]

app = Scheduler("sqlite:///web_app.db")


@app.task(max_retry=3, timeout=60)
def confirm_order(order: int, email: str) -> str:
    time.sleep(0.05)  # stands for a mail server; blocking is fine here, it runs in a thread
    return f"order {order} confirmed to {email}"


# --- the views: plain functions from a request to a reply


def post_order(body: dict[str, Any]) -> Reply:
    """The id follows from the order, so a request that is sent twice makes one task."""
    task_id = f"order-{body['order']}"
    try:
        app.sync.submit("confirm_order", body, id=task_id)
    except TaskExists:
        return 200, {"task": task_id, "note": "ordered before"}
    return 202, {"task": task_id}


def get_task(task_id: str) -> Reply:
    try:
        info = app.sync.get_task(task_id)
    except TaskNotFound as error:
        return 404, {"error": str(error)}
    return 200, {"task": task_id, "status": info.status, "result": info.result.data if info.result else None}


class Views(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        try:
            reply = post_order(json.loads(self.rfile.read(length)))
        except (ValueError, KeyError) as error:  # no JSON, no order, or a payload that does not fit
            reply = 400, {"error": str(error)}
        self.answer(*reply)

    def do_GET(self) -> None:
        self.answer(*get_task(self.path.removeprefix("/tasks/")))

    def answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


# --- running it


def ask(url: str, body: dict[str, Any] | None = None) -> str:
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(url, data=data, timeout=10) as reply:
            return f"{reply.status} {reply.read().decode()}"
    except urllib.error.HTTPError as error:
        return f"{error.code} {error.read().decode()}"


def show(base: str) -> None:
    order = {"order": 7, "email": "ada@example.org"}
    print(ask(f"{base}/orders", order))
    print(ask(f"{base}/orders", order))
    print(ask(f"{base}/orders", {"order": "seven", "email": "ada@example.org"}))
    while '"success"' not in (reply := ask(f"{base}/tasks/order-7")):
        time.sleep(0.05)
    print(reply)
    print(ask(f"{base}/tasks/order-8"))


def main(seconds: float | None, port: int) -> None:
    app.sync.start()
    server = ThreadingHTTPServer(("127.0.0.1", port), Views)
    try:
        if seconds is None:
            print(f"listening on http://127.0.0.1:{server.server_port}")
            server.serve_forever()
        else:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            show(f"http://127.0.0.1:{server.server_port}")
            time.sleep(seconds)
            server.shutdown()
    except KeyboardInterrupt:
        print("stopping")
    finally:
        server.server_close()
        app.sync.shutdown()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A web application that submits tasks.")
    parser.add_argument("--seconds", type=float, help="order something from itself, and stop after so long")
    parser.add_argument("--port", type=int, default=8000, help="0 takes a free one")
    given = parser.parse_args()
    main(given.seconds, given.port)
