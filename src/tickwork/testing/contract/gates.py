"""Gates: limits, breakers and switches that hold for all workers together."""

from __future__ import annotations

from tickwork.model.policy import Policy
from tickwork.store.contract import Ask, Gate, Left, Refusal, Woken
from tickwork.store.contract.gates import LOOK_AGAIN, RESERVED, WAKE_MAX
from tickwork.store.gating import WAKE_GATES
from tickwork.testing.contract.bench import Bench

LEASE = Policy().lease_ttl / 1000  # seconds
SLOTS = Gate("type:mail", slots=2)
RATE = Gate("type:mail", rate=0.01, burst=3)  # 10 a second
BREAKER = Gate("type:mail", failures=2, timeout=30_000)


async def _enter(bench: Bench, task_id: str, *gates: Gate, order: int = 0) -> Refusal | None:
    (answer,) = await bench.store.gates.enter([Ask(task_id, gates, order)])
    return answer


async def _leave(bench: Bench, task_id: str, *gates: Gate, failed: bool = False) -> list[str]:
    names = tuple(gate.name for gate in gates)
    return _ids(await bench.store.gates.leave([Left(task_id, names, "failed" if failed else "ok")]))


async def _wake(bench: Bench, limit: int = 10) -> list[str]:
    return _ids(await bench.store.gates.wake(limit))


def _ids(woken: list[Woken]) -> list[str]:
    return [each.id for each in woken]


async def _facts(bench: Bench) -> list[tuple[str, str, str]]:
    return [(event.kind, event.id, event.detail) for event in await bench.events()]


async def test_no_more_are_inside_than_there_are_slots(bench: Bench) -> None:
    asks = [Ask(f"t{number}", (SLOTS,)) for number in range(4)]
    answers = await bench.store.gates.enter(asks)
    assert answers[:2] == [None, None]
    assert answers[2:] == [Refusal("type:mail", "full", None, 1), Refusal("type:mail", "full", None, 2)]
    (state,) = await bench.store.gates.look(["type:mail"])
    assert (state.inside, state.waiting) == (2, 2)
    assert await bench.store.gates.crowded(10) == [("type:mail", 2)]


async def test_gates_for_which_there_was_no_time_keep_their_turn(bench: Bench) -> None:
    for name in ("z", "m", "a"):
        gate = Gate(f"key:{name}", rate=0.01, burst=1)
        await bench.store.gates.enter([Ask("before", (gate,)), Ask(name, (gate,))])
        bench.clock.advance(0.1)
    bench.clock.advance(LOOK_AGAIN / 1000)
    assert [await _wake(bench, 1) for _ in range(4)] == [["z"], ["m"], ["a"], []]


async def test_one_that_asks_again_is_still_inside(bench: Bench) -> None:
    assert [await _enter(bench, "a", SLOTS) for _ in range(3)] == [None, None, None]
    assert await _enter(bench, "b", SLOTS) is None
    (state,) = await bench.store.gates.look(["type:mail"])
    assert state.inside == 2


async def test_whoever_leaves_wakes_the_first_of_those_who_wait(bench: Bench) -> None:
    for task_id in ("a", "b"):
        await _enter(bench, task_id, SLOTS)
    for task_id, order in (("late", 2), ("first", 1), ("last", 3)):
        await _enter(bench, task_id, SLOTS, order=order)
    assert await _leave(bench, "a", SLOTS) == ["first"]
    assert await _enter(bench, "new", SLOTS, order=0) is not None, "the room is kept for the one that was woken"
    assert await _enter(bench, "first", SLOTS) is None
    assert await _leave(bench, "b", SLOTS) == ["new"]
    assert await _leave(bench, "first", SLOTS) == ["late"]


async def test_room_that_was_kept_and_not_used_is_for_others(bench: Bench) -> None:
    one = Gate("type:mail", slots=1)
    await _enter(bench, "a", one)
    for order, task_id in enumerate(("gone", "next")):
        await _enter(bench, task_id, one, order=order)
    assert await _leave(bench, "a", one) == ["gone"]
    assert await _wake(bench, 10) == []
    bench.clock.advance(RESERVED / 1000)
    assert await _wake(bench, 10) == ["next"]


async def test_a_leave_that_is_sent_twice_wakes_once(bench: Bench) -> None:
    one = Gate("type:mail", slots=1)
    for order, task_id in enumerate("abc"):
        await _enter(bench, task_id, one, order=order)
    assert await _leave(bench, "a", one) == ["b"]
    assert await _leave(bench, "a", one) == []


async def test_slots_come_back_a_lease_after_their_holder_is_gone(bench: Bench) -> None:
    one = Gate("type:mail", slots=1)
    await _enter(bench, "a", one)
    await _enter(bench, "b", one)
    for _ in range(3):
        bench.clock.advance(LEASE / 2)
        await bench.store.gates.renew([("a", ("type:mail",))])
    assert await _wake(bench, 10) == []
    for _ in range(4):  # in steps, as nobody counts as gone while nobody called
        bench.clock.advance(LEASE / 4)
        woken = await _wake(bench, 10)
    assert woken == ["b"]
    assert await _enter(bench, "b", one) is None


async def test_a_slot_is_given_on_at_the_moment_at_which_its_time_ends(bench: Bench) -> None:
    """Not only when a gate that was refused is looked at again in any case."""
    one, rest = Gate("type:mail", slots=1), LOOK_AGAIN / 4000
    await _enter(bench, "a", one)
    for step in (LEASE / 4, LEASE / 4, LEASE / 4, LEASE / 4 - rest):
        bench.clock.advance(step)
        assert await _wake(bench) == []
    assert await _enter(bench, "b", one) is not None
    bench.clock.advance(rest)
    assert await _wake(bench) == ["b"]


async def test_a_slot_is_held_for_one_lease_more_when_the_clock_was_set_back(bench: Bench) -> None:
    """From when somebody asks at this gate, and also when the grace of all leases is over by then."""
    one = Gate("type:mail", slots=1)
    await _enter(bench, "a", one)
    bench.clock.advance(-3600)
    await bench.witness()
    await bench.pass_time(LEASE * 2 / 3)
    assert await _enter(bench, "b", one) is not None
    await bench.pass_time(LEASE * 2 / 3)
    assert await _enter(bench, "c", one, order=1) is not None
    assert await _wake(bench, 10) == []
    (state,) = await bench.store.gates.look(["type:mail"])
    assert (state.inside, state.waiting) == (1, 2)
    await bench.pass_time(LEASE / 3)
    assert await _wake(bench, 10) == ["b"]
    assert await _enter(bench, "b", one) is None


async def test_a_gate_that_is_renewed_after_its_end_is_held_again(bench: Bench) -> None:
    one = Gate("type:mail", slots=1)
    await _enter(bench, "a", one)
    for _ in range(5):
        bench.clock.advance(LEASE / 4)
        await _wake(bench, 1)
    await bench.store.gates.renew([("a", ("type:mail",))])
    assert await _enter(bench, "b", one) is not None


async def test_a_rate_lets_through_a_burst_and_then_one_at_a_time(bench: Bench) -> None:
    answers = await bench.store.gates.enter([Ask(f"t{number}", (RATE,)) for number in range(6)])
    assert answers[:3] == [None] * 3
    waits = [answer and (answer.reason, answer.wait) for answer in answers[3:]]
    assert waits == [("rate", 100), ("rate", 200), ("rate", 300)], "each is told a time of its own"
    bench.clock.advance(0.099)
    assert await _enter(bench, "t3", RATE) is not None
    bench.clock.advance(0.001)
    assert await _enter(bench, "t3", RATE) is None
    assert await _enter(bench, "t4", RATE) is not None


async def test_no_more_begin_than_the_rate_and_one_burst(bench: Bench) -> None:
    begun = 0
    for step in range(100):
        answers = await bench.store.gates.enter([Ask(f"{step}.{number}", (RATE,)) for number in range(3)])
        begun += answers.count(None)
        bench.clock.advance(0.037)
    assert begun == 3 + int(99 * 0.037 * 10)


async def test_tokens_do_not_pile_up_beyond_the_burst(bench: Bench) -> None:
    await _enter(bench, "t", RATE)
    bench.clock.advance(LEASE * 2)
    answers = await bench.store.gates.enter([Ask(f"t{number}", (RATE,)) for number in range(5)])
    assert answers.count(None) == 3


async def test_those_far_behind_in_a_line_are_woken_in_their_order(bench: Bench) -> None:
    gate = Gate("type:mail", rate=0.001, burst=1)  # one a second
    asks = [Ask(f"t{number:02}", (gate,), 50 - number) for number in range(12)]
    answers = await bench.store.gates.enter(asks)
    waits = [answer and answer.wait for answer in answers]
    assert waits == [None, 1000, 2000, 3000, 4000, 5000, *[None] * 6], "the first was let through"
    assert answers[6] is not None
    bench.clock.advance(5)
    assert await _wake(bench, 10) == ["t11", "t10"], "some time before their tokens, the most urgent first"


async def test_a_rate_that_nobody_waits_for_is_drawn_without_an_id(bench: Bench) -> None:
    gate = Gate("submit", rate=0.001, burst=1)
    assert await _enter(bench, "", gate) is None
    assert await _enter(bench, "", gate) == Refusal("submit", "rate", 1000, 0)
    assert await _enter(bench, "", gate) == Refusal("submit", "rate", 1000, 0), "it has no place in a line"


async def test_several_tokens_are_drawn_at_once_or_none(bench: Bench) -> None:
    def gate(cost: int) -> Gate:
        return Gate("submit", rate=0.01, burst=10, cost=cost)

    assert await _enter(bench, "", gate(7)) is None
    assert await _enter(bench, "", gate(5)) == Refusal("submit", "rate", 200, 0)
    assert await _enter(bench, "", gate(3)) is None
    bench.clock.advance(1)
    assert await _enter(bench, "", gate(25)) is None, "more than the burst, when as many as that are there"
    assert await _enter(bench, "", gate(1)) == Refusal("submit", "rate", 1600, 0), "what was drawn ahead is owed"


async def test_those_who_wait_for_a_rate_are_woken_when_it_was_raised(bench: Bench) -> None:
    slow, fast = Gate("type:mail", rate=0.00001, burst=1), Gate("type:mail", rate=1, burst=10)
    for order in range(6):
        await _enter(bench, f"t{order}", slow, order=order)
    assert await _enter(bench, "new", fast, order=9) is not None
    bench.clock.advance(1)
    assert await _wake(bench, 10) == ["t1", "new", "t2", "t3", "t4", "t5"], "first those who had a time"


async def test_gates_by_rate_are_looked_at_after_a_pause_and_hold_up_no_other(bench: Bench) -> None:
    """One call looks at so many gates. Those where tokens are far away are not the first of them again and again."""
    slow = [Gate(f"key:{number:03}", rate=1 / 3_600_000, burst=1) for number in range(WAKE_GATES)]
    for step in range(3):
        await bench.store.gates.enter([Ask(f"{gate.name}.{step}", (gate,)) for gate in slow])
    shut = Gate("type:mail", shut=True)
    await _enter(bench, "waits", shut)
    bench.clock.advance(LOOK_AGAIN / 1000)
    assert await _wake(bench, 10) == []
    bench.clock.advance(0.001)
    await bench.store.gates.reset(shut.name)
    assert await _wake(bench, 10) == ["waits"]


async def test_a_new_limit_counts_from_when_it_is_first_asked(bench: Bench) -> None:
    await _enter(bench, "a", SLOTS)
    both = Gate("type:mail", slots=2, rate=0.001, burst=2)
    answers = await bench.store.gates.enter([Ask(f"t{number}", (both,)) for number in range(2)])
    assert answers == [None, Refusal("type:mail", "full", None, 1)]
    wide = Gate("type:mail", slots=9, rate=0.001, burst=2)
    answers = await bench.store.gates.enter([Ask(f"u{number}", (wide,)) for number in range(2)])
    assert [answer and answer.reason for answer in answers] == [None, "rate"]


async def test_each_is_let_through_all_of_its_gates_or_none(bench: Bench) -> None:
    key, kind = Gate("key:acme", slots=1), Gate("type:mail", rate=0.001, burst=2)
    assert await _enter(bench, "a", key, kind) is None
    refusal = await _enter(bench, "b", key, kind)
    assert refusal is not None
    assert refusal.gate == "key:acme"
    assert await _enter(bench, "c", kind) is None, "the one that was refused has drawn nothing"
    assert await _enter(bench, "d", kind) is not None


async def test_room_is_kept_at_one_gate_only_while_no_other_refuses(bench: Bench) -> None:
    key, kind = Gate("key:acme", slots=1), Gate("type:mail", slots=1)
    await _enter(bench, "a", kind)
    await _enter(bench, "b", kind, key, order=1)
    await _enter(bench, "c", kind, order=2)
    await _enter(bench, "other", key)
    assert await _leave(bench, "a", kind) == ["b"]
    refusal = await _enter(bench, "b", kind, key)
    assert refusal is not None
    assert refusal.gate == "key:acme"
    assert await _wake(bench, 10) == ["c"]


async def test_gates_of_other_names_are_not_touched(bench: Bench) -> None:
    for number in range(50):
        assert await _enter(bench, "t", Gate(f"key:{number}", slots=1)) is None
    assert await _enter(bench, "u", Gate("key:7", slots=1)) is not None
    assert [state.inside for state in await bench.store.gates.look(["key:7", "key:none"])] == [1, 0]


async def test_a_shut_gate_lets_nobody_through_until_it_is_reset(bench: Bench) -> None:
    shut, free = Gate("switch:tag/a=b", shut=True), Gate("switch:tag/a=b")
    for order in range(3):
        assert await _enter(bench, f"t{order}", shut, order=order) == Refusal(shut.name, "shut", None, order + 1)
    bench.clock.advance(LEASE)
    assert await _wake(bench, 10) == []
    await bench.store.gates.reset(shut.name)
    assert await _wake(bench, 2) == ["t0", "t1"]
    assert await _wake(bench, 2) == ["t2"]
    assert await _enter(bench, "t0", free) is None


async def test_many_are_woken_in_steps(bench: Bench) -> None:
    shut = Gate("switch:key/a", shut=True)
    asks = [Ask(f"t{number:05}", (shut,), number) for number in range(WAKE_MAX + 5)]
    await bench.store.gates.enter(asks)
    await bench.store.gates.reset(shut.name)
    first = await _wake(bench, WAKE_MAX + 5)
    assert first == [ask.id for ask in asks[:WAKE_MAX]]
    assert await _wake(bench, WAKE_MAX) == [ask.id for ask in asks[WAKE_MAX:]]


async def test_a_breaker_opens_after_failures_in_a_row(bench: Bench) -> None:
    for task_id, failed in (("a", True), ("b", False), ("c", True)):
        assert await _enter(bench, task_id, BREAKER) is None
        await _leave(bench, task_id, BREAKER, failed=failed)
    assert await _enter(bench, "d", BREAKER) is None, "a success in between counts"
    await _leave(bench, "d", BREAKER, failed=True)
    assert await _enter(bench, "e", BREAKER) == Refusal("type:mail", "open", 30_000, 1)
    assert await _facts(bench) == [("breaker.opened", "type:mail", "2 failures in a row")]
    (state,) = await bench.store.gates.opened()
    assert (state.name, state.failures, state.waiting) == ("type:mail", 2, 1)
    assert state.open_until == bench.clock.now() + 30_000


async def test_a_breaker_opens_once_however_many_fail_meanwhile(bench: Bench) -> None:
    for number in range(5):
        await _enter(bench, f"t{number}", BREAKER)
    for number in range(5):
        await _leave(bench, f"t{number}", BREAKER, failed=True)
    assert [kind for kind, _, _ in await _facts(bench)] == ["breaker.opened"]


async def _open(bench: Bench) -> None:
    for task_id in ("f1", "f2"):
        await _enter(bench, task_id, BREAKER)
        await _leave(bench, task_id, BREAKER, failed=True)


async def test_exactly_one_is_let_through_to_try(bench: Bench) -> None:
    await _open(bench)
    bench.clock.advance(30)
    answers = await bench.store.gates.enter([Ask(f"t{number}", (BREAKER,), number) for number in range(4)])
    assert [answer and (answer.reason, answer.wait) for answer in answers] == [None, *[("open", None)] * 3]
    assert (await _facts(bench))[-1] == ("breaker.probed", "type:mail", "t0")
    assert sorted(await _leave(bench, "t0", BREAKER)) == ["t1", "t2", "t3"]
    assert (await _facts(bench))[-1] == ("breaker.closed", "type:mail", "")
    assert await bench.store.gates.opened() == []
    assert await _enter(bench, "t1", BREAKER) is None


async def test_a_try_that_fails_opens_the_breaker_again(bench: Bench) -> None:
    await _open(bench)
    bench.clock.advance(30)
    await _enter(bench, "probe", BREAKER)
    await _enter(bench, "next", BREAKER)
    assert await _leave(bench, "probe", BREAKER, failed=True) == []
    assert (await _facts(bench))[-1] == ("breaker.opened", "type:mail", "3 failures in a row")
    assert await _wake(bench, 10) == []
    bench.clock.advance(30)
    assert await _wake(bench, 10) == ["next"]
    assert await _enter(bench, "next", BREAKER) is None


async def test_a_try_that_says_nothing_is_followed_by_another(bench: Bench) -> None:
    await _open(bench)
    bench.clock.advance(30)
    await _enter(bench, "probe", BREAKER)
    await _enter(bench, "next", BREAKER)
    woken = _ids(await bench.store.gates.leave([Left("probe", (BREAKER.name,), "none")]))
    assert woken == ["next"]
    assert await _enter(bench, "next", BREAKER) is None


async def test_a_try_whose_worker_is_gone_is_followed_by_another(bench: Bench) -> None:
    await _open(bench)
    bench.clock.advance(30)
    await _enter(bench, "probe", BREAKER)
    await _enter(bench, "next", BREAKER)
    woken: list[str] = []
    for _ in range(8):
        bench.clock.advance(LEASE / 4)
        woken += await _wake(bench, 10)
    assert woken[:1] == ["next"]
    assert await _enter(bench, "next", BREAKER) is None


async def test_a_breaker_is_closed_by_hand(bench: Bench) -> None:
    await _open(bench)
    await _enter(bench, "t", BREAKER)
    await bench.store.gates.reset("type:mail")
    assert (await _facts(bench))[-1] == ("breaker.closed", "type:mail", "")
    assert await _wake(bench, 10) == ["t"]
    assert await _enter(bench, "t", BREAKER) is None


async def test_failures_are_forgotten_with_the_rule(bench: Bench) -> None:
    await _open(bench)
    assert await _enter(bench, "t", Gate("type:mail", slots=5)) is None
    assert await bench.store.gates.opened() == []
    assert await _enter(bench, "u", BREAKER) is None


async def test_names_may_be_any_text(bench: Bench) -> None:
    for text in ("key:ä b", "key:'; DROP TABLE", "key:\n", "key:" + "x" * 500):
        gate = Gate(text, slots=1)
        assert await _enter(bench, "a", gate) is None
        refusal = await _enter(bench, "b", gate)
        assert refusal is not None
        assert refusal.gate == text
        assert await _leave(bench, "a", gate) == ["b"]
