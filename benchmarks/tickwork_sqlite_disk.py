"""Tickwork on an SQLite file with `durability="disk"`: an fsync with every commit, as Huey does by default."""

from benchmarks.tickwork_common import TickworkSubject

subject = TickworkSubject(
    'SQLite store, durability="disk" (WAL, synchronous=FULL)',
    lambda folder: f"sqlite:///{folder}/tickwork.db",
    {"": 0.3, "submit.one": 0.1, "roundtrip": 0.1, "lateness": 1},
    durability="disk",
)
