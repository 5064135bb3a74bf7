"""The audit log: every change leaves one entry, refusals are told, and no flood washes a change away."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.integration.apps import eventually
from tests.server.examples import NAMES, example
from tests.server.serving import HOME, MAKER, OTHER, Client, Server, serving
from tickwork.errors import StoreUnavailable
from tickwork.server import audit
from tickwork.server.audit import Audit
from tickwork.server.callers import Caller, Right, Role
from tickwork.server.operations import operations

CHANGES = [name for name in NAMES if operations()[name].changes]


async def journal(client: Client, name: str = "changes", **query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await client.read("/audit", journal=name, limit=500, **query))["items"]
    return found


class TestChanges:
    @pytest.mark.parametrize("name", CHANGES)
    async def test_a_change_leaves_one_entry_with_who_what_and_from_where(self, name: str, server: Server) -> None:
        operation = operations()[name]
        caller = await server.as_role(Role.ADMIN, name="ines")
        given = await example(server, caller, name)
        answer = await caller.call(operation, given.names, given.body)
        assert answer.status_code == operation.status, answer.text
        where = "submits" if operation.right in (Right.SUBMIT, Right.WORK) else "changes"
        found = [each for each in await journal(caller, where) if each["what"] == operation.changes]
        if name in ("run_bulk", "stop_bulk"):  # the example of stopping has begun one
            found = found[:1]
        (entry,) = found
        assert (entry["who"], entry["role"], entry["via"]) == ("ines", "admin", "token")
        assert entry["address"] == "127.0.0.1"
        assert entry["result"] == "done"
        assert entry["target"]

    async def test_a_question_leaves_none(self, server: Server) -> None:
        caller = await server.as_role(Role.ADMIN, name="ines")
        await caller.read("/tasks")
        await caller.read("/overview")
        await caller.do("POST", "/schedules/preview", {"cron": "0 3 * * *"})
        assert [each for each in await journal(caller) if each["who"] == "ines"] == []

    async def test_a_change_that_failed_is_told_with_the_code_of_its_problem(self, server: Server) -> None:
        caller = await server.as_role(Role.OPERATOR, HOME)
        await caller.post("/tasks/no-such/cancel", {})
        (entry,) = await journal(caller, "refusals")
        assert (entry["what"], entry["target"], entry["result"]) == ("cancelled a task", "no-such", "task_not_found")
        assert await journal(caller) == []

    async def test_who_may_not_do_it_is_told_as_a_refusal(self, server: Server) -> None:
        viewer, admin = await server.as_role(Role.VIEWER, HOME, name="vera"), await server.as_role(Role.ADMIN)
        await viewer.post("/queues/default/pause", {})
        await viewer.get("/config")
        await viewer.get("/status", ns=OTHER)
        found = await journal(admin, "refusals")
        assert {(each["who"], each["what"], each["result"]) for each in found} == {
            ("vera", "paused a queue", "not_allowed"),
            ("vera", "get_config", "not_allowed"),
            ("vera", "get_status", "namespace_not_found"),
        }

    async def test_a_wrong_token_is_told_with_the_address_and_not_with_the_token(self, server: Server) -> None:
        forged = f"tw_{'a' * 12}_{'s' * 40}"
        await (await server.with_token(forged)).get("/status")
        admin = await server.as_role(Role.ADMIN)
        (entry,) = await journal(admin, "refusals")
        assert (entry["who"], entry["what"], entry["address"]) == ("unknown", "sign in", "127.0.0.1")
        assert entry["role"] == ""  # a stranger has none
        assert "s" * 40 not in str(entry)

    async def test_so_is_a_token_that_is_not_for_signing_in(self, server: Server) -> None:
        await (await server.stranger()).post("/session", {"token": await server.token(Role.WORKER, name="w1")})
        (entry,) = await journal(await server.as_role(Role.ADMIN), "refusals")
        assert (entry["who"], entry["role"], entry["what"]) == ("w1", "worker", "sign in")
        assert entry["result"] == "not_for_people"

    async def test_so_is_a_stream_that_one_may_not_follow(self, server: Server) -> None:
        worker, local = await server.as_role(Role.WORKER, name="w1"), await server.as_role(Role.VIEWER, HOME, name="v")
        assert (await worker.get("/events/stream")).status_code == 403
        assert (await local.get("/events/stream", ns=OTHER)).status_code == 404
        found = await journal(await server.as_role(Role.ADMIN), "refusals")
        assert {(each["who"], each["what"], each["result"]) for each in found} == {
            ("w1", "stream_events", "not_allowed"), ("v", "stream_events", "namespace_not_found"),
        }  # fmt: skip

    async def test_what_is_changed_in_a_namespace_is_in_the_log_of_that_one(self, server: Server) -> None:
        everywhere = await server.as_role(Role.ADMIN)
        await everywhere.do("POST", "/queues/default/pause", {"note": "why"}, ns=OTHER)
        assert await journal(everywhere) == []
        (entry,) = await journal(everywhere, ns=OTHER)
        assert (entry["what"], entry["target"], entry["detail"]) == ("paused a queue", "default", "why")

    async def test_signing_in_is_told_in_a_journal_of_its_own(self, server: Server) -> None:
        await server.signed_in(Role.OPERATOR)
        rows, _ = await server.plane.home.audit.read("sign_ins", None, 10)
        assert [(each.who, each.what, each.result) for each in rows] == [("the operator", "signed in", "done")]
        assert await journal(await server.as_role(Role.ADMIN)) == []

    async def test_no_operation_removes_an_entry(self) -> None:
        writes = [each.path for each in operations().values() if each.method != "GET"]
        assert [path for path in writes if "audit" in path] == []

    async def test_no_call_of_any_role_does_either(self, server: Server) -> None:
        admin = await server.as_role(Role.ADMIN, name="ines")
        await admin.do("POST", "/queues/q/pause", {"note": "the first"})
        for role in Role:
            caller = await server.as_role(role)
            for path in ("/audit", "/audit/export", "/audit/1", "/audit?journal=changes"):
                for method in ("DELETE", "PUT", "PATCH", "POST"):
                    assert (await caller.ask(method, path)).status_code in (404, 405), (role, method, path)
        assert [each["detail"] for each in await journal(admin)] == ["the first"]

    async def test_it_is_not_the_log_of_events(self, any_url: str) -> None:
        """That one may be trimmed to nothing by what tasks do, and has nobody's name in it."""
        async with serving(any_url) as server:
            admin = await server.as_role(Role.ADMIN, name="ines")
            await admin.do("POST", "/queues/q/pause", {"note": "why"})
            store = await server.app._access.open_store()
            last = await store.log.last()
            await admin.do("POST", "/tokens", {"name": "x", "role": "viewer"})
            assert await store.log.last() == last
            assert "ines" not in (await admin.get("/events")).text
            assert len(await journal(admin)) == 2


class TestPages:
    async def test_the_log_is_read_to_its_end_by_pages(self, server: Server) -> None:
        admin = await server.as_role(Role.ADMIN)
        for number in range(25):
            await admin.do("POST", f"/queues/q{number}/pause", {})
        seen: list[str] = []
        before: int | None = None
        while True:
            page = await admin.read("/audit", limit=10, **({} if before is None else {"before": before}))
            seen += [each["target"] for each in page["items"]]
            before = page["before"]
            if before is None:
                break
        assert seen == [f"q{number}" for number in reversed(range(25))]

    async def test_entries_are_found_by_parts_of_their_texts(self, server: Server) -> None:
        ines, ada = await server.as_role(Role.ADMIN, name="ines"), await server.as_role(Role.OPERATOR, name="ada")
        for number in range(3):
            await ines.do("POST", f"/queues/q{number}/pause", {})
            await ada.do("POST", f"/queues/q{number}/resume")

        async def found(**query: str) -> list[tuple[str, str]]:
            page = await ines.read("/audit", **query)
            assert page["before"] is None
            return [(each["who"], each["target"]) for each in page["items"]]

        assert await found(who="INES") == [("ines", "q2"), ("ines", "q1"), ("ines", "q0")]
        assert await found(what="resumed", target="q1") == [("ada", "q1")]
        assert await found(who="nobody") == []
        page = await ines.read("/audit", who="ada", limit=2)
        (last,) = (await ines.read("/audit", who="ada", limit=2, before=page["before"]))["items"]
        assert last["target"] == "q0"
        exported = (await ines.get("/audit/export", who="ada", target="q2")).text.splitlines()
        assert len(exported) == 2

    async def test_an_entry_that_was_sent_twice_does_not_end_the_pages(self, server: Server) -> None:
        """As after an answer of the store that was lost."""
        admin = await server.as_role(Role.ADMIN)
        await admin.do("POST", "/queues/first/pause", {})
        control = (await server.plane.home.store()).control
        (entry,) = await control.read("audit.changes", None, 1)
        await control.append("audit.changes", [entry.text, entry.text.replace(entry.text[7:39], "x" * 32)], 100)
        page = await admin.read("/audit", limit=2)
        assert len(page["items"]) == 2
        assert page["before"] is not None

    async def test_it_is_exported_as_csv(self, server: Server) -> None:
        admin = await server.as_role(Role.ADMIN, name="ines")
        await admin.do("POST", "/queues/default/pause", {"note": "=1+1"})
        answer = await admin.get("/audit/export")
        head, row = answer.text.splitlines()
        assert head == "number,at,id,who,role,via,address,what,target,detail,result,count"
        assert ",ines,admin,token,127.0.0.1,paused a queue,default,'=1+1,done,1" in row

    @pytest.mark.parametrize("query", [{"journal": "others"}, {"before": -1}, {"limit": 0}, {"limit": 501}])
    async def test_what_there_is_not_cannot_be_asked_for(self, query: dict[str, Any], server: Server) -> None:
        assert (await (await server.as_role(Role.ADMIN)).get("/audit", **query)).status_code == 400


class TestFloods:
    async def test_ten_thousand_refusals_remove_no_change(self, any_url: str) -> None:
        async with serving(any_url) as server:
            admin = await server.as_role(Role.ADMIN)
            await admin.do("POST", "/queues/default/pause", {})
            log = server.plane.home.audit
            for number in range(10_000):
                caller = Caller(f"mallory{number}", Role.VIEWER, (HOME,), "token", "", "10.0.0.1")
                await log.gather("refusals", caller, "paused a queue", "", "", "not_allowed")
            await log.flush()
            assert [each["what"] for each in await journal(admin)] == ["paused a queue"]
            told = await journal(admin, "refusals")
            assert len(told) == 500
            crowd = [each for each in told if each["who"] == "many"]
            assert sum(each["count"] for each in crowd) == 10_000 - audit.GATHERED_MAX

    async def test_sign_ins_remove_no_change(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        """However many they are: whoever has a token may sign in as often as they like."""
        for name in audit.KEPT:
            monkeypatch.setitem(audit.KEPT, name, 5)
        admin = await server.as_role(Role.ADMIN)
        await admin.do("POST", "/queues/default/pause", {})
        token, stranger = await server.token(Role.VIEWER, name="vera"), await server.stranger()
        for _ in range(12):
            assert (await stranger.post("/session", {"token": token})).status_code == 200
        await server.plane.home.audit.flush()
        assert [each["what"] for each in await journal(admin)] == ["paused a queue"]
        rows, _ = await server.plane.home.audit.read("sign_ins", None, 10)
        assert [(each.who, each.count) for each in rows] == [("vera", 11), ("vera", 1)]

    async def test_refusals_have_a_bound_of_their_own(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(audit.KEPT, "refusals", 20)
        admin = await server.as_role(Role.ADMIN)
        await admin.do("POST", "/queues/default/pause", {})
        viewer = await server.as_role(Role.VIEWER)
        for number in range(50):
            await viewer.post(f"/queues/q{number}/pause", {})
            await admin.post(f"/tasks/none-{number}/cancel", {})
        assert len(await journal(admin, "refusals")) == 20
        assert len(await journal(admin)) == 1

    async def test_the_same_again_is_counted_in_one_entry(self, server: Server) -> None:
        admin = await server.as_role(Role.ADMIN, name="ines")
        for _ in range(30):
            await admin.do("POST", "/tasks", {"type": "mail"})
        await server.plane.home.audit.flush()
        found = await journal(admin, "submits")
        assert [each["count"] for each in found] == [29, 1]
        assert {(each["who"], each["target"]) for each in found} == {("ines", "mail")}

    async def test_long_texts_are_cut(self, server: Server) -> None:
        log = server.plane.home.audit
        caller = Caller("n" * 10_000, Role.ADMIN, ("*",), "token", "", "a" * 10_000)
        await log.change(caller, "did", "t" * 10_000, "d" * 10_000)
        (entry,) = await journal(await server.as_role(Role.ADMIN))
        assert max(len(str(value)) for value in entry.values()) <= audit.TEXT_MAX

    async def test_an_entry_that_cannot_be_read_is_shown_as_such(self, server: Server) -> None:
        store = await server.app._access.open_store()
        await Audit(server.plane.home.store).change(MAKER, "did", "x", "")
        await store.control.append("audit.changes", ["{not json"], 100)
        found = await journal(await server.as_role(Role.ADMIN))
        assert [each["what"] for each in found] == ["unreadable", "did"]


class TestUnknownEnds:
    """Where the store did not answer, nobody knows whether a change was done: it is not told as refused."""

    async def test_a_change_whose_answer_cannot_be_read_is_no_refusal(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        admin = await server.as_role(Role.ADMIN, name="ines")
        await server.app.submit("mail", id="t", delay=60)

        async def fail(task_id: str) -> Any:
            raise StoreUnavailable("the store is away")

        with monkeypatch.context() as patch:
            patch.setattr(server.app, "get_task", fail)
            assert (await admin.post("/tasks/t/cancel", {})).status_code == 503
        assert (await admin.read("/tasks/t"))["status"] == "cancelled"
        (entry,) = await journal(admin)
        assert (entry["who"], entry["what"], entry["target"]) == ("ines", "cancelled a task", "t")
        assert entry["result"] == "unknown"
        assert await journal(admin, "refusals") == []

    async def test_nor_is_one_that_fails_in_a_way_that_nobody_foresaw(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        admin = await server.as_role(Role.ADMIN)

        async def fail(*args: Any) -> None:
            raise RuntimeError("a bug")

        monkeypatch.setattr(server.app.queues, "pause", fail)
        assert (await admin.post("/queues/post/pause", {})).status_code == 500
        assert [(each["what"], each["result"]) for each in await journal(admin)] == [("paused a queue", "unknown")]


class TestTokens:
    async def test_changes_of_tokens_are_told_where_tokens_are_kept(self, server: Server) -> None:
        """Whichever namespace the request names: who looks after tokens has one log to read."""
        admin = await server.as_role(Role.ADMIN)
        made = await admin.do("POST", "/tokens", {"name": "new", "role": "viewer"}, ns=OTHER)
        await admin.do("DELETE", f"/tokens/{made['info']['id']}", ns=OTHER)
        assert [each["what"] for each in await journal(admin)] == ["revoked a token", "made a token"]
        assert await journal(admin, ns=OTHER) == []


class TestGathering:
    CALLER = Caller("mallory", Role.VIEWER, (HOME,), "token", "", "10.0.0.1")

    async def refuse(self, log: Audit) -> None:
        await log.gather("refusals", self.CALLER, "paused a queue", "", "", "not_allowed")

    async def counted(self, server: Server) -> int:
        found = await journal(await server.as_role(Role.ADMIN), "refusals")
        return sum(each["count"] for each in found)

    def hold(self, server_log: Audit, monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Event, list[int]]:
        """The next that is written waits for the event."""
        go, writes = asyncio.Event(), list[int]()
        append = server_log._append

        async def held(*args: Any) -> None:
            writes.append(1)
            if len(writes) == 1:
                await go.wait()
            await append(*args)

        monkeypatch.setattr(server_log, "_append", held)
        return go, writes

    async def test_a_flush_waits_for_one_that_is_writing(self, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(audit, "GATHER", 0.01)
        log = Audit(server.plane.home.store)
        await self.refuse(log)
        go, writes = self.hold(log, monkeypatch)
        for _ in range(4):
            await self.refuse(log)
        await eventually(lambda: writes)
        flushing = asyncio.create_task(log.flush())
        await asyncio.sleep(0)
        go.set()
        await flushing
        assert await self.counted(server) == 5

    async def test_what_is_counted_while_one_writes_needs_no_further_refusal(
        self, server: Server, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(audit, "GATHER", 0.01)
        log = Audit(server.plane.home.store)
        await self.refuse(log)
        go, writes = self.hold(log, monkeypatch)
        await self.refuse(log)
        await eventually(lambda: writes)
        for _ in range(3):
            await self.refuse(log)
        go.set()

        async def all_told() -> bool:
            return await self.counted(server) == 5

        await eventually(all_told)
        await eventually(lambda: log._flushing is not None and log._flushing.done())


async def test_a_schedule_that_a_submit_makes_is_told_as_a_change(server: Server) -> None:
    submitter, admin = await server.as_role(Role.SUBMITTER, name="sam"), await server.as_role(Role.ADMIN)
    task = {"type": "mail", "cron": "0 3 * * *"}
    await submitter.do("POST", "/tasks", task)
    await submitter.do("POST", "/tasks/batch", {"tasks": [task, {"type": "mail"}]})
    found = [(each["who"], each["what"], each["detail"]) for each in await journal(admin)]
    assert found == [("sam", "created a schedule", "mail: 0 3 * * *")] * 2


@pytest.mark.parametrize("name", ["a\x1b[31m", "a\nb", "\x85", "a\x00"])
async def test_a_token_has_no_control_characters_in_its_name(name: str, server: Server) -> None:
    answer = await (await server.as_role(Role.ADMIN)).post("/tokens", {"name": name, "role": "viewer"})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_value")
