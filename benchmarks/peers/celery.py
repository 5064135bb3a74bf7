"""Celery with Redis as broker and result backend. Groups are sent one by one, so there is no bulk submit.
A prefork pool of one costs a tenth more a task than the threads; the variant `solo` runs one task at a time and costs a
fifth less."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from celery import Celery as App

from benchmarks.peers.common import FILLER, PATIENCE, SyncPeer, ran, setting

app: Any = App("bench", broker=setting().url, backend=setting().url)


def _noop(number: int, filler: str) -> int:
    return ran(number)


noop: Any = app.task(name="noop")(_noop)


class Celery(SyncPeer):
    solo = setting().variant == "solo"
    about = f"Celery {version('celery')}, {'solo pool' if solo else 'pool of 10 threads'}, results kept a day (default)"
    offers = frozenset({"drain.10"}) if solo else SyncPeer.offers

    def submit(self, number: int) -> Any:
        return noop.delay(number, FILLER)

    def submit_at(self, number: int, at: float) -> Any:
        return noop.apply_async((number, FILLER), eta=datetime.fromtimestamp(at, UTC))

    def result(self, handle: Any) -> int:
        value: int = handle.get(timeout=PATIENCE)
        return value

    def work(self) -> None:
        pool = "solo" if self.solo else "threads"
        app.worker_main(["worker", f"--pool={pool}", "--concurrency=10", "--loglevel=WARNING"])


peer = Celery()
