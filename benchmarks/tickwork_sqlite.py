"""Tickwork on an SQLite file with default settings: WAL, synchronous=NORMAL, group commit."""

from benchmarks.tickwork_common import TickworkSubject

subject = TickworkSubject(
    "SQLite store, default settings (WAL, synchronous=NORMAL)",
    lambda folder: f"sqlite:///{folder}/tickwork.db",
    {"submit.one": 0.4, "roundtrip": 0.5},
)
