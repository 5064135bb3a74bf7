"""The shop's own data, in a SQLite file beside the store of the tasks."""

from __future__ import annotations

import os
import sqlite3

TABLES = """
CREATE TABLE IF NOT EXISTS stock (item TEXT PRIMARY KEY, count INTEGER);
CREATE TABLE IF NOT EXISTS payments (order_id INTEGER PRIMARY KEY, amount TEXT, day TEXT);
CREATE TABLE IF NOT EXISTS parcels (order_id INTEGER PRIMARY KEY, item TEXT);
CREATE TABLE IF NOT EXISTS reports (day TEXT PRIMARY KEY, payments INTEGER);
INSERT OR IGNORE INTO stock VALUES ('lamp', 20), ('chair', 1);
"""


def connect() -> sqlite3.Connection:
    """A connection whose every statement is a transaction of its own, unless it is told to begin one."""
    database = sqlite3.connect(os.environ.get("SHOP_DB", "shop-data.db"), timeout=60, isolation_level=None)
    database.executescript(TABLES)
    return database
