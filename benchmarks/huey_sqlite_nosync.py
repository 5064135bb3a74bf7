"""Huey on an SQLite file with `fsync=False` (synchronous=OFF): its fastest setting, safe against less than Tickwork's
default, which still syncs at checkpoints."""

from benchmarks.huey_common import HueySubject

subject = HueySubject(
    "fsync=False (WAL, synchronous=OFF)",
    {"": 0.3, "lateness": 0.5, "roundtrip": 0.03},
    fsync=False,
)
