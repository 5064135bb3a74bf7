"""Strategies of assigned dispatch: how they spread tasks, and how programs add their own."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from tickwork import Candidate, ConfigError, Load, Scheduler, TickworkError
from tickwork.dispatch import strategies
from tickwork.dispatch.strategies import STRATEGIES, Strategies, Strategy, strategy_of

WEIGHTS = (1, 1, 2, 2, 4)
TASKS = 10_000
AT_ONCE = 20  # tasks that run at a time, of 100 slots


def five_workers() -> list[Load]:
    return [Load(id=f"w{number}", weight=weight, capacity=10 * weight) for number, weight in enumerate(WEIGHTS)]


def spread(pick: Strategy, workers: Sequence[Load], tasks: int = TASKS, at_once: int = AT_ONCE) -> dict[str, int]:
    """Assign tasks that all take equally long, and count those of each worker."""
    counts = Counter[str]()
    running = deque[Load]()
    for number in range(tasks):
        if len(running) == at_once:
            running.popleft().running -= 1
        chosen = pick(Candidate(id=f"task-{number}"), workers)
        assert chosen is not None
        assert chosen.free
        chosen.running += 1
        chosen.picks += 1
        running.append(chosen)
        counts[chosen.id] += 1
    return dict(counts)


EQUALLY = dict.fromkeys(["w0", "w1", "w2", "w3", "w4"], 2000)
BY_WEIGHT = {"w0": 1000, "w1": 1000, "w2": 2000, "w3": 2000, "w4": 4000}


@pytest.mark.parametrize(
    ("name", "promise"),
    [
        ("least_tasks", EQUALLY),
        ("round_robin", EQUALLY),
        ("random", EQUALLY),
        ("weighted_round_robin", BY_WEIGHT),
        ("capacity_based", BY_WEIGHT),
    ],
)
def test_each_spreads_tasks_as_it_promises(name: str, promise: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategies, "_random", random.Random(7))
    assert spread(STRATEGIES[name], five_workers()) == pytest.approx(promise, rel=0.05)


@pytest.mark.parametrize("at_once", [1, 5, 13, 25, 37, 60, 85])
@pytest.mark.parametrize("name", ["weighted_round_robin", "capacity_based"])
def test_shares_hold_at_every_load(name: str, at_once: int) -> None:
    assert spread(STRATEGIES[name], five_workers(), at_once=at_once) == pytest.approx(BY_WEIGHT, rel=0.05)


def holders(workers: Sequence[Load], keys: int = TASKS) -> dict[str, str]:
    """Who has each key, by consistent hash."""
    found = {}
    for number in range(keys):
        chosen = strategies.consistent_hash(Candidate(id="any", key=f"customer-{number}"), workers)
        assert chosen is not None
        found[f"customer-{number}"] = chosen.id
    return found


def test_consistent_hash_spreads_keys_by_weight() -> None:
    """The bound is four standard deviations of a random choice; the keys are fixed, so it holds always or never."""
    counts = Counter(holders(five_workers()).values())
    for worker, promise in BY_WEIGHT.items():
        assert abs(counts[worker] - promise) <= 4 * (promise * (1 - promise / TASKS)) ** 0.5


def test_consistent_hash_moves_only_the_keys_of_a_worker_that_leaves_or_joins() -> None:
    workers = [Load(id=f"worker-{number}") for number in range(10)]
    before = holders(workers)
    for gone in workers:
        after = holders([worker for worker in workers if worker is not gone])
        moved = {key for key in before if before[key] != after[key]}
        assert moved == {key for key, holder in before.items() if holder == gone.id}
        assert len(moved) <= 1.3 / len(workers) * TASKS
    joined = holders([*workers, Load(id="worker-new")])
    moved = {key for key in before if before[key] != joined[key]}
    assert {joined[key] for key in moved} == {"worker-new"}
    assert len(moved) <= 1.3 / (len(workers) + 1) * TASKS


def test_consistent_hash_goes_by_the_key_or_else_by_the_id() -> None:
    workers = [Load(id=f"worker-{number}") for number in range(50)]
    pick = strategies.consistent_hash
    by_key = {str(pick(Candidate(id=f"t{number}", key="ada"), workers)) for number in range(20)}
    by_id = {str(pick(Candidate(id=f"t{number}"), workers)) for number in range(20)}
    assert len(by_key) == 1 < len(by_id)
    assert pick(Candidate(id="ada"), workers) == pick(Candidate(id="t1", key="ada"), list(reversed(workers)))


def test_consistent_hash_waits_for_its_worker_when_that_is_full() -> None:
    workers = [Load(id=f"worker-{number}", capacity=1) for number in range(3)]
    task = Candidate(id="t", key="ada")
    chosen = strategies.consistent_hash(task, workers)
    assert chosen is not None
    chosen.running = 1
    assert strategies.consistent_hash(task, workers) is None


@pytest.mark.parametrize("name", STRATEGIES)
def test_none_is_picked_when_nobody_has_a_free_slot(name: str) -> None:
    full = [Load(id="a", capacity=2, running=2), Load(id="b", capacity=1, running=3)]
    assert STRATEGIES[name](Candidate(id="t"), full) is None
    assert STRATEGIES[name](Candidate(id="t"), []) is None


@pytest.mark.parametrize("name", sorted(STRATEGIES.keys() - {"consistent_hash"}))
def test_a_full_worker_is_passed_over(name: str) -> None:
    full, free = Load(id="a", weight=9, capacity=2, running=2), Load(id="b", capacity=9, running=8, picks=99)
    assert STRATEGIES[name](Candidate(id="t"), [full, free]) is free


def test_ties() -> None:
    fewer, more = Load(id="b", running=1, picks=3), Load(id="a", running=1, picks=4)
    assert strategies.least_tasks(Candidate(id="t"), [more, fewer]) is fewer
    assert strategies.capacity_based(Candidate(id="t"), [more, fewer]) is fewer
    first, second = Load(id="a", picks=3), Load(id="b", picks=3)
    for pick in (strategies.least_tasks, strategies.round_robin, strategies.weighted_round_robin):
        assert pick(Candidate(id="t"), [second, first]) is first


def test_weighted_round_robin_is_evenly_mixed() -> None:
    """Not four in a row for the heavy one: no worker waits for longer than a round."""
    workers = [Load(id="light", weight=1, capacity=99), Load(id="heavy", weight=4, capacity=99)]
    order = []
    for number in range(10):
        chosen = strategies.weighted_round_robin(Candidate(id=str(number)), workers)
        assert chosen is not None
        chosen.picks += 1
        order.append(chosen.id)
    assert order.count("light") == order[:5].count("light") * 2 == 2


def test_names() -> None:
    assert strategy_of("least_task") is strategy_of("least_tasks") is strategies.least_tasks
    known = "least_tasks, round_robin, random, weighted_round_robin, consistent_hash, capacity_based"
    for unknown in ("leest_tasks", "", 7, ["random"]):
        with pytest.raises(ConfigError, match=f"^unknown strategy .*; known are {known}\\. "):
            strategy_of(unknown)  # type: ignore[arg-type]


def last_one(task: Candidate, workers: Sequence[Load]) -> Load | None:
    return workers[-1] if workers[-1].free else None


def test_a_function_of_ones_own() -> None:
    app = Scheduler("memory://", load_balance_strategy="last_one")
    app.strategies.register("last_one", last_one)
    assert app.strategies.list() == [*STRATEGIES, "last_one"]
    workers = five_workers()
    assert app.strategies.of("last_one")(Candidate(id="t"), workers) is workers[-1]
    assert app.strategies.of("least_task") is strategies.least_tasks


async def test_an_unknown_strategy_is_refused_before_anything_is_started() -> None:
    app = Scheduler("memory://", load_balance_strategy="last_one")
    with pytest.raises(ConfigError, match=r"^unknown strategy 'last_one'; known are least_tasks, "):
        await app.start()
    app.strategies.register("last_one", last_one)
    async with app:
        pass


async def later(task: Candidate, workers: Sequence[Load]) -> Load | None:
    return None


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (None, "not None"),
        ("random", "not 'random'"),
        (later, "is async"),
        (lambda: None, "cannot be called so: too many positional arguments"),
        (lambda task: None, "cannot be called so: too many positional arguments"),
        (lambda task, workers, more: None, "cannot be called so: missing a required argument: 'more'"),
        (lambda task, *, workers: None, "cannot be called so: too many positional arguments"),
    ],
)
def test_functions_that_cannot_be_strategies(function: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=r"^strategy 'mine' must be a plain function of two arguments") as refused:
        Strategies().register("mine", function)
    assert told in str(refused.value)


def test_functions_with_further_arguments_that_have_defaults() -> None:
    known = Strategies()
    known.register("of_any", lambda *arguments: None)
    known.register("partial", partial(lambda zone, task, workers: workers[0], "eu"))
    workers = five_workers()
    assert known.of("partial")(Candidate(id="t"), workers) is workers[0]


@pytest.mark.parametrize("name", ["least_tasks", "least_task", "random", "mine"])
def test_names_that_are_taken(name: str) -> None:
    known = Strategies()
    known.register("mine", last_one)
    with pytest.raises(ConfigError, match=f"there is a strategy '{name}' already"):
        known.register(name, last_one)


@pytest.mark.parametrize("name", ["", "a b", "x" * 129, 7, None])
def test_names_that_are_none(name: Any) -> None:
    with pytest.raises(ConfigError, match=r"^a strategy's name must be 1 to 128 letters"):
        Strategies().register(name, last_one)


@pytest.mark.parametrize("returned", [Load(id="w0"), "w0", 0, Load(id="full", capacity=1, running=1)])
def test_what_a_function_may_not_return(returned: Any) -> None:
    known = Strategies()
    known.register("mine", lambda task, workers: returned)
    workers = [*five_workers(), *([returned] if isinstance(returned, Load) and not returned.free else [])]
    with pytest.raises(TickworkError, match=r"^strategy 'mine' must return one of the workers .* for task t it "):
        known.of("mine")(Candidate(id="t"), workers)
