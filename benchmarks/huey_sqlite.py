"""Huey on an SQLite file as it comes: WAL and an fsync with every commit; its consumer in this process."""

from benchmarks.huey_common import HueySubject

subject = HueySubject(
    "default settings (WAL, synchronous=FULL)",
    {"": 0.04, "submit.one": 0.08, "roundtrip": 0.03, "lateness": 0.25},
)
