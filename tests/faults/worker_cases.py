"""Workers that are killed, frozen, or killed by what they run."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Any

from tests.faults.history import Judgement, Line
from tests.faults.redis_faults import SLACK, Scale, Stage, pick, stage, until
from tickwork.events import Fact
from tickwork.model import Status

LEASE = 3.0
TIMES: dict[str, Any] = {"lease_ttl": LEASE, "renew_interval": 1.0, "scan_interval": 0.25}
# A leader that is among the killed must be replaced before the leases that it would have looked after run out.
TIMES |= {"leader_lease_ttl": 1.5, "leader_renew_interval": 0.5}


# --- killed


async def workers_killed(seed: int, scale: Scale) -> str:
    """Their host is still there, and sees that they are gone."""
    return str(await kill_workers(seed, scale))


async def workers_killed_strangers(seed: int, scale: Scale) -> str:
    """Each on a machine of its own: only the leases tell."""
    return str(await kill_workers(seed, scale, stranger=True))


async def kill_workers(seed: int, scale: Scale, **options: Any) -> Judgement:
    chance = random.Random(seed)
    count, kills = (20_000, 0) if scale == "long" else (600, 4)
    async with stage(3, **TIMES, **options) as on:
        submitting = asyncio.ensure_future(submit_steadily(on, chance, count))
        done = 0
        while done < kills or not submitting.done():
            await asyncio.sleep(chance.uniform(0.7, 1.3))
            victim = pick(chance, on.crew)
            if victim is not None and (done < kills or kills == 0):
                on.crew.kill(victim)
                on.crew.hire()
                done += 1
        await submitting
        await on.done(60 if scale == "long" else 20)
        found = await on.judgement(LEASE + SLACK)
    assert found.clean, found
    assert found.acked == count
    assert found.reruns > 0, "no kill hit a running task, so this run has shown nothing"
    return found


async def submit_steadily(on: Stage, chance: random.Random, count: int) -> None:
    """Some 200 a second, of which a few run long enough to be hit for certain."""
    for number in range(count):
        milliseconds = 600 if number % 20 == 0 else chance.randrange(5, 60)
        await on.submit("work", milliseconds, f"task-{number}")
        await asyncio.sleep(0.004)


# --- frozen


async def zombie(seed: int, scale: Scale) -> str:
    """A worker stops for longer than its lease, goes on, and finds that everything it says is refused: while the newer
    run still goes on, and after it has ended."""
    rounds = 30 if scale == "long" else 2
    async with stage(3, **TIMES, concurrency=2) as on:
        for number in range(rounds):
            await freeze_one(on, f"frozen-{number}", wake_after_end=number % 2 == 1)
        await on.done(20)
        found = await on.judgement(LEASE + SLACK)
        records = await on.records()
        for number in range(rounds):
            check_words(on.lines, f"frozen-{number}", records[f"frozen-{number}"].fence)
            assert records[f"frozen-{number}"].progress_note == f"late {records[f'frozen-{number}'].fence}"
            words = [line.rpartition("late ")[2] for line in records[f"frozen-{number}"].log]
            assert words == [str(records[f"frozen-{number}"].fence)], "the zombie's log line was taken"
    assert found.clean, found
    assert (found.acked, found.starts, found.refused) == (rounds, 2 * rounds, rounds), found
    return str(found)


async def freeze_one(on: Stage, task_id: str, wake_after_end: bool) -> None:
    await on.submit("freeze", 1.0, task_id)
    await until(lambda: seen(on, "frozen", task_id), 10)
    (first,) = seen(on, "frozen", task_id)
    victim = on.crew.of_pid(first["pid"])
    on.crew.stop(victim)
    await until(lambda: len(seen(on, "start", task_id)) == 2, LEASE + 5, lambda: f"a second start; {on.crew}")
    if wake_after_end:
        await until(lambda: seen(on, "verdict", task_id), 10, lambda: "the second run to end")
    on.crew.go_on(victim)
    await until(lambda: len(seen(on, "verdict", task_id)) == 2, 10, lambda: f"both to be judged; {on.crew}")


def seen(on: Stage, what: str, task_id: str) -> list[Line]:
    return [line for line in on.lines if line["what"] == what and line["id"] == task_id]


def check_words(lines: list[Line], task_id: str, newest: int) -> None:
    """Of the two runs the older one was refused its outcome, its progress and its log line, and the newer one none."""
    verdicts = {line["fence"]: line["kind"] for line in lines if line["what"] == "verdict" and line["id"] == task_id}
    assert verdicts.pop(newest) == "done"
    assert list(verdicts.values()) == ["lost"], verdicts
    late = [line for line in lines if line["what"] == "note" and line["id"] == task_id and "late" in line["text"]]
    assert {line["fence"]: line["accepted"] for line in late} == {newest: True, next(iter(verdicts)): False}


async def short_stop(seed: int, scale: Scale) -> str:
    """A stop that its lease outlives changes nothing."""
    chance = random.Random(seed)
    rounds = 20 if scale == "long" else 2
    async with stage(2, **TIMES) as on:
        for number in range(rounds):
            task_id = f"stopped-{number}"
            await on.submit("work", 1500, task_id)
            await until(lambda: seen(on, "start", task_id), 10)  # noqa: B023
            victim = on.crew.of_pid(seen(on, "start", task_id)[0]["pid"])
            on.crew.stop(victim)
            await asyncio.sleep(chance.uniform(0.8, 1.6))  # a lease is renewed each second: two are always left
            on.crew.go_on(victim)
        await on.done(20)
        found = await on.judgement(0.0)
        lost = await on.facts(Fact.WORKER_LOST, Fact.TASK_LOST)
    assert found.clean, found
    assert (found.starts, found.refused, lost) == (rounds, 0, []), found
    return str(found)


# --- killed by what they run


async def poison(seed: int, scale: Scale) -> str:
    """A task that kills its process is set aside after three; who runs beside it succeeds all the same."""
    rounds = 10 if scale == "long" else 1
    async with stage(3, **TIMES, max_losses=3) as on:
        for number in range(rounds):
            await poison_once(on, number)
        await on.done(20)
        records = await on.records()
        died = [event.id for event in await on.facts(Fact.TASK_DIED)]
        most = max(record.losses for record in records.values() if record.spec.type == "work")
        neighbours = [record for record in records.values() if record.spec.type == "work"]
    assert sorted(died) == sorted(f"poison-{number}" for number in range(rounds)), "an innocent one was set aside"
    for number in range(rounds):
        record = records[f"poison-{number}"]
        assert (record.status, record.losses, record.attempt) == (Status.DEAD, 3, 0)
        assert "set aside after 3 lost workers" in (record.last_error or "")
    charged = [f"{record.id}: attempt {record.attempt}" for record in neighbours if record.attempt != 1]
    assert not charged, charged
    assert all(record.status is Status.SUCCESS for record in neighbours)
    return f"{rounds} set aside after 3 losses each; {len(neighbours)} neighbours, each lost {most} times at most"


async def poison_once(on: Stage, number: int) -> None:
    for each in range(8):
        await on.submit("work", 2000, f"neighbour-{number}-{each}")
    await on.app.submit("poison", id=f"poison-{number}")
    for each in range(8, 16):
        await on.submit("work", 2000, f"neighbour-{number}-{each}")
    deadline = time.monotonic() + 20
    while (await on.store.get(f"poison-{number}")).status is not Status.DEAD:  # type: ignore[union-attr]
        assert time.monotonic() < deadline, f"not set aside within 20 s; {on.crew}"
        for member in list(on.crew.members):
            if member.poll() is not None:
                on.crew.bury(member)
                on.crew.hire()
        await asyncio.sleep(0.02)
