"""Every key of a namespace: its name, type and bound. `docs/redis.md` is made from this table.

All keys begin with the namespace as a hash tag and the layout, `{shop}:3:`, so that one Redis Cluster slot holds them,
and so that no script of another layout ever touches them. With several partitions each has a tag of its own,
`{shop/0}:3:`, for the tasks; the rest stays under `{shop}:3:`. What workers have no right to is under
`control:{shop}:3:`, in the slot of `{shop}:3:`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tickwork.errors import ConfigError
from tickwork.ids import partition_of

NAMESPACE = re.compile(r"[A-Za-z0-9._:-]{1,64}")
PARTITIONS_MAX = 48  # so that the log of each has at least 20,000 numbers a second: see `last_number`
VERSION = "3"  # of the layout; a namespace with another one is refused, or migrated
BEFORE = "2"  # the layout that can be migrated


class Key(NamedTuple):
    name: str
    kind: str
    holds: str
    bound: str


# In every partition.
TASK_KEYS = (
    Key(
        "task:<id>", "String", "a task: lengths, label, body (what was asked), state (what became of it)", "one a task"
    ),
    Key("stream:<band>:<queue>", "Stream", "ready tasks in order; a claim takes them from its head", "ready tasks"),
    Key("front:<band>:<queue>", "ZSet", "ready tasks that were released or taken back; claimed first", "ready tasks"),
    Key(
        "side:<band>:<queue>/<kind>",
        "ZSet",
        "parked tasks: ready, of a type (and needs) that a claimer could not start",
        "ready tasks",
    ),
    Key(
        "fair:<band>:<queue>",
        "ZSet",
        "ready tasks of a fair queue by virtual time; members are submit order (11 hex digits) and id",
        "ready tasks",
    ),
    Key("virtual", "ZSet", "the virtual time of each fair lane that holds something", "lanes"),
    Key("turns:<band>:<queue>", "ZSet", "how far in virtual time each key of a fair lane has come", "keys that wait"),
    Key("incoming:<nonce>", "String", "a value over 64 KB that a submit is about to rename to its task", "a minute"),
    Key("lines:<id>", "List", "the last log lines of a task", "`log_lines_max`"),
    Key("attempts:<id>", "List", "the earlier runs of a task (msgpack)", "20"),
    Key("aside", "Set", "the front, side and fair lanes that hold something", "lanes"),
    Key("aside:needs", "Set", "those side lanes whose tasks need more than a handler", "lanes"),
    Key("lanes", "Set", "all lanes seen, as `<band>:<queue>`", "queues x 3"),
    Key(
        "delayed", "ZSet", "pending tasks by due time; members are submit order (11 hex digits) and id", "delayed tasks"
    ),
    Key("retrying", "ZSet", "tasks that wait for their next attempt, in the same form", "delayed tasks"),
    Key("expected", "String", "the time of the next delayed task, and the worker that was told of it", "3 seconds"),
    Key("blocked", "ZSet", "tasks that wait for others, by submit order", "blocked tasks"),
    Key("leases:<worker>", "ZSet", "running tasks of a worker by the end of their lease", "running tasks"),
    Key("lessees", "ZSet", "workers with leases, by a time before which none of theirs ends", "workers"),
    Key("inbox:<worker>", "ZSet", "tasks that are assigned to a worker, by the end of the hold", "assigned tasks"),
    Key("inboxes", "ZSet", "workers with an inbox, by a time before which no hold of theirs ends", "workers"),
    Key("deadlines", "ZSet", "tasks by the time until which they must start, in the same form", "tasks with `expires`"),
    Key("ended:<status>", "Stream", "ended tasks in the order in which they ended", "`retention`, `dlq_max`"),
    Key("kept", "ZSet", "ended tasks with a retention of their own, by its end", "tasks with `retention`"),
    Key("walked", "Hash", "by status: the last ended task that was looked at and has one", "4"),
    Key("claims", "Hash", "the last claim of each turn of a worker, `<worker>#<turn>`: nonce and ids", "workers x 3"),
    Key(
        "chances",
        "Hash",
        "the task of each process that one more lost worker would end for good, and its fence",
        "nodes",
    ),
    Key(
        "dedup:<key>",
        "String",
        "until when, or `q` (while it is queued) or `u` (while it is unfinished), and the task that holds the key",
        "its TTL, or its task",
    ),
    Key("dependants:<id>", "ZSet", "blocked tasks that wait for this one", "dependencies"),
    Key("awaited", "Set", "tasks that have dependants", "dependencies"),
    Key("outbox", "ZSet", "ended tasks with dependants or a schedule to be notified, in order", "tasks in the outbox"),
    Key("outbox:status", "Hash", "how they ended, and their schedule", "tasks in the outbox"),
    Key("watchers", "Hash", "channels on which the end of a task is published", "tasks waited for"),
    Key("pauses", "Hash", "`queue:<name>` or `type:<name>`: since when, and a note", "pauses"),
    Key("wake:<queue>", "List", "one token when there may be work; idle workers block on it", "1"),
    Key(
        "wake:/<worker>",
        "List",
        "one token when its standing claim is to be answered, or has an assigned task",
        "1",
    ),
    Key("index:all", "ZSet", "all tasks by submit order, while lists are indexed", "tasks"),
    Key("index:<kind>:<name>", "ZSet", "those of a type, queue or key (`type`, `queue`, `key`)", "tasks"),
    Key("indexes", "Set", "the indexes that there are", "types + queues + keys"),
    Key("layout", "String", "the version of this layout; and `i` while lists are indexed, `b` while that begins", "1"),
    Key("pulse", "String", "when somebody last called, and until when no lease counts as expired", "1"),
    Key("position", "String", "counts submits, and positions in lanes and ends", "1"),
    Key("facts", "String", "the number of the last fact", "1"),
    Key("events", "Stream", "the log; an entry holds the facts of one step", "100,000 facts"),
    Key("dropped", "String", "counts what a full dead-letter queue dropped", "1"),
)
# Once in a namespace.
NAMESPACE_KEYS = (
    Key(
        "meta",
        "Hash",
        "version of this layout, number of partitions, epoch, how far the clock was set back in all, the server",
        "5",
    ),
    Key("workers", "Hash", "the description of each worker (msgpack)", "workers"),
    Key("workers:times", "Hash", "started, last beat, end of lease, and when it was lost", "workers"),
    Key("workers:nodes", "Hash", "the node of each worker", "workers"),
    Key("workers:orders", "Hash", "what a worker is asked to do, such as `capacity=20 drain`", "workers"),
    Key("workers:online", "ZSet", "workers by the end of their lease", "workers"),
    Key("schedule:leader", "Hash", "who leads: id, term, until, ttl", "4"),
    Key("schedules", "Hash", "the schedules (msgpack)", "schedules"),
    Key("schedules:next", "ZSet", "active schedules by their next tick", "schedules"),
    Key("lock:<name>", "String", "a lock: fence, until when (0, and when it was released), owner", "its TTL"),
    Key("marks", "Hash", "small texts by name, such as how far the webhooks have read the log", "webhooks x 2"),
    Key("gate:<name>", "String", "a limit or breaker: its rule, tokens, failures (msgpack)", "a minute after its use"),
    Key(
        "gate-in:<name>", "ZSet", "tasks that were let through, by the end of their time", "`concurrency` of the limit"
    ),
    Key("gate-waits:<name>", "ZSet", "tasks that wait at a limit, breaker or switch, by their order", "delayed tasks"),
    Key("gates:due", "ZSet", "gates at which tasks wait, by the time when there may be room", "gates"),
    Key("gates:waiting", "ZSet", "the same gates by the number of those who wait, as a negative one", "gates"),
    Key("gates:open", "ZSet", "breakers that are open, by the time until which they are", "breakers"),
    Key("fences", "String", "the last fence of a lock", "1"),
)
# Once in a namespace, behind `control_prefix`.
CONTROL_KEYS = (
    Key("doc:<kind>", "Hash", "documents of the server by name, such as tokens, sessions and views", "documents"),
    Key("names:<kind>", "ZSet", "their names, in order", "documents"),
    Key("journal:<name>", "Stream", "a journal of the server; the ids of its entries are their numbers", "its `keep`"),
)
KEYS = TASK_KEYS + NAMESPACE_KEYS + CONTROL_KEYS


def control_prefix(root: str) -> str:
    """The prefix of what a server keeps beside the tasks. The patterns of a worker's rights begin with `{`, so they do
    not match it."""
    return f"control:{root}"


class Layout:
    """The prefixes of one namespace."""

    def __init__(self, namespace: str, partitions: int = 1) -> None:
        if NAMESPACE.fullmatch(namespace) is None:
            raise ConfigError(f"namespace {namespace!r}: on Redis it is 1 to 64 letters, digits and ._:-")
        if not 1 <= partitions <= PARTITIONS_MAX:
            raise ConfigError(f"partitions={partitions}: a namespace has 1 to {PARTITIONS_MAX}")
        self.namespace = namespace
        tags = [namespace] if partitions == 1 else [namespace, *(f"{namespace}/{part}" for part in range(partitions))]
        self.prefixes = [f"{{{tag}}}:{VERSION}:" for tag in tags]  # each has a log of its own
        self.root = self.prefixes[0]
        self.control = control_prefix(self.root)
        self.parts = self.prefixes if partitions == 1 else self.prefixes[1:]

    def before(self, prefix: str) -> str:
        """The prefix that these keys had in the layout before. That of layout 2 did not name it."""
        tag = prefix.removesuffix(f"{VERSION}:")
        return tag if BEFORE == "2" else f"{tag}{BEFORE}:"

    def part_of(self, task_id: str) -> int:
        return partition_of(task_id, len(self.parts))


def slot_of(key: str) -> int:
    """The cluster slot of a key: CRC16 (XMODEM) of its hash tag."""
    start = key.find("{")
    end = key.find("}", start + 1)
    tag = key[start + 1 : end] if start >= 0 and end > start + 1 else key
    crc = 0
    for byte in tag.encode():
        crc ^= byte << 8
        for _ in range(8):
            crc = ((crc << 1) ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc % 16384
