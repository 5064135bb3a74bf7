"""Tickwork on its memory store."""

from benchmarks.tickwork_common import TickworkSubject

subject = TickworkSubject("memory store, default settings", lambda folder: "memory://")
