"""What this version cannot read harms only itself: it becomes a dead letter that can be seen and deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.support.damage import EACH, EVERY_DAMAGE, Damage, RedisDamage, SqliteDamage
from tests.support.redis_store import NAMESPACE
from tests.support.stores import open_store
from tickwork.clock import ManualClock
from tickwork.model.facts import Fact
from tickwork.model.members import Worker
from tickwork.model.outcomes import Aborted, Failed, Succeeded
from tickwork.model.policy import Policy
from tickwork.model.schedules import Schedule
from tickwork.model.tasks import CANNOT_READ, UNKNOWN, Spec, Status
from tickwork.store.contract import Advance, Query
from tickwork.testing.contract.bench import START, Bench

every_damage = pytest.mark.parametrize(("bench", "kind"), EVERY_DAMAGE, indirect=["bench"], ids=str)
each_store = pytest.mark.parametrize(("bench", "kind"), EACH, indirect=["bench"], ids=str)
GOOD = ["g0", "g1", "g2", "g3"]


@pytest.fixture
def policy() -> Policy:
    return Policy()


@pytest.fixture(params=["sqlite", "redis"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path, policy: Policy) -> AsyncIterator[Bench]:
    clock = ManualClock(START)
    async with open_store(request.param, tmp_path, clock, policy) as store:
        bench = Bench(store, clock)
        yield bench
        assert await store.queries.audit() == [], "nothing may be left of it"


@pytest.fixture
def damage(bench: Bench, tmp_path: Path) -> Damage:
    return (
        RedisDamage(NAMESPACE)
        if bench.store.capabilities.remote
        else SqliteDamage(str(tmp_path / "tick.db"), NAMESPACE)
    )


def forget_specs(bench: Bench) -> None:
    """As if another process had submitted them."""
    store: Any = bench.store
    if not bench.store.capabilities.remote:
        store.core.writer._distrust()
        store.core.reader.specs.clear()


async def submit_with_one_bad(bench: Bench, damage: Damage, kind: str, **fields: Any) -> None:
    for task_id in ("g0", "g1", "bad", "g2", "g3"):
        await bench.submit(task_id, **fields)
    damage.task("bad", kind)
    forget_specs(bench)


async def run_all(bench: Bench, **fields: Any) -> list[str]:
    """Claim once and end everything in one batch, as a worker does; answers what was granted."""
    claimed = await bench.store.tasks.claim(bench.new_claim(10, **fields))
    outcomes = [Succeeded(grant.lease, b"1") for grant in claimed.grants]
    aborted = [Aborted(lost.lease, lost.why) for lost in claimed.unreadable]
    finished = await bench.store.tasks.finish([*aborted, *outcomes])
    assert {verdict.kind for verdict in finished.verdicts} <= {"done"}
    return [grant.spec.id for grant in claimed.grants]


async def assert_is_a_dead_letter(bench: Bench) -> None:
    record = await bench.record("bad")
    assert (record.status, record.id) == (Status.DEAD, "bad")
    assert (record.last_error or "").startswith(f"{CANNOT_READ}: ")
    dead, cursor = await bench.store.queries.page(Query(Status.DEAD))
    assert [(each.id, each.last_error) for each in dead] == [("bad", record.last_error)]
    assert cursor is None
    assert "bad" in await bench.walk()
    assert (await bench.store.queries.stats()).statuses[Status.DEAD] == 1
    assert (await bench.facts("bad"))[-1] == Fact.TASK_DIED


async def delete_it(bench: Bench) -> None:
    assert await bench.delete("bad", Status.DEAD) is Status.DEAD
    assert await bench.store.queries.get("bad") is None


@every_damage
async def test_a_claim_makes_a_dead_letter_of_it_and_grants_the_others(bench: Bench, damage: Damage, kind: str) -> None:
    await submit_with_one_bad(bench, damage, kind)
    assert await run_all(bench) == GOOD
    await assert_is_a_dead_letter(bench)
    assert [(await bench.record(task_id)).status for task_id in GOOD] == [Status.SUCCESS] * 4
    if (await bench.record("bad")).unreadable:  # what heals when it is written anew is no fault any more
        (problem,) = await bench.store.queries.audit()
        assert problem.startswith(f"task bad: {CANNOT_READ}: ")
    await delete_it(bench)


@every_damage
async def test_it_is_shown_before_anyone_has_claimed_it(bench: Bench, damage: Damage, kind: str) -> None:
    await submit_with_one_bad(bench, damage, kind)
    record = await bench.record("bad")
    if kind != "names without a band":  # which scripts alone look at
        assert record.unreadable.startswith(f"{CANNOT_READ}: ")
        assert record.last_error == record.unreadable
    assert sorted(await bench.walk()) == sorted([*GOOD, "bad"])
    assert sorted(await bench.walk(limit=2)) == sorted([*GOOD, "bad"])
    assert sorted(await bench.walk(status=Status.READY, limit=2)) == sorted([*GOOD, "bad"])
    assert sorted(await bench.walk(queue="default")) in (sorted(GOOD), sorted([*GOOD, "bad"]))
    assert await bench.walk(tags={"a": "b"}) == []
    problems = await bench.store.queries.audit()
    assert [problem.partition(": ")[0] for problem in problems] == ["task bad"] * bool(record.unreadable)
    assert (await bench.store.tasks.claim(bench.new_claim(0))).grants == []
    await run_all(bench)
    await delete_it(bench)


@each_store
@pytest.mark.parametrize("status", [Status.PENDING, Status.RETRYING, Status.RUNNING, Status.BLOCKED], ids=str)
async def test_one_that_waits_or_runs_when_it_is_damaged(
    bench: Bench, damage: Damage, kind: str, status: Status
) -> None:
    lease = await bench.bring(status, "bad")
    await bench.submit_many(2, "g", delay=60_000)
    damage.task("bad", kind)
    forget_specs(bench)
    await bench.store.tasks.extend([lease], 30_000)
    assert await bench.store.tasks.note(lease, 0.5, "half", ["line"]) in (True, False)
    await bench.pass_time(70)
    await bench.store.tasks.reclaim(10)
    await bench.store.tasks.promote(10)
    if status is Status.BLOCKED:
        bench.clock.advance(3600)
        (upstream,) = [grant for grant in await bench.claim(10) if grant.spec.id == "upstream"]
        await bench.end(Succeeded(upstream.lease))
        await bench.propagate()
        assert await bench.store.tasks.outbox(10) == []
        await bench.store.operators.mend()
    await run_all(bench)
    await assert_is_a_dead_letter(bench)
    await delete_it(bench)


@each_store
async def test_operators_may_touch_it(bench: Bench, damage: Damage, kind: str) -> None:
    await submit_with_one_bad(bench, damage, kind)
    assert await bench.run_now("bad") in (Status.READY, Status.DEAD)
    assert await bench.cancel("bad", True, "enough") in (Status.READY, Status.DEAD)
    assert await bench.delete("bad") in (Status.CANCELLED, Status.DEAD)
    assert await run_all(bench) == GOOD


@each_store
async def test_one_that_ended_is_shown_retried_and_pruned(bench: Bench, damage: Damage, kind: str) -> None:
    await bench.submit("bad")
    await bench.submit("good")
    for grant in await bench.claim(2):
        await bench.end(Succeeded(grant.lease, b"1"))
    damage.task("bad", kind)
    forget_specs(bench)
    assert await bench.walk(status=Status.SUCCESS) == ["good", "bad"]
    bench.clock.advance(Policy().retention / 1000 + 1)
    for _ in range(2):
        await bench.store.operators.prune(10)
    assert await bench.status("good") is None
    if (found := await bench.status("bad")) is not None:  # what could not be read at all became a dead letter first
        assert found is Status.DEAD
        await delete_it(bench)


@each_store
async def test_a_dead_letter_that_cannot_be_read_may_be_tried_again(bench: Bench, damage: Damage, kind: str) -> None:
    """Somebody with a newer version may be able to."""
    await submit_with_one_bad(bench, damage, kind)
    await run_all(bench)
    assert await bench.retry("bad", Status.DEAD) is Status.DEAD
    record = await bench.record("bad")
    assert record.status is (Status.DEAD if record.spec.type == UNKNOWN else Status.READY), "nothing is left to run"
    assert await run_all(bench) == []
    assert await bench.status("bad") is Status.DEAD
    await delete_it(bench)


@each_store
@pytest.mark.parametrize("policy", [Policy(dlq=False)], ids=["no dead letters"])
async def test_without_dead_letters_it_has_failed(bench: Bench, damage: Damage, kind: str, policy: Policy) -> None:
    await submit_with_one_bad(bench, damage, kind)
    assert await run_all(bench) == GOOD
    assert await bench.status("bad") is Status.FAILED
    assert await bench.delete("bad") is Status.FAILED


@each_store
@pytest.mark.parametrize("policy", [Policy(dlq_max=1)], ids=["one dead letter"])
async def test_it_may_be_dropped_from_the_dead_letters(bench: Bench, damage: Damage, kind: str, policy: Policy) -> None:
    await submit_with_one_bad(bench, damage, kind)
    await run_all(bench)
    await bench.end(Aborted(await bench.start("next"), "boom"))
    await bench.store.operators.prune(10)
    assert await bench.status("bad") is None
    assert (await bench.store.queries.stats()).dropped == 1


@each_store
async def test_dependants_hear_of_its_end(bench: Bench, damage: Damage, kind: str) -> None:
    await bench.submit("bad")
    await bench.submit("after", depends_on=("bad",))
    damage.task("bad", kind)
    forget_specs(bench)
    await bench.submit("later", depends_on=("bad",))
    await run_all(bench)
    await bench.propagate()
    assert await bench.status("after") is Status.CANCELLED
    assert await bench.status("later") is Status.CANCELLED
    await delete_it(bench)


@each_store
@pytest.mark.parametrize("place", ["side", "front"])
async def test_one_that_waits_aside(bench: Bench, damage: Damage, kind: str, place: str) -> None:
    if place == "side":
        await submit_with_one_bad(bench, damage, "no msgpack", type="rare")
        assert await bench.claimed_ids() == []
    else:
        await bench.submit("bad")
        await bench.store.tasks.reclaim(10, gone=("w1",)) if await bench.claim() else None
        for task_id in GOOD:
            await bench.submit(task_id)
    damage.task("bad", kind)
    forget_specs(bench)
    assert await run_all(bench, types=("job", "rare")) == GOOD
    await assert_is_a_dead_letter(bench)
    await delete_it(bench)


@each_store
async def test_a_claim_that_is_sent_again_hands_it_out_again(bench: Bench, damage: Damage, kind: str) -> None:
    await submit_with_one_bad(bench, damage, kind)
    claim = bench.new_claim(10)
    first = await bench.store.tasks.claim(claim)
    assert await bench.store.tasks.claim(claim) == first
    await bench.store.tasks.finish([Aborted(lost.lease, lost.why) for lost in first.unreadable])
    await delete_it(bench)


@pytest.mark.parametrize(("bench", "kind"), [("redis", "cut in the label")], indirect=["bench"], ids=str)
async def test_mending_buries_it(bench: Bench, damage: Damage, kind: str) -> None:
    await submit_with_one_bad(bench, damage, kind)
    (line,) = await bench.store.operators.mend()
    assert line.startswith(f"task bad: {CANNOT_READ}")
    await assert_is_a_dead_letter(bench)
    assert await bench.claimed_ids() == GOOD
    await delete_it(bench)


@pytest.mark.parametrize("bench", ["redis"], indirect=True)
async def test_a_report_of_the_last_run_that_cannot_be_read(bench: Bench, damage: RedisDamage) -> None:
    await bench.submit("bad")
    (grant,) = await bench.claim()
    await bench.end(Failed(grant.lease, "boom" * 5, 0))
    key = f"{damage.root}task:bad"
    damage.server.command("SET", key, damage.server.command("GET", key).replace(b"boom" * 5, b"\xc1" * 20))
    assert (await bench.record("bad")).unreadable
    assert await run_all(bench) == ["bad"], "what was asked is whole"
    assert await bench.status("bad") is Status.SUCCESS
    await bench.delete("bad")


@pytest.mark.parametrize("bench", ["redis"], indirect=True)
async def test_a_key_of_another_type_in_its_place(bench: Bench, damage: RedisDamage) -> None:
    await submit_with_one_bad(bench, damage, "no msgpack")
    damage.server.command("DEL", f"{damage.root}task:bad")
    damage.server.command("LPUSH", f"{damage.root}task:bad", "x")
    assert await run_all(bench) == GOOD
    assert await bench.cancel("bad", False) is None
    assert "bad" not in await bench.walk()
    damage.server.command("DEL", f"{damage.root}task:bad")


@pytest.mark.parametrize("bench", ["sqlite"], indirect=True)
async def test_a_status_that_nobody_knows(bench: Bench, damage: SqliteDamage) -> None:
    await bench.submit("bad")
    damage.run("UPDATE \"@tasks\" SET status = 'napping' WHERE id = 'bad'")
    assert await bench.walk() == ["bad"]
    assert (await bench.record("bad")).status is Status.DEAD
    assert len(await bench.store.queries.audit()) == 2
    await delete_it(bench)


@pytest.mark.parametrize("bench", ["sqlite"], indirect=True)
async def test_times_that_are_no_numbers(bench: Bench, damage: SqliteDamage) -> None:
    await bench.bring(Status.PENDING, "later")
    await bench.bring(Status.SUCCESS, "over")
    await bench.bring(Status.SUCCESS, "gone")
    damage.run("UPDATE \"@tasks\" SET due_at = 'soon' WHERE id = 'later'")
    damage.run("UPDATE \"@tasks\" SET finished_at = 'once' WHERE id = 'over'")
    damage.run("UPDATE \"@tasks\" SET position = 'first' WHERE id = 'gone'")
    assert await bench.store.tasks.promote(10) is None
    assert await run_all(bench) == []
    assert len(await bench.store.queries.audit()) == 3
    assert await bench.store.operators.prune(10) == 1
    for task_id in ("later", "gone"):
        await bench.cancel(task_id, False)
        await bench.delete(task_id)


# --- schedules, members and the log


def hourly(schedule_id: str) -> Schedule:
    return Schedule(id=schedule_id, cron="@hourly", task=Spec(id="", type="job", nonce=""), next_at=START - 1)


async def test_a_schedule_that_cannot_be_read(bench: Bench, damage: Damage) -> None:
    for schedule_id in ("a", "b", "bad", "c"):
        await bench.put(hourly(schedule_id))
    damage.schedule("bad")
    listed = await bench.schedules()
    assert [schedule.id for schedule in listed] == ["a", "b", "bad", "c"]
    assert [schedule.id for schedule in listed if schedule.active] == ["a", "b", "c"]
    (stopped,) = [schedule.stopped for schedule in listed if schedule.stopped]
    assert stopped.startswith(f"{CANNOT_READ}: ")
    assert await bench.store.schedules.get("bad") == listed[2]
    assert [schedule.id for schedule in (await bench.store.schedules.due(10))[0]] == ["a", "b", "c"]
    assert await bench.store.schedules.advance("bad", None, Advance(START + 1)) is None
    assert await bench.store.queries.audit() == [f"schedule bad: {stopped}"]
    assert await bench.store.schedules.put(hourly("bad"), create=True) is None
    assert await bench.put(hourly("bad"), if_changed=True) == await bench.store.schedules.get("bad")
    damage.schedule("bad")
    assert await bench.store.schedules.drop("bad") is True
    assert await bench.store.schedules.get("bad") is None


async def test_many_schedules_that_cannot_be_read_keep_none_from_firing(bench: Bench, damage: Damage) -> None:
    for number in range(7):
        await bench.put(hourly(f"bad{number}"))
        damage.schedule(f"bad{number}")
    for schedule_id in ("x", "y", "z"):
        await bench.put(hourly(schedule_id))
    fired: list[str] = []
    for _ in range(10):
        due, _ = await bench.store.schedules.due(2)
        for schedule in due:
            assert await bench.store.schedules.advance(schedule.id, schedule.next_at, Advance(START + 3_600_000))
            fired.append(schedule.id)
    assert fired == ["x", "y", "z"]
    assert (await bench.store.schedules.due(2))[1] == 3_600_000
    for number in range(7):
        await bench.store.schedules.drop(f"bad{number}")


async def test_a_member_that_cannot_be_read(bench: Bench, damage: Damage) -> None:
    for worker_id in ("a", "bad"):
        await bench.store.members.beat(Worker(id=worker_id, host="here"))
    damage.worker("bad")
    assert [worker.id for worker in await bench.store.members.workers()] == ["a", "bad"]
    await bench.store.members.beat(Worker(id="bad", host="here"))
    assert [worker.host for worker in await bench.store.members.workers()] == ["here", "here"]
    damage.worker("bad")
    bench.clock.advance(40)
    await bench.store.tasks.reclaim(10)
    bench.clock.advance(40)
    assert (await bench.store.tasks.reclaim(10)).lost_workers in (["a", "bad"], [])


async def test_facts_that_cannot_be_read(bench: Bench, damage: Damage) -> None:
    for task_id in ("a", "bad", "b"):
        await bench.submit(task_id)
    first, second, third = (event.seq for event in await bench.events())
    if isinstance(damage, SqliteDamage):
        damage.run('UPDATE "@events" SET facts = ? WHERE last = ?', b"\xc1", second)
    else:
        key = f"{damage.root}events"
        entry = damage.server.command("XRANGE", key, f"{first}-0", f"{first}-0")[0][1]
        damage.server.command("DEL", key)
        damage.server.command("XADD", key, f"{first}-0", *entry)
        damage.server.command("XADD", key, f"{second}-0", "at", "5", "facts", b"\xc1")
        damage.server.command("XADD", key, f"{third}-0", *(part.replace(b"\xa1a", b"\xa1b") for part in entry))
    events = await bench.events()
    assert [(event.seq, event.kind) for event in events] == [
        (first, "task.submitted"),
        (second, "log.unreadable"),
        (third, "task.submitted"),
    ]
    assert events[1].detail.startswith(f"{CANNOT_READ}: ")
    assert (await bench.store.log.read(first, 1))[0] == [events[1]]
    assert [event.seq for event in await bench.events("b")] == [third]


@pytest.mark.parametrize("bench", ["sqlite"], indirect=True)
async def test_one_fact_of_many_that_cannot_be_read(bench: Bench, damage: SqliteDamage) -> None:
    """As older versions wrote a note that was no text."""
    await bench.submit_many(3)
    ((facts,),) = damage.run('SELECT facts FROM "@events"')
    damage.run('UPDATE "@events" SET facts = ?', facts.replace(b"\xa2t1", b"\xcd\x00\x01"))
    assert [event.kind for event in await bench.events()] == ["task.submitted", "log.unreadable", "task.submitted"]


@pytest.mark.parametrize("bench", ["redis"], indirect=True)
async def test_bookkeeping_that_was_lost_or_damaged(bench: Bench, damage: RedisDamage) -> None:
    await bench.submit("up")
    await bench.submit("down", depends_on=("up",))
    await bench.store.members.campaign("n1", 10_000)
    damage.server.command("SET", f"{damage.root}pulse", "soon")
    damage.server.command("HDEL", f"{damage.root}schedule:leader", "term")
    (grant,) = await bench.claim()
    await bench.end(Succeeded(grant.lease))
    damage.server.command("DEL", f"{damage.root}outbox:status")
    damage.server.command("SET", f"{damage.root}pulse", "")
    assert (await bench.store.members.beat(Worker(id="w1"))).leader is None
    assert (await bench.store.members.campaign("n2", 10_000)).id == "n2"
    await bench.propagate()
    assert await bench.claimed_ids() == ["down"]


# --- at random


def change_bytes(chance: Random, value: bytes) -> bytes:
    match chance.randrange(5):
        case 0:
            return value[: chance.randrange(len(value))]
        case 1:
            return value + chance.randbytes(chance.randint(1, 40))
        case 2:
            at = chance.randrange(len(value))
            return value[:at] + chance.randbytes(chance.randint(1, 4)) + value[at + chance.randint(0, 4) :]
        case _:
            changed = bytearray(value)
            for _ in range(chance.choice([1, 1, 2, 8])):
                changed[chance.randrange(len(changed))] = chance.choice([0, 1, 0x7F, 0xC1, 0xFF, chance.randrange(256)])
            return bytes(changed)


def damage_any(chance: Random, damage: Damage, ids: list[str]) -> None:
    for task_id in chance.sample(ids, 3):
        if isinstance(damage, RedisDamage):
            key = f"{damage.root}task:{task_id}"
            damage.server.command("SET", key, change_bytes(chance, damage.server.command("GET", key)) or b"\0")
        elif chance.random() < 0.5:
            ((number, spec),) = damage.run(
                'SELECT seq, spec FROM "@specs" JOIN "@tasks" USING (seq) WHERE id = ?', task_id
            )
            damage.run('UPDATE "@specs" SET spec = ? WHERE seq = ?', change_bytes(chance, spec), number)
        else:
            column = chance.choice([name for name in COLUMNS_OF_A_ROW if name != "seq"])
            value = chance.choice([b"\xff", "text", 3, -1, 2**60, 1.5])
            damage.run(f'UPDATE "@tasks" SET {column} = ? WHERE id = ?', value, task_id)


COLUMNS_OF_A_ROW = (
    "status", "due_at", "place", "position", "attempt", "losses", "fence", "nonce", "worker_id", "lease_until",
    "cancel", "code", "message", "result", "progress", "progress_note", "parked", "type", "queue", "band",
)  # fmt: skip


async def use_everything(bench: Bench, chance: Random, ids: list[str]) -> None:
    store = bench.store
    for turn in range(3):
        claimed = await store.tasks.claim(bench.new_claim(5, worker=f"w{turn}"))
        leases = [grant.lease for grant in claimed.grants]
        await store.tasks.extend(leases, 30_000)
        for lease in leases[:2]:
            await store.tasks.note(lease, 0.5, "half", ["line"])
        outcomes: list[Any] = [Aborted(lost.lease, lost.why) for lost in claimed.unreadable]
        outcomes += [chance.choice([Succeeded(lease, b"1"), Failed(lease, "boom", 10)]) for lease in leases]
        await store.tasks.finish(outcomes, bench.new_claim(3, worker=f"w{turn}"))
        await store.tasks.reclaim(10, gone=("w0",))
        bench.clock.advance(chance.choice([1, 40, 4000]))
        await store.tasks.promote(10)
        for task_id in chance.sample(ids, 4):
            await store.queries.get(task_id)
            await chance.choice([bench.run_now, bench.retry, bench.delete])(task_id)
            await store.operators.cancel([task_id], chance.random() < 0.5, "enough")
        await bench.propagate()
        await store.operators.prune(5)
        await store.queries.stats()
        await store.queries.audit()
        for status in (None, *Status):
            await bench.walk(status=status, limit=3)
    await store.log.read(0, 10_000)


@pytest.mark.parametrize("seed", range(40))
async def test_random_damage_never_raises(bench: Bench, damage: Damage, seed: int) -> None:
    chance = Random(seed)
    ids = [f"t{number}" for number in range(20)]
    for number, task_id in enumerate(ids):
        depends_on = (ids[number - 1],) if number % 5 == 4 else ()
        await bench.submit(
            task_id, delay=1000 * (number % 3), depends_on=depends_on, tags={"a": "b"}, expires=60_000, retention=1000
        )
    for grant in await bench.claim(6):
        if chance.random() < 0.7:
            failed, succeeded = Failed(grant.lease, "boom", 50), Succeeded(grant.lease, b"1" * 40)
            await bench.end(failed if chance.random() < 0.5 else succeeded)
    damage_any(chance, damage, ids)
    forget_specs(bench)
    await use_everything(bench, chance, ids)
    await bench.submit("sound")
    for _ in range(20):  # it comes behind whatever is still to run
        grants = await bench.claim(50)
        await bench.store.tasks.finish([Succeeded(grant.lease) for grant in grants])
        if "sound" in [grant.spec.id for grant in grants]:
            break
    assert await bench.status("sound") is Status.SUCCESS
    await empty(bench, damage)


async def empty(bench: Bench, damage: Damage) -> None:
    """What is left is damaged, and of no interest."""
    if isinstance(damage, RedisDamage):
        damage.server.command("FLUSHALL")
    else:
        for table in ("tasks", "specs", "waits", "outbox", "deadlines", "kept", "attempts", "lines"):
            damage.run(f'DELETE FROM "@{table}"')
        damage.run('UPDATE "@state" SET ends = 0')
    forget_specs(bench)
