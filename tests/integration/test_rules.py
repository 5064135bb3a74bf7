"""`app.limits`, `app.breakers` and `app.switches`: what is set by hand, kept in the store, and told in the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from tests.integration.apps import Make, eventually, store_of
from tickwork import BreakerInfo, ConfigError, LimitInfo, Scheduler, StoreError, StoreUnavailable, SwitchInfo
from tickwork.client import rulebook
from tickwork.clock import ManualClock
from tickwork.host import user_at_host
from tickwork.model import gates as rules
from tickwork.model.gates import Book, Limit, breaker_gate, limit_gate, read_book, switch_gate, write_book
from tickwork.node.gates import watch_gates
from tickwork.observe.loggers import Log
from tickwork.store.contract import Ask, Gate, Left, Store
from tickwork.worker.gatekeeper import Gatekeeper

SAM = "sam@host"


async def told(app: Scheduler) -> list[tuple[str, str, str]]:
    kinds = ("limit.", "switch.", "breaker.")
    return [(e.kind, e.id, e.detail) for e in await app.events.read() if e.kind.startswith(kinds)]


async def book_of(app: Scheduler) -> Book:
    return read_book(await (await store_of(app)).marks.get(rules.MARK))


async def declare(app: Scheduler, **limits: Limit) -> None:
    """As nodes do that have such handlers."""
    store = await store_of(app)
    text = await store.marks.get(rules.MARK)
    book = msgspec.structs.replace(read_book(text), declared={f"type:{kind}": each for kind, each in limits.items()})
    assert await store.marks.swap(rules.MARK, text, write_book(msgspec.structs.replace(book, version=book.version + 1)))


async def ask(store: Store, gate: Gate, *ids: str) -> list[str | None]:
    """The reasons for which tasks are refused."""
    answers = await store.gates.enter([Ask(each, (gate,)) for each in ids])
    return [None if each is None else each.reason for each in answers]


async def woken(store: Store) -> set[str]:
    return {each.id for each in await store.gates.wake(100)}


class TestLimits:
    async def test_one_that_is_set_is_kept_and_told(self, app: Scheduler) -> None:
        assert await app.limits.list() == []
        before = datetime.now(UTC) - timedelta(minutes=5)
        await app.limits.set("type:mail", rate="100/m", burst=20, concurrency=5, note="their bill", by=SAM)
        await app.limits.set("queue:orders", rate=2, by="")
        queue, mail = await app.limits.list()
        assert (mail.of, mail.rate, mail.burst, mail.concurrency) == ("type:mail", 100 / 60, 20, 5)
        assert (mail.per, mail.origin, mail.by, mail.note) == (None, "hand", SAM, "their bill")
        assert mail.since is not None
        assert mail.since > before
        assert (mail.text, queue.text) == ("100/m, burst 20, 5 at a time", "2/s, burst 2")
        assert (mail.running, mail.waiting, mail.keys) == (0, 0, {})
        assert (queue.running, queue.concurrency) == (None, None)
        assert await told(app) == [
            ("limit.set", "type:mail", "by sam@host: 100/m, burst 20, 5 at a time; their bill"),
            ("limit.set", "queue:orders", "2/s"),
        ]

    async def test_one_that_is_set_again_replaces_the_other(self, app: Scheduler) -> None:
        await app.limits.set("type:mail", rate=5, concurrency=2, note="first")
        await app.limits.set("type:mail", concurrency=7)
        (mail,) = await app.limits.list()
        assert (mail.rate, mail.concurrency, mail.note) == (None, 7, "")
        assert (await book_of(app)).version == 2

    async def test_what_the_code_says_holds_again_when_it_is_removed(self, app: Scheduler) -> None:
        await declare(app, mail=Limit(rate=10.0), other=Limit(concurrency=1))
        await app.limits.set("type:mail", rate=1)
        assert [(each.of, each.rate, each.origin) for each in await app.limits.list()] == [
            ("type:mail", 1.0, "hand"), ("type:other", None, "code"),
        ]  # fmt: skip
        assert await app.limits.remove("type:mail", by=SAM)
        mail, _ = await app.limits.list()
        assert (mail.rate, mail.origin, mail.since) == (10.0, "code", None)
        assert not await app.limits.remove("type:mail")
        assert not await app.limits.remove("type:other"), "what the code says is not removed"
        assert (await told(app))[1:] == [("limit.removed", "type:mail", "by sam@host")]

    async def test_one_that_says_nothing_lifts_what_the_code_says(self, app: Scheduler) -> None:
        await declare(app, mail=Limit(rate=10.0))
        await app.limits.set("type:mail", note="as an exception")
        (mail,) = await app.limits.list()
        assert (mail.rate, mail.concurrency, mail.origin, mail.text) == (None, None, "hand", "no limit")
        assert not (await book_of(app)).limits["type:mail"].limits

    async def test_how_it_is_there_now_is_shown(self, app: Scheduler) -> None:
        await app.limits.set("type:mail", rate="1/d", burst=3, concurrency=2)
        gate = Gate(limit_gate("type:mail"), rate=1 / 86_400_000, burst=3, slots=2)
        assert await ask(await store_of(app), gate, "a", "b", "c") == [None, None, "full"]
        (mail,) = await app.limits.list()
        assert mail.tokens is not None
        assert 1 <= mail.tokens < 1.1, "setting it draws nothing"
        assert (mail.running, mail.waiting) == (2, 1)

    async def test_the_most_crowded_keys_are_shown(self, app: Scheduler) -> None:
        store = await store_of(app)
        await app.limits.set("type:mail", concurrency=1, per="key")
        await app.limits.set("type:mailing", concurrency=1)
        for key, waiting in {"acme": 3, "other/key=x": 1, "none": 0}.items():
            gate = Gate(limit_gate("type:mail", key), slots=1)
            await ask(store, gate, *(f"{key}{n}" for n in range(waiting + 1)))
        await ask(store, Gate(limit_gate("type:mailing"), slots=1), "x", "y")
        mail, mailing = await app.limits.list()
        assert (mail.per, mail.keys, mail.waiting) == ("key", {"acme": 3, "other/key=x": 1}, 4)
        assert (mail.tokens, mail.running) == (None, None)
        assert (mailing.keys, mailing.waiting, mailing.running) == ({}, 1, 1)

    @pytest.mark.parametrize("key", [None, "acme"], ids=["type", "key"])
    async def test_those_who_wait_go_by_the_new_rule(self, app: Scheduler, key: str | None) -> None:
        """Else they would go on at the pace of the old one, by which they were refused."""
        store, per = await store_of(app), None if key is None else "key"
        await app.limits.set("type:mail", rate="1/d", burst=1, per=per)  # type: ignore[arg-type]
        gate = Gate(limit_gate("type:mail", key), rate=1 / 86_400_000, burst=1)
        ids = [f"t{n}" for n in range(8)]
        assert await ask(store, gate, "first", *ids) == [None, *["rate"] * len(ids)]
        await app.limits.remove("type:mail")
        assert await woken(store) == set(ids)

    async def test_a_larger_number_lets_more_in_at_once(self, app: Scheduler) -> None:
        store = await store_of(app)
        await app.limits.set("type:mail", concurrency=1)
        assert await ask(store, Gate(limit_gate("type:mail"), slots=1), *"abcd") == [None, "full", "full", "full"]
        await app.limits.set("type:mail", concurrency=3)
        assert await woken(store) == {"b", "c"}

    async def test_those_who_wait_for_the_limit_of_a_key_are_let_go_when_it_is_one_for_all(
        self, app: Scheduler
    ) -> None:
        store = await store_of(app)
        await app.limits.set("type:mail", concurrency=1, per="key")
        await ask(store, Gate(limit_gate("type:mail", "acme"), slots=1), *"abc")
        await app.limits.set("type:mail", concurrency=1)
        assert await woken(store) == {"b", "c"}

    @pytest.mark.parametrize(
        ("of", "wrong", "text"),
        [
            ("mail", {}, "a limit must be type:NAME or queue:NAME"),
            ("type:", {}, "a limit must be"),
            ("key:acme", {}, "a limit must be"),
            (7, {}, "a limit must be"),
            ("type:a b", {}, "type must be 1 to 128 letters"),
            ("queue:tickwork.hooks", {}, "reserved"),
            ("type:mail", {"rate": "fast"}, "a rate must be"),
            ("type:mail", {"rate": 0}, "a rate must be"),
            ("type:mail", {"rate": 1, "burst": 0}, "burst must be a whole number from 1"),
            ("type:mail", {"burst": 5}, "burst belongs to a rate"),
            ("type:mail", {"concurrency": 0}, "concurrency must be a whole number from 1"),
            ("type:mail", {"concurrency": True}, "concurrency must be a whole number"),
            ("type:mail", {"rate": 1, "per": "tag"}, "per must be one of key"),
            ("type:mail", {"per": "key"}, "per belongs to a rate or a concurrency"),
            ("type:mail", {"rate": 1, "note": 5}, "note must be a text"),
            ("type:mail", {"rate": 1, "by": 5}, "by must be a text"),
        ],
    )
    async def test_what_cannot_be_is_refused(self, make: Make, of: Any, wrong: dict[str, Any], text: str) -> None:
        app = make("memory://")
        with pytest.raises(ConfigError, match=text):
            await app.limits.set(of, **wrong)
        assert await book_of(app) == Book()


class TestBreakers:
    async def test_one_is_opened_and_closed_by_hand(self, app: Scheduler) -> None:
        assert await app.breakers.list() == []
        assert await app.breakers.get("type:mail") == BreakerInfo(of="type:mail", state="closed")
        await app.breakers.open("type:mail", "they are down", SAM)
        (found,) = await app.breakers.list()
        assert found == await app.breakers.get("type:mail")
        assert (found.of, found.state, found.by_hand, found.by) == ("type:mail", "open", True, SAM)
        assert (found.note, found.open_until, found.failures, found.waiting) == ("they are down", None, 0, 0)
        store = await store_of(app)
        await ask(store, Gate(breaker_gate("type:mail"), shut=True), "a", "b")
        assert [each.waiting for each in await app.breakers.list()] == [2]
        assert await app.breakers.close("type:mail", by="kim")
        assert await app.breakers.list() == []
        assert await woken(store) == {"a", "b"}
        assert not await app.breakers.close("type:mail")
        assert await told(app) == [
            ("breaker.opened", "breaker:type:mail", "by sam@host: they are down"),
            ("breaker.closed", "breaker:type:mail", "by kim"),
        ]

    async def test_one_that_failures_have_opened_tells_how_long(self, make: Make, url: str, clock: ManualClock) -> None:
        app = make(url, clock=clock)
        store = await store_of(app)
        gate = Gate(breaker_gate("target:http/billing"), failures=2, timeout=30_000)
        for task_id in ("a", "b"):
            await ask(store, gate, task_id)
            await store.gates.leave([Left(task_id, (gate.name,), "failed")])
        assert await ask(store, gate, "c") == ["open"]
        (found,) = await app.breakers.list()
        assert (found.of, found.state, found.failures, found.waiting) == ("target:http/billing", "open", 2, 1)
        assert found.open_until == datetime.fromtimestamp(store.now() / 1000 + 30, UTC)
        assert (found.by_hand, found.since) == (False, None)
        clock.advance(30)
        assert (await app.breakers.get("target:http/billing")).state == "half_open"
        assert await app.breakers.close("target:http/billing")
        assert await woken(store) == {"c"}
        assert await app.breakers.get("target:http/billing") == BreakerInfo(of="target:http/billing", state="closed")

    async def test_one_is_half_open_after_its_time(self, app: Scheduler) -> None:
        store, gate = await store_of(app), Gate(breaker_gate("type:mail"), failures=1, timeout=1)
        await ask(store, gate, "a")
        await store.gates.leave([Left("a", (gate.name,), "failed")])

        async def is_half_open() -> bool:
            return [each.state for each in await app.breakers.list()] == ["half_open"]

        async def lets_one_through() -> bool:
            return await ask(store, gate, "b") == [None]

        await eventually(is_half_open)
        await eventually(lets_one_through)  # on Redis by its clock, from which that of a client differs by some ms
        assert await ask(store, gate, "c") == ["open"], "one is let through to try"
        assert (await app.breakers.get("type:mail")).waiting == 1

    async def test_one_that_failures_have_opened_is_closed_by_hand(self, app: Scheduler) -> None:
        store, gate = await store_of(app), Gate(breaker_gate("type:mail"), failures=1, timeout=3_600_000)
        await ask(store, gate, "a")
        await store.gates.leave([Left("a", (gate.name,), "failed")])
        assert [each.state for each in await app.breakers.list()] == ["open"]
        assert await app.breakers.close("type:mail")
        assert await app.breakers.list() == []
        assert await ask(store, gate, "b") == [None]

    @pytest.mark.parametrize("of", ["mail", "queue:mail", "target:http", "target:http/", "target:/x", "type:a/b", None])
    async def test_a_name_that_cannot_be_is_refused(self, make: Make, of: Any) -> None:
        app = make("memory://")
        for call in (app.breakers.open, app.breakers.close, app.breakers.get):
            with pytest.raises(ConfigError, match="must be"):
                await call(of)


class TestSwitches:
    @pytest.mark.parametrize("of", ["type:mail", "key:acme corp/7", "tag:customer=acme=1", "tag:empty="])
    async def test_tasks_are_switched_off_and_on(self, app: Scheduler, of: str) -> None:
        assert await app.switches.list() == []
        await app.switches.off(of, "wrong prices", SAM)
        (found,) = await app.switches.list()
        assert isinstance(found, SwitchInfo)
        assert (found.of, found.by, found.note, found.until, found.waiting) == (of, SAM, "wrong prices", None, 0)
        assert found.since is not None
        store = await store_of(app)
        assert await ask(store, Gate(switch_gate(of), shut=True), "a", "b") == ["shut", "shut"]
        assert [each.waiting for each in await app.switches.list()] == [2]
        assert await app.switches.on(of)
        assert (await app.switches.list(), await woken(store)) == ([], {"a", "b"})
        assert not await app.switches.on(of)
        off, on = ("switch.off", of, "by sam@host: wrong prices"), ("switch.on", of, f"by {user_at_host()}")
        assert await told(app) == [off, on]

    async def test_an_end_is_kept(self, app: Scheduler) -> None:
        await app.switches.off("type:mail", until=datetime(2100, 1, 1, tzinfo=UTC))
        await app.switches.off("type:other", until=timedelta(hours=1))
        mail, other = await app.switches.list()
        assert mail.until == datetime(2100, 1, 1, tzinfo=UTC)
        assert other.until is not None
        assert other.since is not None
        assert other.until - other.since == timedelta(hours=1)
        assert (await told(app))[0] == ("switch.off", "type:mail", f"by {user_at_host()}: until 2100-01-01T00:00:00Z")

    @pytest.mark.parametrize(
        ("of", "until", "text"),
        [
            ("mail", None, "a switch must be type:NAME or key:KEY or tag:NAME=VALUE"),
            ("queue:mail", None, "a switch must be"),
            ("key:", None, "a switch must be"),
            ("tag:customer", None, "a switch must be"),
            ("tag:=acme", None, "a tag's name must be"),
            ("key:" + "k" * 513, None, "key must be a text of 1 to 512"),
            ("type:mail", datetime(2001, 1, 1, tzinfo=UTC), "until must be in the future"),
            ("type:mail", datetime(2100, 1, 1), "until must know its zone"),
            ("type:mail", timedelta(0), "until must be in the future"),
            ("type:mail", "tomorrow", "until must be a number of seconds or a timedelta"),
        ],
    )
    async def test_what_cannot_be_is_refused(self, make: Make, of: Any, until: Any, text: str) -> None:
        app = make("memory://")
        with pytest.raises(ConfigError, match=text):
            await app.switches.off(of, until=until)
        assert await book_of(app) == Book()


class TestTheBook:
    async def test_nobody_is_named_but_the_scheduler(self, make: Make, url: str) -> None:
        app = make(url, scheduler_id="node-7")
        await app.switches.off("type:mail")
        assert (await app.switches.list())[0].by == "node-7"

    async def test_changes_at_the_same_time_are_all_kept(self, app: Scheduler) -> None:
        await asyncio.gather(
            *(app.switches.off(f"key:{n}") for n in range(8)),
            *(app.limits.set(f"type:t{n}", rate=1) for n in range(8)),
            *(app.breakers.open(f"type:t{n}") for n in range(8)),
        )
        book = await book_of(app)
        assert (len(book.switches), len(book.limits), len(book.breakers), book.version) == (8, 8, 8, 24)
        assert len(await told(app)) == 24

    async def test_it_gives_up_when_others_change_it_all_the_time(
        self, app: Scheduler, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store: Any = await store_of(app)

        async def too_late(*_: object) -> bool:
            return False

        monkeypatch.setattr(store.marks, "swap", too_late)
        with pytest.raises(StoreUnavailable, match="changed by others all the time"):
            await app.switches.off("type:mail")

    async def test_there_is_a_most(self, make: Make) -> None:
        app = make("memory://")
        store = await store_of(app)
        many = {f"key:{n}": rules.Switch(1) for n in range(rules.RULES_MAX)}
        limits = {f"type:t{n}": Limit(1.0) for n in range(rules.RULES_MAX)}
        book = Book(7, {}, limits, many, many)
        await store.marks.swap(rules.MARK, None, write_book(book))
        await app.switches.off("key:7", "one that is there may be changed")
        for change in (app.switches.off("key:new"), app.breakers.open("type:new"), app.limits.set("type:new", rate=1)):
            with pytest.raises(ConfigError, match="already, which is the most; remove some first"):
                await change
        assert await app.switches.on("key:0")
        await app.switches.off("key:new")

    async def test_notes_are_cut(self, app: Scheduler) -> None:
        await app.switches.off("type:mail", "n" * 5000, "b" * 5000)
        (found,) = await app.switches.list()
        assert (len(found.note), len(found.by)) == (rulebook.NOTE_MAX, rulebook.BY_MAX)

    async def test_it_is_told_of_nothing_that_did_not_change(self, app: Scheduler) -> None:
        assert not await app.switches.on("type:mail")
        assert not await app.limits.remove("type:mail")
        assert not await app.breakers.close("type:mail")
        assert (await book_of(app), await told(app)) == (Book(), [])


class TestWorkers:
    """What is said by hand, and what a worker that runs makes of it."""

    @pytest.fixture
    def shop(self, app: Scheduler) -> Scheduler:
        @app.task
        async def mail() -> str:
            return "sent"

        @app.task
        async def other() -> str:
            return "done"

        return app

    @pytest.mark.parametrize("of", ["type:mail", "key:acme", "tag:customer=acme"])
    async def test_what_is_switched_off_does_not_run_until_it_is_on(self, shop: Scheduler, of: str) -> None:
        await shop.switches.off(of)
        async with shop:
            held = await shop.submit("mail", key="acme", tags={"customer": "acme"})
            if of != "type:mail":  # whose tasks are not even claimed
                await eventually(lambda: self.waits(shop.switches.list))
                assert await (await shop.submit("mail", key="other")).result(10) == "sent"
            assert await (await shop.submit("other")).result(10) == "done"
            assert (await held.info()).status in ("pending", "ready")
            await shop.switches.on(of)
            assert await held.result(20) == "sent"

    async def test_a_limit_that_is_removed_lets_those_go_who_wait(self, shop: Scheduler) -> None:
        await shop.limits.set("type:mail", rate="1/d", burst=1)
        async with shop:
            handles = [await shop.submit("mail") for _ in range(5)]
            # All of them: one that a worker asks for by rules of a second ago would wait by the old limit.
            await eventually(lambda: self.waits(shop.limits.list, 4))
            assert await shop.limits.remove("type:mail")
            assert [await handle.result(20) for handle in handles] == ["sent"] * 5

    async def test_a_breaker_that_is_open_by_hand_holds_tasks(self, shop: Scheduler) -> None:
        await shop.breakers.open("type:mail")
        async with shop:
            held = await shop.submit("mail")
            assert await (await shop.submit("other")).result(10) == "done"
            assert (await held.info()).status in ("pending", "ready")
            await shop.breakers.close("type:mail")
            assert await held.result(20) == "sent"

    async def waits(self, look: Callable[[], Any], count: int = 1) -> bool:
        return bool(sum(each.waiting for each in await look()) == count)


CHANGES: list[Callable[[Scheduler], Any]] = [
    lambda app: app.limits.set("type:mail", rate=1),
    lambda app: app.limits.remove("type:mail"),
    lambda app: app.breakers.open("type:mail"),
    lambda app: app.breakers.close("type:mail"),
    lambda app: app.switches.off("type:mail"),
    lambda app: app.switches.on("type:mail"),
]
LOOKS: list[Callable[[Scheduler], Any]] = [
    lambda app: app.limits.list(),
    lambda app: app.breakers.list(),
    lambda app: app.breakers.get("type:mail"),
    lambda app: app.switches.list(),
]


@pytest.mark.parametrize("text", ["{", '{"limits": []}', '{"limits": {"type:mail": {"rate": {"an": "object"}}}}', "[]"])
async def test_a_book_that_cannot_be_read_is_left_as_it_is(app: Scheduler, text: str) -> None:
    store = await store_of(app)
    await store.marks.swap(rules.MARK, None, text)
    for call in (*CHANGES, *LOOKS):
        with pytest.raises(StoreError, match="written by another version of Tickwork, and cannot be read"):
            await call(app)
    assert await store.marks.get(rules.MARK) == text


@pytest.mark.parametrize(
    "text",
    [
        '{"version": 3, "quotas": {"type:mail": 7}}',
        '{"version": 3, "switches": {"type:mail": {"at": 1, "share": 0.5}}}',
        '{"version": 3, "limits": {"type:mail": {"rate": 1.0, "window": 60}}}',
    ],
)
async def test_what_a_later_version_has_added_is_not_lost(app: Scheduler, text: str) -> None:
    store = await store_of(app)
    await store.marks.swap(rules.MARK, None, text)
    for look in LOOKS:
        await look(app)
    for call in CHANGES:
        with pytest.raises(StoreError, match="a change would lose some of them"):
            await call(app)
    assert await store.marks.get(rules.MARK) == text


async def test_nodes_leave_the_rules_of_a_later_version_as_they_are(app: Scheduler) -> None:
    text = '{"version": 3, "switches": {"type:mail": {"at": 1, "until": 2, "share": 0.5}}}'
    store = await store_of(app)
    await store.marks.swap(rules.MARK, None, text)

    @app.task(rate="5/s")
    async def post() -> None: ...

    await watch_gates(store, 100)  # the time of the switch is over
    keeper = Gatekeeper(store, app.registry, app.config, Log.of(None))
    await keeper._declare()
    assert await store.marks.get(rules.MARK) == text


def test_blocking_twins(make: Make, url: str) -> None:
    app = make(url)
    app.sync.limits.set("type:mail", rate="5/s")
    app.sync.breakers.open("type:mail")
    app.sync.switches.off("type:mail")
    limits: list[LimitInfo] = app.sync.limits.list()
    assert [each.text for each in limits] == ["5/s, burst 5"]
    assert app.sync.breakers.get("type:mail").state == "open"
    assert [each.of for each in app.sync.switches.list()] == ["type:mail"]
    assert app.sync.limits.remove("type:mail")
    assert app.sync.breakers.close("type:mail")
    assert app.sync.switches.on("type:mail")
    assert (app.sync.limits.list(), app.sync.breakers.list(), app.sync.switches.list()) == ([], [], [])
    app.sync.close()
