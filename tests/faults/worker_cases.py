"""Workers that are killed, frozen, or killed by what they run."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from tests.faults.history import Judgement, Line
from tests.faults.redis_faults import SLACK, Scale, Stage, pick, stage, until
from tests.faults.server_faults import lenient
from tickwork.model.facts import Fact
from tickwork.model.tasks import Record, Status

LEASE, SHORT_LEASE = 3.0, 2.0
TIMES: dict[str, Any] = {"lease_ttl": LEASE, "renew_interval": 1.0, "scan_interval": 0.25}
# A leader that is among the killed must be replaced before the leases that it would have looked after run out.
TIMES |= {"leader_lease_ttl": 1.5, "leader_renew_interval": 0.5}


# --- killed


async def workers_killed(seed: int, scale: Scale, **options: Any) -> str:
    """Their host is still there, and sees that they are gone."""
    return str(await kill_workers(seed, scale, **options))


async def workers_killed_strangers(seed: int, scale: Scale, **options: Any) -> str:
    """Each on a machine of its own: only the leases tell."""
    return str(await kill_workers(seed, scale, stranger=True, **options))


async def assigned_killed(seed: int, scale: Scale, **options: Any) -> str:
    """Tasks in the inboxes of workers that are killed, the leader among them, go to others."""
    found = await kill_workers(seed, scale, dispatch="assigned", concurrency=4, **options)
    return str(found)


async def assigned_killed_strangers(seed: int, scale: Scale, **options: Any) -> str:
    """The same where nobody sees that a process is gone: what was assigned to it goes back when it counts as lost.
    Until then more is assigned to it, so a task may come to several of the killed, one after the other."""
    return await assigned_killed(seed, scale, stranger=True, longest_way=3, **options)


async def kill_workers(seed: int, scale: Scale, longest_way: int = 1, **options: Any) -> Judgement:
    """`longest_way`: how many of the killed may hold up one task, each until it counts as lost."""
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
        found = await on.judgement(longest_way * LEASE + lenient(SLACK))
    assert found.acked == count
    assert found.reruns > 0, "no kill hit a running task, so this run has shown nothing"
    return found


async def submit_steadily(
    on: Stage, chance: random.Random, count: int, prefix: str = "task-", longest: int = 600
) -> None:
    """Some 200 a second, of which a few run long enough to be hit for certain."""
    for number in range(count):
        milliseconds = longest if number % 20 == 0 else chance.randrange(5, 60)
        await on.submit("work", milliseconds, f"{prefix}{number}")
        await asyncio.sleep(0.004)


# --- frozen


async def zombie(seed: int, scale: Scale, **options: Any) -> str:
    """A worker stops for longer than its lease, goes on, and finds that everything it says is refused: while the newer
    run still goes on, and after it has ended."""
    rounds = 30 if scale == "long" else 2
    async with stage(3, **{**TIMES, "lease_ttl": SHORT_LEASE, "renew_interval": 0.5, **options}) as on:
        for number in range(rounds):
            await freeze_one(on, f"frozen-{number}", wake_after_end=number % 2 == 1)
        found = await on.judgement(SHORT_LEASE + lenient(SLACK))
        for record in (await on.records()).values():
            await until(lambda: len(on.seen("verdict", record.id)) == 2, 10, lambda: "the answers to both runs")  # noqa: B023
            check_words(on.lines, record, await on.log_lines(record.id))
    assert (found.acked, found.starts, found.refused) == (rounds, 2 * rounds, rounds), found
    return str(found)


async def freeze_one(on: Stage, task_id: str, wake_after_end: bool) -> None:
    await on.submit("freeze", 1.0, task_id)
    first = await on.first("frozen", task_id)
    victim = on.crew.of_pid(first["pid"])
    on.crew.stop(victim)
    await until(lambda: len(on.seen("start", task_id)) == 2, LEASE + 5, lambda: f"a second start; {on.crew}")
    if wake_after_end:
        await on.first("verdict", task_id)
    on.crew.go_on(victim)
    await until(lambda: first["fence"] in answered(on, task_id), 10, lambda: f"the zombie's answer; {on.crew}")
    await on.done(20)  # or the next stop might hit the newer run too


def answered(on: Stage, task_id: str) -> list[int]:
    return [line["fence"] for line in on.seen("verdict", task_id)]


def check_words(lines: list[Line], record: Record, log: list[str]) -> None:
    """Of the two runs the older one was refused its outcome, its progress and its log line, and the newer one none."""
    own = [line for line in lines if line.get("id") == record.id]
    verdicts = {line["fence"]: line["kind"] for line in own if line["what"] == "verdict"}
    old, new = sorted(verdicts)
    assert (new, verdicts) == (record.fence, {old: "lost", new: "done"})
    late = {line["fence"]: line["accepted"] for line in own if line["what"] == "note" and "late" in line["text"]}
    assert late == {old: False, new: True}
    assert record.progress_note == f"late {new}"
    assert [line.rpartition(" ")[2] for line in log] == [str(new)], "the zombie's log line was taken"


async def short_stop(seed: int, scale: Scale) -> str:
    """A stop that its lease outlives changes nothing."""
    chance = random.Random(seed)
    rounds = 20 if scale == "long" else 2
    async with stage(2, **TIMES) as on:
        for number in range(rounds):
            task_id = f"stopped-{number}"
            await on.submit("work", 1500, task_id)
            victim = on.crew.of_pid((await on.first("start", task_id))["pid"])
            on.crew.stop(victim)
            await asyncio.sleep(chance.uniform(0.7, 1.4))  # a lease is renewed each second: two are always left
            on.crew.go_on(victim)
        await on.done(20)
        found = await on.judgement(0.0)
        lost = await on.facts(Fact.WORKER_LOST, Fact.TASK_LOST)
    assert (found.starts, found.refused, lost) == (rounds, 0, []), found
    return str(found)


# --- killed by what they run


async def poison(seed: int, scale: Scale) -> str:
    """A task that kills its process becomes a dead letter after three, while others come and go beside it."""
    rounds = 10 if scale == "long" else 1
    async with stage(3, **TIMES, max_losses=3) as on:
        for number in range(rounds):
            await on.app.submit("poison", id=f"poison-{number}")
            submitting = asyncio.ensure_future(submit_steadily(on, random.Random(seed), 200, f"beside-{number}-", 60))
            await until_dead(on, f"poison-{number}")
            await submitting
        await on.done(20)
        return await check_poison(on, rounds)


async def poison_in_company(seed: int, scale: Scale) -> str:
    """The same few tasks are taken together with it each time, as nothing else is there to be taken."""
    async with stage(1, **TIMES, max_losses=3) as on:
        await on.app.submit("poison", id="poison-0", delay=1)
        for number in range(4):
            await on.submit("work", 2500, f"beside-{number}")
        await until_dead(on, "poison-0")
        await on.done(30)
        return await check_poison(on, 1, recovery=60)  # they may be made to wait for each other


async def until_dead(on: Stage, task_id: str) -> None:
    """Replace whoever it kills."""

    async def dead() -> bool:
        for member in list(on.crew.members):
            if member.poll() is not None:
                on.crew.bury(member)
                on.crew.hire()
        record = await on.store.queries.get(task_id)
        return record is not None and record.status is Status.DEAD

    await until(dead, 60, lambda: f"{task_id} to become a dead letter; {on.crew}")


async def check_poison(on: Stage, rounds: int, recovery: float = LEASE + SLACK) -> str:
    records = await on.records()
    beside = [record for record in records.values() if record.spec.type == "work"]
    died = await on.facts(Fact.TASK_DIED)
    innocent = [event.id for event in died if not event.id.startswith("poison-")]
    assert innocent == [], f"ended though they did no harm: {innocent}"
    for number in range(rounds):
        record = records[f"poison-{number}"]
        assert (record.status, record.losses, record.attempt) == (Status.DEAD, 3, 0)
        assert "not run again after 3 lost workers" in (record.last_error or "")
    charged = [f"{record.id}: attempt {record.attempt}" for record in beside if record.attempt != 1]
    assert charged == [], charged
    found = await on.judgement(recovery)
    most = max(record.losses for record in beside)
    return f"{rounds} dead after 3 losses each; of {len(beside)} beside them none lost more than {most}; {found}"
