"""The log of facts over the API: pages, and event streams."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from tests.integration.apps import eventually
from tests.server.serving import API, OTHER, Client, Server, serving, url_of
from tests.server.streaming import following
from tickwork.errors import StoreUnavailable
from tickwork.server import live
from tickwork.server import plane as plane_module
from tickwork.server.masking import Mask
from tickwork.server.operations import events
from tickwork.store.contract import Store


class TestPages:
    async def test_the_newest_come_first_and_pages_lead_to_the_oldest(self, admin: Client, server: Server) -> None:
        for number in range(25):
            await server.app.submit("mail", id=f"t{number}")
        seen: list[int] = []
        before: int | None = None
        while True:
            page = await admin.read("/events", limit=10, kind="task", **({} if before is None else {"before": before}))
            seen += [each["seq"] for each in page["items"]]
            before = page["before"]
            if before is None:
                break
        assert seen == sorted(seen, reverse=True)
        assert len(seen) == len(set(seen)) == 25
        assert page["missed"] is False

    @pytest.mark.parametrize("partitions", [1, 4])
    async def test_numbers_with_gaps_are_no_hindrance(
        self, partitions: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Over several partitions the next number may be a million away."""
        monkeypatch.setattr(events, "PAGE_MAX", 16)
        url = url_of("redis", tmp_path)
        async with serving(url, partitions=partitions, server_namespaces=()) as server:
            viewer = await server.as_role("viewer")
            ids = [(await server.app.submit("mail", id=f"t{number}")).id for number in range(100)]
            seen: list[str] = []
            before: int | None = None
            for _ in range(100):
                query = {} if before is None else {"before": before}
                page = await viewer.read("/events", limit=30, kind="task.submitted", **query)
                seen += [each["id"] for each in page["items"]]
                before = page["before"]
                if before is None:
                    break
        assert before is None
        assert sorted(seen) == sorted(ids)

    async def test_they_are_found_by_kind_id_type_and_worker(self, admin: Client, server: Server) -> None:
        task = await server.dead(type="mail")
        await server.succeeded(type="sms")
        await server.app.queues.pause("post")

        async def kinds(**query: Any) -> list[str]:
            return [each["kind"] for each in (await admin.read("/events", **query))["items"]]

        assert await kinds(kind="task.died") == ["task.died"]
        assert set(await kinds(kind="queue")) == {"queue.paused"}
        assert set(await kinds(id=task)) >= {"task.submitted", "task.claimed", "task.died"}
        assert "task.succeeded" not in await kinds(type="mail")
        assert "task.submitted" not in await kinds(worker="w1")
        assert await kinds(kind="task.died", type="sms") == []

    async def test_a_fact_says_what_when_and_of_what(self, admin: Client, server: Server) -> None:
        task = await server.dead("ValueError: boom", type="mail")
        (fact,) = (await admin.read("/events", kind="task.died"))["items"]
        assert (fact["id"], fact["type"], fact["worker_id"], fact["attempt"]) == (task, "mail", "w1", 1)
        assert fact["detail"] == "ValueError: boom"

    @pytest.mark.parametrize(
        "query",
        [{"before": -1}, {"before": 2**63}, {"limit": 0}, {"kind": "x" * 65}, {"id": "x" * 701}, {"type": "a b"}],
    )
    async def test_what_cannot_be_asked_is_refused(self, query: dict[str, Any], admin: Client) -> None:
        assert (await admin.get("/events", **query)).status_code == 400


class TestStreams:
    async def test_facts_are_told_as_they_happen(self, any_url: str) -> None:
        async with serving(any_url) as server:
            server.app.task("mail")(lambda: None)
            async with following(await server.as_role("viewer")) as stream:
                assert stream.response.headers["content-type"].startswith("text/event-stream")
                assert stream.response.headers["cache-control"] in ("no-store", "no-cache")
                handle = await server.app.submit("mail")
                (fact,) = await stream.facts()
        assert (fact["kind"], fact["id"], fact["type"]) == ("task.submitted", handle.id, "mail")

    async def test_several_facts_of_one_task_are_merged_to_the_last(self, server: Server) -> None:
        async with following(await server.as_role("viewer"), topics="task") as stream:
            await server.app.submit("mail", id="t", delay=60)
            await server.app.cancel("t")
            await server.app.queues.pause("q")
            found = [each for each in await stream.facts() if each["id"] == "t"]
        assert [each["kind"] for each in found][-1] == "task.cancelled"
        assert len(found) == 1

    async def test_no_second_has_more_than_four_frames(self, server: Server) -> None:
        async with following(await server.as_role("viewer")) as stream:
            times: list[float] = []
            until = time.monotonic() + 2.5
            number = 0
            while time.monotonic() < until:
                number += 1
                await server.app.submit("mail", id=f"t{number}")
                if len(stream.all) > len(times):
                    times += [time.monotonic()] * (len(stream.all) - len(times))
                reading = asyncio.ensure_future(stream.frame("events", "tick", "missed"))
                await asyncio.wait([reading], timeout=1.0)
                if reading.done():
                    times.append(time.monotonic())
                else:
                    reading.cancel()
        frames = list(times)
        assert len(frames) > 3
        for first in frames:
            assert sum(first <= at < first + 0.95 for at in frames) <= 5  # one may come at each end

    async def test_one_that_comes_back_goes_on_where_it_was(self, server: Server) -> None:
        viewer = await server.as_role("viewer")
        async with following(viewer) as stream:
            await server.app.submit("mail", id="first")
            frame = await stream.frame("events")
        for number in range(5):
            await server.app.submit("mail", id=f"meanwhile{number}")
        async with following(viewer, headers={"last-event-id": str(frame.id)}) as stream:
            found = await stream.facts(5)
            await server.app.submit("mail", id="after")
            found += await stream.facts()
        ids = [each["id"] for each in found]
        assert ids == [*(f"meanwhile{number}" for number in range(5)), "after"]

    async def test_a_number_in_the_query_does_the_same(self, server: Server) -> None:
        viewer = await server.as_role("viewer")
        await server.app.submit("mail", id="a")
        last = (await viewer.read("/events"))["last"]
        await server.app.submit("mail", id="b")
        async with following(viewer, after=last) as stream:
            assert [each["id"] for each in await stream.facts()] == ["b"]

    async def test_a_strange_last_id_is_as_good_as_none(self, server: Server) -> None:
        viewer = await server.as_role("viewer")
        for text in ("x", "-1", "9" * 400, "1;2", "²"):
            headers = {b"last-event-id": text.encode("latin-1", "replace")}
            async with viewer.stream("GET", f"{API}/events/stream", headers=headers) as response:
                assert response.status_code == 200

    async def test_facts_that_happen_while_one_catches_up_are_not_lost(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Somebody else listens already, so that the log is read on meanwhile."""
        viewer = await server.as_role("viewer")
        await server.app.submit("mail", id="old")
        store = await server.app._access.open_store()
        async with following(viewer) as witness:
            hold, reads = _hold_reads_from(store, 0, monkeypatch)
            async with asyncio.TaskGroup() as group:
                joining = group.create_task(_collect(viewer, 2))
                await eventually(lambda: reads)
                await server.app.submit("mail", id="meanwhile")
                assert [each["id"] for each in await witness.facts()] == ["meanwhile"]
                hold.set()
                found = await joining
        assert [each["id"] for each in found] == ["old", "meanwhile"]

    async def test_the_log_is_not_told_anew_when_the_last_other_one_leaves_while_one_catches_up(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        viewer = await server.as_role("viewer")
        await server.app.submit("mail", id="oldest")
        first = (await viewer.read("/events"))["last"]
        await server.app.submit("mail", id="old")
        store = await server.app._access.open_store()
        async with asyncio.TaskGroup() as group:
            async with following(viewer):
                hold, reads = _hold_reads_from(store, first, monkeypatch)
                joining = group.create_task(_collect(viewer, 2, after=first))
                await eventually(lambda: reads)
            await eventually(lambda: not server.plane.home.hub._tasks)
            hold.set()
            await eventually(lambda: server.plane.home.hub._tasks)
            await server.app.submit("mail", id="new")
            found = await joining
        assert [each["id"] for each in found] == ["old", "new"]

    async def test_topics_and_one_task(self, server: Server) -> None:
        viewer = await server.as_role("viewer")
        async with following(viewer, topics="queue") as queues, following(viewer, task="b") as one:
            await server.app.submit("mail", id="a")
            await server.app.submit("mail", id="b")
            await server.app.queues.pause("q")
            assert [each["kind"] for each in await queues.facts()] == ["queue.paused"]
            assert [each["id"] for each in await one.facts()] == ["b"]

    async def test_the_numbers_of_the_whole_come_with_it(self, server: Server) -> None:
        await server.app.submit("mail")
        async with following(await server.as_role("viewer")) as stream:
            tick = await stream.frame("tick")
        assert tick.data["counts"] == {"ready": 1}
        assert tick.data["workers"] == 0

    async def test_they_bring_the_position_also_past_facts_of_other_topics(self, server: Server) -> None:
        async with following(await server.as_role("viewer"), topics="queue") as stream:
            await server.app.submit("mail", id="unwanted")
            last = await (await server.app._access.open_store()).log.last()
            while (tick := await stream.frame("tick", "events")).id != str(last):
                assert tick.kind == "tick"

    @pytest.mark.parametrize("query", [{"topics": "nope"}, {"topics": "x" * 501}, {"task": "x" * 129}, {"after": -1}])
    async def test_what_cannot_be_heard_is_refused(self, query: dict[str, Any], server: Server) -> None:
        answer = await (await server.as_role("viewer")).get("/events/stream", **query)
        assert answer.status_code == 400

    async def test_it_tells_of_one_namespace_only(self, server: Server) -> None:
        everywhere = await server.as_role("viewer")
        async with following(everywhere, ns=OTHER) as stream:
            await server.app.submit("mail", id="secret")
            await server.plane._spaces[OTHER].client.submit("mail", id="mine")
            await stream.facts()
            await stream.frame("tick")
        assert "mine" in stream.text
        assert "secret" not in stream.text

    async def test_a_namespace_or_a_role_that_may_not_is_refused(self, server: Server) -> None:
        viewer, worker = await server.as_role("viewer", "home"), await server.as_role("worker")
        assert (await viewer.get("/events/stream", ns=OTHER)).status_code == 404
        assert (await worker.get("/events/stream")).status_code == 403
        assert (await (await server.stranger()).get("/events/stream")).status_code == 401

    async def test_too_many_are_refused_with_429(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(plane_module, "STREAMS_OF_ONE", 2)
        viewer, other = await server.as_role("viewer", name="a"), await server.as_role("viewer", name="b")
        async with following(viewer), following(viewer):
            answer = await viewer.get("/events/stream")
            assert (answer.status_code, answer.json()["code"]) == (429, "too_many_streams")
            async with following(other):
                pass
        await eventually(lambda: not server.plane._streams)
        async with following(viewer):
            pass

    async def test_those_of_all_sessions_of_a_token_count_together(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(plane_module, "STREAMS_OF_ONE", 2)
        token = await server.token("viewer")
        one, two, program = await server.stranger(), await server.stranger(), await server.with_token(token)
        for each in (one, two):
            assert (await each.post("/session", {"token": token})).status_code == 200
        async with following(one), following(two):
            for each in (one, two, program):
                assert (await each.get("/events/stream")).status_code == 429

    async def test_those_of_users_behind_one_proxy_do_not(self, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(plane_module, "STREAMS_OF_ONE", 1)
        async with serving(
            url, server_proxies=("127.0.0.1",), server_user_header="X-User", server_roles={"*": "viewer"}
        ) as server:
            ines, olga = await server.stranger(**{"x-user": "ines"}), await server.stranger(**{"x-user": "olga"})
            async with following(ines), following(olga):
                assert (await ines.get("/events/stream")).status_code == 429

    @pytest.mark.parametrize("by_session", [False, True])
    async def test_they_outlast_an_outage_of_the_store(
        self, by_session: bool, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """While it is not known whether a caller may still listen, that is looked at again."""
        looks: list[str] = []
        open_store = server.plane.home.store

        async def gone() -> Any:
            looks.append("gone")
            raise StoreUnavailable("away")

        caller = await server.signed_in("viewer") if by_session else await server.as_role("viewer")
        kept = server.plane.sessions if by_session else server.plane.tokens
        async with following(caller) as stream:
            await stream.frame("tick")
            monkeypatch.setattr(kept, "_open_store", gone)
            while len(looks) < 2:
                await stream.frame("tick")
            monkeypatch.setattr(kept, "_open_store", open_store)
            await server.app.submit("mail", id="t")
            assert [each["id"] for each in await stream.facts()] == ["t"]
            for each in await server.plane.tokens.infos():
                await server.plane.tokens.revoke(each.id)
            await stream.ends(5.0)

    async def test_one_that_begins_during_an_outage_is_503(
        self, server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def silent(*_: Any) -> Any:
            raise StoreUnavailable("it does not answer")

        monkeypatch.setattr(server.plane.home.hub, "join", silent)
        answer = await (await server.as_role("viewer")).get("/events/stream")
        assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
        assert server.plane._streams == {}
        assert [each.message for each in caplog.records if each.levelname == "ERROR"] == []

    async def test_of_too_much_the_newest_is_told_after_how_much_was_missed(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(live, "BATCH", 10)
        monkeypatch.setattr(live, "CATCH_UP_MAX", 20)
        for number in range(50):
            await server.app.submit("mail", id=f"t{number}")
        async with following(await server.as_role("viewer"), after=0) as stream:
            missed, told = await stream.frame("missed", "events"), await stream.frame("events")
        assert missed.kind == "missed"
        ids = [each["id"] for each in told.data]
        assert ids[-1] == "t49"
        assert "t0" not in ids
        assert missed.data["count"] + len(ids) == int(told.id or 0)

    async def test_a_stream_that_failed_to_catch_up_leaves_the_next_one_alone(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        hub, store = server.plane.home.hub, await server.app._access.open_store()
        await server.app.submit("mail", id="old")

        async def fail(*args: Any) -> Any:
            raise StoreUnavailable("the store is away")

        with monkeypatch.context() as patch:
            patch.setattr(store.log, "read", fail)
            with pytest.raises(StoreUnavailable):
                await hub.join(live.topics_of((), None), Mask(), 0)
        await server.app.submit("mail", id="past")
        async with following(await server.as_role("viewer"), topics="task") as stream:
            await server.app.submit("mail", id="new")
            assert [each["id"] for each in await stream.facts()] == ["new"]


async def _collect(client: Client, count: int, after: int = 0) -> list[Any]:
    async with following(client, after=after, topics="task") as stream:
        return await stream.facts(count)


def _hold_reads_from(store: Store, first: int, monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, list[int]]:
    """Reads of the log after this number answer only when the event is set, with what was there before."""
    hold, reads = asyncio.Event(), list[int]()
    read = store.log.read

    async def held(after: int, *args: Any, **more: Any) -> Any:
        found = await read(after, *args, **more)
        if after == first and not hold.is_set():
            reads.append(after)
            await hold.wait()
        return found

    monkeypatch.setattr(store.log, "read", held)
    return hold, reads
