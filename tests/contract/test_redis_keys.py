"""Whatever happens, the namespace holds only the keys that `keys.py` names, each of the type that it says."""

from __future__ import annotations

import re

import pytest

from tests.support.redis_store import NAMESPACE, SERVER, ClockedRedisStore, empty_redis, restricted_redis, shared_server
from tickwork import Scheduler
from tickwork.clock import ManualClock
from tickwork.errors import StoreError
from tickwork.model.members import Worker
from tickwork.model.outcomes import Aborted, Failed, Succeeded
from tickwork.model.policy import Policy
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import Spec, Status
from tickwork.store.redis.keys import CONTROL_KEYS, NAMESPACE_KEYS, TASK_KEYS, VERSION, Key
from tickwork.store.redis.ops.acl import acl_line
from tickwork.testing.contract.bench import START, Bench

TYPES = {"String": b"string", "Hash": b"hash", "ZSet": b"zset", "Set": b"set", "Stream": b"stream", "List": b"list"}


def patterns(keys: tuple[Key, ...]) -> list[tuple[re.Pattern[str], bytes]]:
    return [(re.compile(re.sub(r"<\w+>", ".+", re.escape(key.name))), TYPES[key.kind]) for key in keys]


PATTERNS = {"": patterns(TASK_KEYS + NAMESPACE_KEYS), "control:": patterns(CONTROL_KEYS)}


def kinds_of(key: bytes) -> set[bytes]:
    front, _, rest = key.decode().partition("{")
    name = rest.partition(f"}}:{VERSION}:")[2]
    return {kind for pattern, kind in PATTERNS[front] if pattern.fullmatch(name)}


async def test_every_key_is_one_of_the_table() -> None:
    store = ClockedRedisStore(ManualClock(START), restricted_redis(user=SERVER), Policy())
    await store.open()
    bench = Bench(store, store.clock)
    for status in (Status.RUNNING, Status.RETRYING, Status.SUCCESS, Status.DEAD, Status.CANCELLED, Status.BLOCKED):
        await bench.bring(status, f"it-{status}")
    await bench.submit("side", type="unknown", dedup_key="order:1", dedup_ttl=1000)
    await bench.claim(10)
    lease = await bench.start("front")
    await bench.store.tasks.reclaim(10, gone=("w1",))
    assert await bench.end(Succeeded(lease)) == "lost"
    await bench.submit("up", schedule_id="nightly")
    await bench.submit("down", depends_on=("up",))
    with store.hint("down") as hint:
        await store.queries.get("down", hint)
    for grant in await bench.claim(10, worker="w2"):
        await bench.end(Failed(grant.lease, "boom", 10) if grant.spec.id == "front" else Aborted(grant.lease, "boom"))
    await store.members.beat(Worker(id="w2"))
    await store.members.campaign("n1", 1000)
    await store.operators.pause("queue", "mail")
    await store.schedules.put(Schedule(id="s", cron="@daily", next_at=START, task=Spec(id="", type="job", nonce="")))
    await store.locks.acquire("report", "me", 1000)
    await store.marks.swap("place", None, "1")
    await store.control.swap("view", "mine", None, "1")
    await store.control.append("audit", ["a"], 10)
    found = {key: shared_server().command("TYPE", key) for key in shared_server().command("KEYS", "*")}
    strange = {key: kind for key, kind in found.items() if kind not in kinds_of(key) and not key.endswith(b":clock")}
    assert strange == {}
    assert len(found) > 28, "this test must see most of the table"
    await store.close()


async def test_queues_that_came_and_went_leave_no_keys() -> None:
    store = ClockedRedisStore(ManualClock(START), restricted_redis(), Policy())
    await store.open()
    bench = Bench(store, store.clock)
    for number in range(10):
        await bench.submit(f"later-{number}", queue=f"delayed-{number}", delay=60_000)
        await bench.cancel(f"later-{number}")
        await bench.submit(f"now-{number}", queue=f"ready-{number}")
        await bench.cancel(f"now-{number}")
    await store.operators.prune(100)
    assert shared_server().command("KEYS", "*}:wake:*") == []
    assert shared_server().command("KEYS", "*}:stream:*") == []
    await store.close()


async def test_the_acl_user_of_a_namespace_sees_no_other() -> None:
    url = empty_redis()
    other = Scheduler(url, namespace="other")
    await other.submit("secret", {"of": "others"})
    await other.close()
    version = tuple(map(int, shared_server().info("server")["redis_version"].split(".")))
    shared_server().command(*acl_line(NAMESPACE, "narrow", "secret", version).split())
    narrow = url.replace("redis://", "redis://narrow:secret@")
    app = Scheduler(narrow, namespace="other")
    with pytest.raises(StoreError, match="`tickwork acl` prints") as refused:
        await app.list_tasks()
    assert "secret@" not in str(refused.value)
    await app.close()
