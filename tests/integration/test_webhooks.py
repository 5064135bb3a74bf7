"""Webhooks with real receivers: signed, retried, in order for one task, and nobody held up by a dead one."""

from __future__ import annotations

import asyncio
import base64
import functools
import hashlib
import hmac
import math
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.integration.apps import Make, eventually
from tests.support.hostile_http import Request, Server, answer, hang, serving
from tickwork import Abort, ConfigError, FixedDelay, Scheduler, Status, testing
from tickwork.webhooks import feed as feeds
from tickwork.webhooks.events import queue_of
from tickwork.webhooks.feed import Feeder, mark_of

pytestmark = pytest.mark.timeout(120)
SECRET = base64.b64encode(bytes(range(32)))
PATIENCE = 60.0  # seconds; all of it is over within one on an idle machine


class Receiver:
    """Answers by what `decide` says of the event: a status. Keeps what it was sent."""

    def __init__(self) -> None:
        self.server: Server
        self.events: list[dict[str, Any]] = []  # those that it took, in order
        self.ids: list[str] = []
        self.asked = 0
        self.decide: Callable[[dict[str, Any]], str] = lambda event: "200 OK"
        self.headers: tuple[str, ...] = ()

    async def respond(self, request: Request, writer: asyncio.StreamWriter) -> None:
        event = msgspec.json.decode(request.body)
        self.asked += 1
        status = self.decide(event)
        if status.startswith("2"):
            self.events.append(event)
            self.ids.append(request.header("webhook-id") or "")
        writer.write(answer(b"", status, *self.headers))

    def kinds(self) -> list[str]:
        return [event["type"] for event in self.events]

    def of(self, task_id: str) -> list[str]:
        return [event["type"] for event in self.events if event["data"]["id"] == task_id]


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    async with serving(receiver.respond) as receiver.server:
        yield receiver


@pytest.fixture
def secret_file(tmp_path: Path) -> str:
    path = tmp_path / "secret"
    path.write_bytes(SECRET)
    return str(path)


def hook(server: Server, *events: str, name: str = "audit", **more: Any) -> dict[str, Any]:
    chosen = events or ("task.succeeded", "task.died")
    return {"name": name, "url": f"{server.url}/hook", "events": chosen, "retry": FixedDelay(0.01), **more}


def hook_up(make: Make, store: str, secret_file: str, *hooks: dict[str, Any], **options: Any) -> Scheduler:
    """A scheduler with these webhooks, which may be called, and with two handlers."""
    allowed = [each["url"].removesuffix("/hook") for each in hooks]
    app = make(store, webhooks=hooks, allow_addresses=allowed, secret_file=secret_file, **options)
    register(app)
    return app


@pytest.fixture
def hooked(make: Make, url: str, secret_file: str) -> Callable[..., Scheduler]:
    return functools.partial(hook_up, make, url, secret_file)


def register(app: Scheduler) -> None:
    @app.task
    async def good(number: int = 0) -> int:
        return number

    @app.task(max_retry=0)
    async def bad() -> None:
        raise Abort("boom")


async def ready(app: Scheduler, name: str = "audit") -> None:
    """Its leader has begun: what happens from now on is told."""
    store = await app._access.open_store()
    await eventually(lambda: store.marks.get(mark_of(name)), PATIENCE, "the leader begins")


async def deliveries(app: Scheduler, status: Status) -> list[str]:
    page = await app.list_tasks(status=status, queue=queue_of("audit"))
    return [task.id for task in page.items]


async def dead_letters(app: Scheduler) -> list[str]:
    return await deliveries(app, Status.DEAD)


async def test_chosen_events_are_delivered_and_signed(receiver: Receiver, hooked: Any) -> None:
    async with hooked(hook(receiver.server)) as app:
        await ready(app)
        await app.submit("good", 3, id="one")
        await app.submit("bad", id="two")
        await eventually(lambda: len(receiver.events) == 2, PATIENCE, "both are told")
        secret = app.webhooks.secret("audit")
    assert receiver.of("one") == ["task.succeeded"]
    assert receiver.of("two") == ["task.died"]
    assert "boom" not in str(receiver.events), "an error is sent only where it was asked for"
    key = base64.b64decode(secret.removeprefix("whsec_"))
    for request in receiver.server.requests:
        signed = f"{request.header('webhook-id')}.{request.header('webhook-timestamp')}.".encode() + request.body
        expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        assert request.header("webhook-signature") == f"v1,{expected}"


async def test_keys_of_webhooks_and_namespaces_differ(receiver: Receiver, secret_file: str) -> None:
    def secret(name: str, namespace: str) -> str:
        hooks = [hook(receiver.server, name=name)]
        return Scheduler("memory://", namespace=namespace, webhooks=hooks, secret_file=secret_file).webhooks.secret(
            name
        )

    assert len({secret("a", "x"), secret("b", "x"), secret("a", "y")}) == 3
    assert secret("a", "x") == secret("a", "x")


async def test_during_a_rotation_both_secrets_sign(receiver: Receiver, hooked: Any, tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).write_text("whsec_" + base64.b64encode(name.encode() * 10).decode() + "\n")
    files = {"secret": f"file:{tmp_path}/new", "old_secret": f"file:{tmp_path}/old"}
    async with hooked(hook(receiver.server, **files)) as app:
        await ready(app)
        await app.submit("good")
        await eventually(lambda: receiver.events, PATIENCE)
    (request,) = receiver.server.requests
    signed = f"{request.header('webhook-id')}.{request.header('webhook-timestamp')}.".encode() + request.body
    digests = [base64.b64encode(hmac.digest(key * 10, signed, "sha256")).decode() for key in (b"new", b"old")]
    assert request.header("webhook-signature") == " ".join(f"v1,{digest}" for digest in digests)


async def test_a_failed_delivery_is_retried_with_the_same_id(receiver: Receiver, hooked: Any) -> None:
    answers = ["500 Internal Server Error", "302 Found", "404 Not Found", "200 OK"]
    receiver.decide = lambda event: answers[receiver.asked - 1]
    async with hooked(hook(receiver.server)) as app:
        await ready(app)
        await app.submit("good")
        await eventually(lambda: receiver.events, PATIENCE)
        await eventually(lambda: settled(app), PATIENCE)
        (info,) = await app.webhooks.list()
        assert (info.failed, info.enabled, info.waiting) == (0, True, 0), "a success ends the row of failures"
    assert len(receiver.server.requests) == 4
    assert len({request.header("webhook-id") for request in receiver.server.requests}) == 1


async def test_a_receiver_may_say_when_to_come_again(receiver: Receiver, hooked: Any) -> None:
    receiver.decide = lambda event: "503 Service Unavailable" if receiver.asked == 1 else "200 OK"
    receiver.headers = ("Retry-After: 1",)
    async with hooked(hook(receiver.server, retry=FixedDelay(3600))) as app:
        await ready(app)
        await app.submit("good")
        await eventually(lambda: receiver.events, PATIENCE, "it is not the strategy that decides")


async def settled(app: Scheduler) -> bool:
    return all(info.waiting == 0 for info in await app.webhooks.list())


async def test_a_delivery_whose_retries_are_spent_is_a_dead_letter(receiver: Receiver, hooked: Any) -> None:
    receiver.decide = lambda event: "500 Internal Server Error"
    async with hooked(hook(receiver.server, max_retry=1)) as app:
        await ready(app)
        await app.submit("good")
        (dead,) = await eventually(lambda: dead_letters(app), PATIENCE)
        assert receiver.asked == 2
        assert "has answered 500" in str((await app.get_task(dead)).last_error)
        receiver.decide = lambda event: "200 OK"
        await app.retry(dead)
        await eventually(lambda: receiver.kinds() == ["task.succeeded"], PATIENCE)


async def test_events_of_one_task_come_in_their_order(receiver: Receiver, hooked: Any) -> None:
    """The first one of each task fails some times, so that the others have time to overtake it."""
    failures: dict[str, int] = defaultdict(int)

    def decide(event: dict[str, Any]) -> str:
        task_id = event["data"]["id"]
        if event["type"] == "task.submitted" and failures[task_id] < 3:
            failures[task_id] += 1
            return "503 Service Unavailable"
        return "200 OK"

    receiver.decide = decide
    chosen = ("task.submitted", "task.claimed", "task.succeeded")
    async with hooked(hook(receiver.server, *chosen, retry=FixedDelay(0.05))) as app:
        await ready(app)
        ids = [handle.id for handle in [await app.submit("good", number) for number in range(10)]]
        await eventually(lambda: len(receiver.events) == 30, PATIENCE, "all are told")
    assert {task_id: tuple(receiver.of(task_id)) for task_id in ids} == dict.fromkeys(ids, chosen)
    assert len(set(receiver.ids)) == 30


async def test_a_later_event_is_told_when_the_earlier_one_is_given_up(receiver: Receiver, hooked: Any) -> None:
    receiver.decide = lambda event: "500 No" if event["type"] == "task.submitted" else "200 OK"
    async with hooked(hook(receiver.server, "task.submitted", "task.succeeded", max_retry=1)) as app:
        await ready(app)
        await app.submit("good")
        await eventually(lambda: receiver.kinds() == ["task.succeeded"], PATIENCE)
        assert len(await dead_letters(app)) == 1


async def test_a_later_event_does_not_wait_for_a_delivery_that_was_removed(
    receiver: Receiver, hooked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "SWEEP_EVERY", math.inf)  # so that the leader does not know of its end
    async with hooked(hook(receiver.server, "task.submitted", "task.claimed", "task.succeeded")) as app:
        await ready(app)
        await app.submit("good", id="one", delay=3600)
        await eventually(lambda: receiver.kinds() == ["task.submitted"], PATIENCE)
        (first,) = await eventually(lambda: deliveries(app, Status.SUCCESS), PATIENCE)
        await app.delete(first)
        await app.run_now("one")
        await eventually(lambda: receiver.kinds()[1:] == ["task.claimed", "task.succeeded"], PATIENCE)


async def test_a_dead_endpoint_holds_up_neither_another_one_nor_tasks(receiver: Receiver, hooked: Any) -> None:
    async with serving(hang) as dead:
        hooks = hook(dead, name="dead", timeout=30.0, concurrency=2), hook(receiver.server, name="alive")
        async with hooked(*hooks, concurrency=2) as app:
            await ready(app, "dead")
            await ready(app, "alive")
            handles = [await app.submit("good", number) for number in range(20)]
            await asyncio.gather(*(handle.result(timeout=PATIENCE) for handle in handles))
            await eventually(lambda: len(receiver.events) == 20, PATIENCE, "the living one is told of all")
            await eventually(lambda: len(dead.requests) == 2, PATIENCE, "the dead one has no more than its slots")
            by_name = {info.name: info for info in await app.webhooks.list()}
            assert by_name["dead"].waiting == 20
            await eventually(lambda: settled_alone(app, "alive"), PATIENCE)


async def settled_alone(app: Scheduler, name: str) -> bool:
    return next(info.waiting == 0 for info in await app.webhooks.list() if info.name == name)


async def test_an_endpoint_that_is_dead_for_long_is_switched_off_and_on_again(
    receiver: Receiver, hooked: Any, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.decide = lambda event: "500 No"
    async with hooked(hook(receiver.server, disable_after=5, disable_time=0, concurrency=1, max_retry=50)) as app:
        await ready(app)
        handles = [await app.submit("good", number) for number in range(3)]
        info = await eventually(lambda: switched_off(app), PATIENCE)
        assert info.failed >= 5
        assert "5 deliveries in a row have failed" in info.note
        assert "has answered 500" in info.last_error
        assert "webhook audit" in caplog.text
        assert "tickwork webhooks enable audit" in caplog.text
        receiver.decide = lambda event: "200 OK"
        assert await app.webhooks.enable("audit") is True
        await eventually(lambda: len(receiver.events) == 3, PATIENCE, "what has waited is told")
        assert {event["data"]["id"] for event in receiver.events} == {handle.id for handle in handles}
        await eventually(lambda: settled(app), PATIENCE)
        (info,) = await app.webhooks.list()
        assert (info.enabled, info.failed) == (True, 0)
        assert await app.webhooks.enable("audit") is False


async def switched_off(app: Scheduler) -> Any:
    (info,) = await app.webhooks.list()
    return None if info.enabled else info


async def test_failures_in_a_short_time_do_not_switch_it_off(receiver: Receiver, hooked: Any) -> None:
    receiver.decide = lambda event: "500 No" if receiver.asked <= 10 else "200 OK"
    async with hooked(hook(receiver.server, disable_after=2, disable_time=3600, max_retry=50)) as app:
        await ready(app)
        await app.submit("good")
        await eventually(lambda: receiver.events, PATIENCE)
        assert await switched_off(app) is None


async def test_an_endpoint_that_is_gone_for_good_is_switched_off_at_once(receiver: Receiver, hooked: Any) -> None:
    receiver.decide = lambda event: "410 Gone"
    async with hooked(hook(receiver.server)) as app:
        await ready(app)
        await app.submit("good")
        info = await eventually(lambda: switched_off(app), PATIENCE)
        assert "it wants no more" in info.note


async def test_deliveries_lead_to_no_deliveries(receiver: Receiver, hooked: Any) -> None:
    every = ("task.submitted", "task.claimed", "task.succeeded", "task.retrying", "queue.paused", "task.due")
    async with hooked(hook(receiver.server, *every)) as app:
        await ready(app)
        await app.submit("good", id="one")
        await eventually(lambda: len(receiver.events) == 3, PATIENCE)
        await eventually(lambda: settled(app), PATIENCE)
        await app.submit("good", id="two")  # whatever the first ones had led to would come before it
        await eventually(lambda: receiver.of("two")[-1:] == ["task.succeeded"], PATIENCE)
        await eventually(lambda: settled(app), PATIENCE)
    assert len(receiver.events) == 6
    assert {event["data"]["id"] for event in receiver.events} == {"one", "two"}


async def test_more_deliveries_than_the_quota_wait_in_the_log(
    receiver: Receiver, hooked: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr(feeds, "SWEEP_SOON", 0.05)
    receiver.decide = lambda event: "500 No"
    chosen = hook(receiver.server, quota=3, max_retry=1000, disable_after=1000)
    async with hooked(chosen) as app:
        await ready(app)
        handles = [await app.submit("good", number) for number in range(10)]
        await asyncio.gather(*(handle.result(timeout=PATIENCE) for handle in handles))
        await eventually(lambda: receiver.asked > 20, PATIENCE)
        (info,) = await app.webhooks.list()
        assert info.waiting <= 3
        receiver.decide = lambda event: "200 OK"
        await eventually(lambda: len(receiver.events) == 10, PATIENCE, "none is lost")
    assert len(set(receiver.ids)) == 10


async def test_a_new_leader_goes_on_where_the_last_one_was(receiver: Receiver, hooked: Any) -> None:
    """Two leaders at once, which both read the same facts: nothing is lost, nothing doubled, nothing out of order."""
    chosen = ("task.submitted", "task.claimed", "task.succeeded")
    async with hooked(hook(receiver.server, *chosen)) as app:
        await ready(app)
        store = await app._access.open_store()
        other = Feeder(app.config.webhooks, app.config.namespace, store, app._log)
        ids = []
        for number in range(20):
            ids.append((await app.submit("good", number)).id)
            await other.work()
        await eventually(lambda: len(receiver.events) >= 60, PATIENCE)
        await eventually(lambda: settled(app), PATIENCE)
    assert len(receiver.ids) == len(set(receiver.ids)) == 60
    assert {task_id: tuple(receiver.of(task_id)) for task_id in ids} == dict.fromkeys(ids, chosen)


async def test_facts_that_are_read_again_lead_to_nothing_twice(receiver: Receiver, hooked: Any) -> None:
    """As if a leader had died after it submitted deliveries, and before it moved its mark."""
    async with hooked(hook(receiver.server, "task.submitted", "task.succeeded")) as app:
        await ready(app)
        store = await app._access.open_store()
        begin = await store.marks.get(mark_of("audit"))
        await app.submit("good", id="one")
        await eventually(lambda: len(receiver.events) == 2, PATIENCE)
        await eventually(lambda: settled(app), PATIENCE)
        while not await store.marks.swap(mark_of("audit"), await store.marks.get(mark_of("audit")), begin):
            pass
        await app.submit("good", id="two")
        await eventually(lambda: receiver.of("two") == ["task.submitted", "task.succeeded"], PATIENCE)
        await eventually(lambda: settled(app), PATIENCE)
    assert receiver.of("one") == ["task.submitted", "task.succeeded"]
    assert len(receiver.ids) == len(set(receiver.ids)) == 4


async def test_what_happens_while_nobody_leads_is_told_later(
    receiver: Receiver, make: Make, file_url: str, secret_file: str
) -> None:
    app = hook_up(make, file_url, secret_file, hook(receiver.server))
    async with app:
        await ready(app)
    await app.submit("bad", id="one")
    await app.start(lead=False)
    await eventually(lambda: ended(app, "one"), PATIENCE)
    await app.shutdown()
    assert receiver.events == []
    async with app:
        await eventually(lambda: receiver.of("one") == ["task.died"], PATIENCE)


async def ended(app: Scheduler, task_id: str) -> bool:
    return (await app.get_task(task_id)).status.ended


async def test_facts_that_were_dropped_before_they_were_read_are_told_of(
    receiver: Receiver, hooked: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with hooked(hook(receiver.server)) as app:
        await ready(app)
        await app.submit("good")
        await eventually(lambda: receiver.events, PATIENCE)
        feed = Feeder(app.config.webhooks, app.config.namespace, await app._access.open_store(), app._log)._feeds[0]
        await feed.begin()
        feed.place = feed._read = await app.events.last()
        await feed.take([], missed=7)
    assert "webhook audit: 7 facts were dropped from the log before they were read" in caplog.text


async def test_an_address_outside_the_list_is_refused_at_the_start(make: Make, secret_file: str) -> None:
    for url, allowed in (
        ("http://169.254.169.254/latest", ("https://example.com",)),
        ("https://other.example.com/hook", ("https://example.com",)),
        ("http://127.0.0.1:9/hook", ()),
    ):
        hooks = [{"name": "audit", "url": url, "events": ["task.died"]}]
        app = make("memory://", webhooks=hooks, allow_addresses=allowed, secret_file=secret_file)
        with pytest.raises(ConfigError, match=r"webhook 'audit'.*allow_addresses"):
            await app.start()


async def test_a_webhook_without_a_secret_is_refused_at_the_start(
    make: Make, receiver: Receiver, tmp_path: Path
) -> None:
    allowed = [receiver.server.url]
    app = make("memory://", webhooks=[hook(receiver.server)], allow_addresses=allowed)
    with pytest.raises(ConfigError, match="webhook 'audit' has no secret"):
        await app.start()
    missing = hook(receiver.server, secret=f"file:{tmp_path}/missing")
    app = make("memory://", webhooks=[missing], allow_addresses=allowed)
    with pytest.raises(ConfigError, match="missing"):
        await app.start()


async def test_the_queues_of_webhooks_are_closed_to_submitters(app: Scheduler) -> None:
    register(app)
    with pytest.raises(ConfigError, match=r"names that begin with tickwork\. are reserved"):
        await app.submit("good", queue=queue_of("audit"))


async def test_order_holds_over_partitions(receiver: Receiver, make: Make, redis_url: str, secret_file: str) -> None:
    receiver.decide = lambda event: "500 No" if receiver.asked % 3 == 0 else "200 OK"
    chosen = ("task.submitted", "task.claimed", "task.succeeded")
    async with hook_up(make, redis_url, secret_file, hook(receiver.server, *chosen), partitions=3) as app:
        await ready(app)
        ids = [handle.id for handle in [await app.submit("good", number) for number in range(20)]]
        await eventually(lambda: len(receiver.events) == 60, PATIENCE, "all are told")
    assert {task_id: tuple(receiver.of(task_id)) for task_id in ids} == dict.fromkeys(ids, chosen)


async def test_a_test_of_the_program_tells_nobody(receiver: Receiver, make: Make, sqlite_url: str) -> None:
    """And needs no secret."""
    app = make(sqlite_url, webhooks=[hook(receiver.server)], allow_addresses=[receiver.server.url])
    register(app)
    async with testing.run(app):
        assert await (await app.submit("good", 3)).result(timeout=PATIENCE) == 3
        assert (await app.status()).worker_count == 1
    assert receiver.server.requests == []


async def test_a_test_event_is_sent_now(receiver: Receiver, hooked: Any) -> None:
    app = hooked(hook(receiver.server))
    answered = await app.webhooks.test("audit")
    assert (answered.status, answered.ok) == (200, True)
    assert receiver.kinds() == ["webhook.test"]
    with pytest.raises(ConfigError, match="there is no webhook 'adit' in the configuration; known are audit"):
        await app.webhooks.test("adit")
