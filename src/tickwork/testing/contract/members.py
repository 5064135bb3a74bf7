"""Who is there and who leads: by the store's clock alone."""

from __future__ import annotations

from msgspec.structs import replace

from tickwork.model.facts import Fact
from tickwork.model.members import CAPACITY, DRAIN, QUEUES, Leader, OrderKind, Worker, WorkerStatus
from tickwork.model.outcomes import Succeeded
from tickwork.model.policy import Policy
from tickwork.store.contract import Heard
from tickwork.store.hints import CONTROL
from tickwork.store.rules import LOST_WORKER_KEPT
from tickwork.testing.contract.bench import START, Bench

FULL_WORKER = Worker(
    id="w1",
    node="n1",
    host="host-a",
    pid=42,
    pid_started="1234",
    address="http://10.0.0.1:8080",
    version="1.2.3",
    queues=("mail", "default"),
    task_types=("send", "resize"),
    labels={"gpu": "yes"},
    weight=3,
    capacity=4,
    running=2,
    leaked=1,
)

# --- workers


async def test_a_beat_for_another_does_not_bring_back_one_that_was_removed(bench: Bench) -> None:
    members = bench.store.members
    await members.beat(Worker(id="far"), 1000)
    bench.clock.advance(2)
    await members.beat(Worker(id="far"), 60_000, join=False)
    assert [worker.expires_at for worker in await members.workers()] == [bench.clock.now() + 60_000]
    await members.leave("far")
    await members.beat(Worker(id="far"), 60_000, join=False)
    assert await members.workers() == []


async def test_a_beat_for_another_changes_nothing_of_what_was_registered(bench: Bench) -> None:
    members = bench.store.members
    await members.beat(Worker(id="far", address="http://new", labels={"zone": "low"}), 1000)
    seen = await members.workers()
    await members.beat(Worker(id="far", address="http://old", labels={"zone": "high"}), 60_000, join=False)
    assert await members.workers() == seen, "it is another one"
    await members.beat(Worker(id="far", address="http://new", labels={"zone": "high"}), 60_000, join=False)
    (worker,) = await members.workers()
    assert (worker.labels, worker.expires_at) == ({"zone": "low"}, bench.clock.now() + 60_000)


async def test_a_beat_makes_a_member_and_keeps_all_it_says(bench: Bench) -> None:
    assert await bench.store.members.beat(FULL_WORKER) == Heard(None)
    expected = replace(FULL_WORKER, started_at=START, beat_at=START, expires_at=START + Policy().lease_ttl)
    assert await bench.store.members.workers() == [expected]
    assert (await bench.store.queries.stats()).workers == 1


async def test_a_beat_renews_and_updates(bench: Bench) -> None:
    await bench.store.members.beat(FULL_WORKER)
    bench.clock.advance(10)
    await bench.store.members.beat(replace(FULL_WORKER, running=4, started_at=99, beat_at=99, expires_at=99))
    (member,) = await bench.store.members.workers()
    assert (member.started_at, member.beat_at, member.expires_at) == (START, START + 10_000, START + 40_000)
    assert (member.running, member.status) == (4, "busy")
    assert await bench.facts() == ["worker.joined"]


async def test_leases_can_be_counted_instead_of_believing_the_last_heartbeat(bench: Bench) -> None:
    await bench.submit_many(3)
    grants = await bench.claim(limit=2)
    await bench.store.members.beat(replace(FULL_WORKER, running=7))
    await bench.store.members.beat(Worker(id="w2", running=1))
    assert [(worker.id, worker.running) for worker in await bench.store.members.workers()] == [("w1", 7), ("w2", 1)]
    counted = await bench.store.members.workers(counted=True)
    assert [(worker.id, worker.running) for worker in counted] == [("w1", 2), ("w2", 0)]
    await bench.store.tasks.finish([Succeeded(grants[0].lease)])
    assert [worker.running for worker in await bench.store.members.workers(counted=True)] == [1, 0]
    await bench.store.tasks.reclaim(10, ("w1",))
    assert [(worker.running, worker.status) for worker in await bench.store.members.workers(counted=True)] == [
        (0, WorkerStatus.OFFLINE),
        (0, WorkerStatus.IDLE),
    ]


async def test_members_are_listed_by_name(bench: Bench) -> None:
    for name in ("b", "c", "a"):
        await bench.store.members.beat(Worker(id=name))
    assert [worker.id for worker in await bench.store.members.workers()] == ["a", "b", "c"]


async def test_who_leaves_is_gone(bench: Bench) -> None:
    await bench.store.members.beat(FULL_WORKER)
    await bench.store.members.leave("w1")
    assert await bench.store.members.workers() == []
    assert (await bench.store.queries.stats()).workers == 0
    await bench.store.members.leave("w1")
    await bench.store.members.leave("nobody")
    assert await bench.facts() == ["worker.joined", "worker.left"]


async def test_who_left_is_not_lost(bench: Bench) -> None:
    await bench.store.members.beat(FULL_WORKER)
    await bench.store.members.leave("w1")
    await bench.pass_time(60)
    assert (await bench.store.tasks.reclaim(10)).lost_workers == []


async def test_who_comes_back_after_leaving_starts_anew(bench: Bench) -> None:
    await bench.store.members.beat(FULL_WORKER)
    await bench.store.members.leave("w1")
    bench.clock.advance(5)
    await bench.store.members.beat(FULL_WORKER)
    (member,) = await bench.store.members.workers()
    assert member.started_at == START + 5000
    assert await bench.facts() == ["worker.joined", "worker.left", "worker.joined"]


async def test_leaving_does_not_give_up_leases(bench: Bench) -> None:
    lease = await bench.start("it")
    await bench.store.members.beat(Worker(id="w1"))
    await bench.store.members.leave("w1")
    assert await bench.store.tasks.extend([lease], 1000) == ["held"]


async def test_a_lost_worker_stays_visible_for_an_hour(bench: Bench) -> None:
    await bench.store.members.beat(FULL_WORKER)
    await bench.store.tasks.reclaim(10, gone=("w1",))
    bench.clock.advance(3599)
    await bench.store.operators.prune(100)
    assert [worker.id for worker in await bench.store.members.workers()] == ["w1"]
    bench.clock.advance(1)
    await bench.store.operators.prune(100)
    assert await bench.store.members.workers() == []


async def test_prune_leaves_living_workers(bench: Bench) -> None:
    await bench.store.members.beat(FULL_WORKER)
    bench.clock.advance(7200)
    await bench.store.operators.prune(100)
    assert [worker.id for worker in await bench.store.members.workers()] == ["w1"]


# --- orders


async def test_an_order_is_in_the_answer_to_every_heartbeat_until_it_is_taken_back(bench: Bench) -> None:
    members = bench.store.members
    await members.beat(FULL_WORKER)
    await members.beat(Worker(id="w2", node="n1"))
    assert await members.order("w1", DRAIN, "")
    assert await members.order("w1", DRAIN, "")
    for _ in range(2):
        assert await members.beat(FULL_WORKER) == Heard(None, order=DRAIN)
    assert await members.beat(Worker(id="w2", node="n1")) == Heard(None)
    assert [(each.id, each.order, each.status) for each in await members.workers()] == [
        ("w1", DRAIN, "draining"),
        ("w2", "", "idle"),
    ]
    assert await members.order("w1", DRAIN, None)
    assert await members.beat(FULL_WORKER) == Heard(None)
    assert [each.status for each in await members.workers()] == ["idle", "idle"]
    ordered = [(event.id, event.detail) for event in await bench.events() if event.kind == Fact.WORKER_ORDERED]
    assert ordered == [("w1", DRAIN), ("w1", "none")], "only changes are logged"


async def test_orders_of_one_kind_leave_those_of_others(bench: Bench) -> None:
    members = bench.store.members
    await members.beat(FULL_WORKER)
    given: list[tuple[OrderKind, str | None, str]] = [
        (QUEUES, "mail,a.b:c", "queues=mail,a.b:c"),
        (DRAIN, "", "drain queues=mail,a.b:c"),
        (CAPACITY, "20", "capacity=20 drain queues=mail,a.b:c"),
        (CAPACITY, "5", "capacity=5 drain queues=mail,a.b:c"),
        (CAPACITY, "5", "capacity=5 drain queues=mail,a.b:c"),
        (DRAIN, None, "capacity=5 queues=mail,a.b:c"),
        (QUEUES, None, "capacity=5"),
        (QUEUES, None, "capacity=5"),
        (CAPACITY, None, ""),
    ]
    for kind, value, order in given:
        assert await members.order("w1", kind, value)
        assert await members.beat(FULL_WORKER) == Heard(None, order=order)
        (member,) = await members.workers()
        assert (member.order, member.status) == (order, "draining" if "drain" in order else "idle")
    told = [event.detail for event in await bench.events() if event.kind == Fact.WORKER_ORDERED]
    assert told == [order or "none" for number, (_, _, order) in enumerate(given) if number not in (4, 7)]


async def test_what_a_worker_says_of_itself_is_no_order(bench: Bench) -> None:
    await bench.store.members.beat(FULL_WORKER)
    assert await bench.store.members.beat(replace(FULL_WORKER, order=DRAIN, follows=DRAIN)) == Heard(None)
    (member,) = await bench.store.members.workers()
    assert (member.order, member.follows) == ("", DRAIN)


async def test_an_order_ends_with_the_process(bench: Bench) -> None:
    members = bench.store.members
    await members.beat(FULL_WORKER)
    await members.order("w1", DRAIN, "")
    await members.leave("w1")
    assert await members.beat(FULL_WORKER) == Heard(None)
    await members.order("w1", DRAIN, "")
    await bench.store.tasks.reclaim(10, gone=("w1",))
    assert await members.beat(OTHER) == Heard(None), "another process has the name"
    assert await members.beat(OTHER) == Heard(None)
    assert [each.order for each in await members.workers()] == [""]


async def test_a_worker_that_was_away_for_a_moment_keeps_its_order(bench: Bench) -> None:
    await bench.store.members.beat(FULL_WORKER)
    await bench.store.members.order("w1", DRAIN, "")
    await bench.store.tasks.reclaim(10, gone=("w1",))
    assert await bench.store.members.beat(FULL_WORKER) == Heard(None, order=DRAIN)


async def test_only_members_that_are_up_take_orders(bench: Bench) -> None:
    assert not await bench.store.members.order("w1", DRAIN, "")
    await bench.store.members.beat(FULL_WORKER)
    await bench.store.tasks.reclaim(10, gone=("w1",))
    assert not await bench.store.members.order("w1", DRAIN, "")
    assert Fact.WORKER_ORDERED not in await bench.facts()


async def test_an_order_raises_the_control_hint(bench: Bench) -> None:
    await bench.store.members.beat(FULL_WORKER)
    with bench.store.hint(CONTROL) as hint:
        await bench.listens(hint)
        await bench.store.members.order("w1", DRAIN, "")
        assert await hint.wait(30) is True


# --- one name, one node

OTHER = replace(FULL_WORKER, node="n2", host="host-b", pid=7, pid_started="99", running=0)


async def test_the_name_of_a_living_member_is_refused_to_another_node(bench: Bench) -> None:
    await bench.store.members.beat(FULL_WORKER)
    before = await bench.store.members.workers()
    bench.clock.advance(29.999)
    assert await bench.store.members.beat(OTHER) == Heard(None, rival=before[0])
    assert await bench.store.members.workers() == before
    assert await bench.facts() == ["worker.joined"]


async def test_a_name_is_free_when_the_lease_of_its_member_is_over(bench: Bench) -> None:
    await bench.store.members.beat(FULL_WORKER)
    bench.clock.advance(30)
    assert await bench.store.members.beat(OTHER) == Heard(None)
    (member,) = await bench.store.members.workers()
    assert (member.node, member.pid, member.expires_at) == ("n2", 7, START + 60_000)
    assert member.started_at == START + 30_000
    assert await bench.facts() == ["worker.joined", "worker.joined"]
    assert (await bench.store.members.beat(FULL_WORKER)).rival == member, "who had it before is told so"


async def test_a_name_is_free_when_its_member_has_left_or_was_lost(bench: Bench) -> None:
    await bench.store.members.beat(FULL_WORKER)
    await bench.store.members.leave("w1")
    assert await bench.store.members.beat(OTHER) == Heard(None)
    await bench.store.tasks.reclaim(10, gone=("w1",))
    assert await bench.store.members.beat(FULL_WORKER) == Heard(None)


async def test_who_is_refused_still_hears_who_leads(bench: Bench) -> None:
    leader = await bench.store.members.campaign("n1", 10_000)
    await bench.store.members.beat(FULL_WORKER)
    heard = await bench.store.members.beat(OTHER)
    assert heard.leader == leader
    assert heard.rival is not None


async def test_a_node_leaves_for_itself_alone(bench: Bench) -> None:
    await bench.store.members.beat(FULL_WORKER)
    await bench.store.members.leave("w1", "n2")
    assert [worker.node for worker in await bench.store.members.workers()] == ["n1"]
    await bench.store.members.leave("w1", "n1")
    assert await bench.store.members.workers() == []
    assert await bench.facts() == ["worker.joined", "worker.left"]


async def test_one_who_has_the_name_of_a_dead_one_keeps_its_tasks(bench: Bench) -> None:
    """Whoever saw the dead one may say so late, when a restarted process has its name."""
    await bench.store.members.beat(FULL_WORKER)
    await bench.store.tasks.reclaim(10, gone=("w1",), nodes=("n1",))
    await bench.store.members.beat(OTHER)
    await bench.store.members.campaign("n2", 10_000)
    await bench.start("it")
    late = await bench.store.tasks.reclaim(10, gone=("w1",), nodes=("n1",))
    assert (late.ids, late.lost_workers) == ([], [])
    assert (await bench.store.members.beat(OTHER)).leader is not None
    now = await bench.store.tasks.reclaim(10, gone=("w1",), nodes=("n2",))
    assert (now.ids, now.lost_workers) == (["it"], ["w1"])


# --- leadership


async def test_of_two_candidates_one_leads(bench: Bench) -> None:
    first = await bench.store.members.campaign("a", 10_000)
    assert first == Leader("a", 1, START + 10_000, 10_000)
    assert await bench.store.members.campaign("b", 10_000) == first


async def test_the_leader_renews_in_the_same_term(bench: Bench) -> None:
    await bench.store.members.campaign("a", 10_000)
    bench.clock.advance(9.999)
    assert await bench.store.members.campaign("a", 10_000) == Leader("a", 1, START + 19_999, 10_000)
    assert (await bench.facts()).count("leader.elected") == 1


async def test_leadership_ends_by_the_stores_clock(bench: Bench) -> None:
    await bench.store.members.campaign("a", 10_000)
    bench.clock.advance(9.999)
    assert (await bench.store.members.campaign("b", 10_000)).id == "a"
    bench.clock.advance(0.001)
    assert await bench.store.members.campaign("b", 5000) == Leader("b", 2, START + 15_000, 5000)
    assert (await bench.store.members.campaign("a", 10_000)).id == "b"


async def test_a_leader_that_let_it_lapse_gets_a_new_term(bench: Bench) -> None:
    await bench.store.members.campaign("a", 10_000)
    bench.clock.advance(10)
    assert (await bench.store.members.campaign("a", 10_000)).term == 2


async def test_terms_only_grow(bench: Bench) -> None:
    terms = []
    for number in range(6):
        leader = await bench.store.members.campaign(f"n{number % 2}", 1000)
        terms.append(leader.term)
        if number % 3:
            await bench.store.members.resign(leader.id, leader.term)
        else:
            bench.clock.advance(1)
    assert terms == [1, 2, 3, 4, 5, 6]


async def test_who_resigns_makes_room_at_once(bench: Bench) -> None:
    await bench.store.members.campaign("a", 10_000)
    assert await bench.store.members.resign("a", 1) is True
    assert await bench.store.members.beat(FULL_WORKER) == Heard(None)
    assert await bench.store.members.campaign("b", 10_000) == Leader("b", 2, START + 10_000, 10_000)


async def test_who_resigns_twice_is_told_of_once(bench: Bench) -> None:
    await bench.store.members.campaign("a", 10_000)
    assert [await bench.store.members.resign("a", 1) for _ in range(2)] == [True, True]
    assert (await bench.facts()).count("leader.resigned") == 1
    await bench.store.members.campaign("b", 10_000)
    assert await bench.store.members.resign("a", 1) is False


async def test_who_resigned_does_not_lead_again_because_the_clock_went_back(bench: Bench) -> None:
    await bench.store.members.campaign("a", 10_000)
    await bench.store.members.resign("a", 1)
    bench.clock.advance(-5)
    assert await bench.store.members.beat(FULL_WORKER) == Heard(None)
    assert (await bench.store.members.campaign("b", 10_000)).id == "b"


async def test_a_stale_resignation_is_refused(bench: Bench) -> None:
    assert await bench.store.members.resign("a", 1) is False
    await bench.store.members.campaign("a", 1000)
    assert await bench.store.members.resign("b", 1) is False
    assert await bench.store.members.resign("a", 2) is False
    bench.clock.advance(1)
    await bench.store.members.campaign("b", 1000)
    assert await bench.store.members.resign("a", 1) is False
    assert (await bench.store.members.campaign("c", 1000)).id == "b"


async def test_an_old_term_of_the_present_leader_is_refused(bench: Bench) -> None:
    await bench.store.members.campaign("a", 1000)
    bench.clock.advance(1)
    await bench.store.members.campaign("a", 1000)
    assert await bench.store.members.resign("a", 1) is False
    assert (await bench.store.members.campaign("b", 1000)).id == "a"


async def test_every_beat_says_who_leads(bench: Bench) -> None:
    assert await bench.store.members.beat(FULL_WORKER) == Heard(None)
    leader = await bench.store.members.campaign("a", 10_000)
    assert await bench.store.members.beat(FULL_WORKER) == Heard(leader)
    bench.clock.advance(9.999)
    assert await bench.store.members.beat(FULL_WORKER) == Heard(leader)
    bench.clock.advance(0.001)
    assert await bench.store.members.beat(FULL_WORKER) == Heard(None)


async def test_anybody_may_ask_who_leads(bench: Bench) -> None:
    assert await bench.store.members.leader() is None
    leader = await bench.store.members.campaign("a", 10_000)
    bench.clock.advance(9.999)
    assert await bench.store.members.leader() == leader
    bench.clock.advance(0.001)
    assert await bench.store.members.leader() is None
    again = await bench.store.members.campaign("b", 10_000)
    assert await bench.store.members.leader() == again
    await bench.store.members.resign("b", again.term)
    assert await bench.store.members.leader() is None


async def test_asking_who_leads_changes_nothing(bench: Bench) -> None:
    await bench.store.members.campaign("a", 10_000)
    facts, workers = await bench.facts(), await bench.store.members.workers()
    for _ in range(3):
        await bench.store.members.leader()
    assert (await bench.facts(), await bench.store.members.workers()) == (facts, workers)


async def test_a_leader_whose_process_is_gone_is_deposed(bench: Bench) -> None:
    await bench.store.members.beat(Worker(id="w1", node="first"))
    old = await bench.store.members.campaign("first", 10_000)
    await bench.store.tasks.reclaim(10, ("w1",))
    new = await bench.store.members.campaign("second", 10_000)
    assert (new.id, new.term) == ("second", old.term + 1)
    assert Fact.LEADER_RESIGNED in await bench.facts()


async def test_a_worker_that_only_was_silent_keeps_its_node_in_the_lead(bench: Bench) -> None:
    await bench.store.members.beat(Worker(id="w1", node="first"))
    await bench.pass_time(31)
    await bench.store.members.campaign("first", 10_000)
    assert "w1" in (await bench.store.tasks.reclaim(10)).lost_workers
    assert (await bench.store.members.campaign("second", 10_000)).id == "first"


async def test_a_clock_that_is_set_back_makes_no_lease_longer(bench: Bench) -> None:
    await bench.store.members.campaign("first", 10_000)
    bench.clock.advance(-3600)
    assert (await bench.store.members.campaign("second", 10_000)).id == "first"
    bench.clock.advance(10)
    assert (await bench.store.members.campaign("second", 10_000)).id == "second"


async def test_a_rival_with_a_shorter_lease_does_not_cut_the_leaders(bench: Bench) -> None:
    await bench.store.members.campaign("first", 10_000)
    await bench.store.members.campaign("second", 500)
    bench.clock.advance(5)
    assert (await bench.store.members.campaign("second", 500)).id == "first"


async def test_a_beat_may_be_for_longer_than_a_lease(bench: Bench) -> None:
    await bench.store.members.beat(Worker(id="remote"), 120_000)
    await bench.pass_time(119)
    assert (await bench.store.tasks.reclaim(10)).lost_workers == []
    await bench.pass_time(1)
    assert (await bench.store.tasks.reclaim(10)).lost_workers == ["remote"]


async def test_a_worker_that_was_lost_long_ago_is_forgotten_also_while_there_is_much_to_prune(bench: Bench) -> None:
    await bench.store.members.beat(Worker(id="lost", node="n"))
    await bench.store.tasks.reclaim(10, ("lost",), "killed")
    for name in await bench.submit_many(3):
        await bench.cancel(name)
    bench.clock.advance(Policy().retention / 1000 + LOST_WORKER_KEPT / 1000 + 1)
    assert await bench.store.operators.prune(1) >= 1
    assert [worker.id for worker in await bench.store.members.workers()] == []
