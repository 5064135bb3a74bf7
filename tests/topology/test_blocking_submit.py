"""`app.sync.submit` over a connection of the calling thread, on every kind of Redis."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import hiredis
import pytest

from tests.support.blocking import Hops, be_patient, wait_until
from tests.support.redis import KINDS, Cluster, RedisServer, SentinelGroup, binary, supports_tls, tls_files
from tests.topology.shop import NAMESPACE, shop
from tickwork import Scheduler
from tickwork.store.redis.keys import Layout
from tickwork.store.redis.net import sockets
from tickwork.store.redis.ops.acl import acl_line

PASSWORD = "pa55-w0rd"
ENOUGH = 60  # tasks of which some are in each partition: one of four is left out once in ten million times


@pytest.fixture
def hops(monkeypatch: pytest.MonkeyPatch) -> Hops:
    be_patient(monkeypatch)
    return Hops(monkeypatch)


@contextmanager
def used(url: str, **options: Any) -> Iterator[Scheduler]:
    app = shop(url, **options)
    try:
        yield app
    finally:
        app.sync.close()


def submit(app: Scheduler, **options: Any) -> str:
    return app.sync.submit("add", {"a": 1, "b": 1}, **options).id


def come_to_block(app: Scheduler, hops: Hops) -> None:
    wait_until(lambda: hops.of(lambda: submit(app)) == 0, "a submit without the background thread")


def check(app: Scheduler, hops: Hops) -> None:
    """Submits need no background thread, each makes a task, and a worker that was idle gets it."""
    wait_until(
        lambda: hops.of(lambda: [submit(app) for _ in range(ENOUGH)]) == 0, "the counters of all partitions have begun"
    )
    assert hops.of(lambda: [submit(app, id=f"it-{number}") for number in range(10)]) == 0
    assert [app.sync.get_task(f"it-{number}").status for number in range(10)] == ["ready"] * 10
    app.sync.start()
    assert app.sync.submit("add", {"a": 1, "b": 2}).result(60) == 3
    app.sync.shutdown()


def test_a_password_a_user_and_a_database(hops: Hops) -> None:
    with RedisServer(password=PASSWORD) as server:
        with used(server.url.removesuffix("/0") + "/5") as app:
            check(app, hops)
        version = tuple(map(int, server.info("server")["redis_version"].split(".")))
        server.command(*acl_line(NAMESPACE, "clerk", PASSWORD, version).split())
        with used(f"redis://clerk:{PASSWORD}@{server.host}:{server.port}/0") as app:
            check(app, hops)
        server.command("ACL", "SETUSER", "clerk", "resetpass")
        assert submit_is_refused(f"redis://clerk:{PASSWORD}@{server.host}:{server.port}/0")


def submit_is_refused(url: str) -> bool:
    with used(url) as app, pytest.raises(Exception, match=r"WRONGPASS"):
        submit(app)
    return True


def test_tls(hops: Hops, tmp_path_factory: pytest.TempPathFactory) -> None:
    chosen = next((found for kind in KINDS if (found := binary(kind)) and supports_tls(found)), None)
    if chosen is None:
        pytest.skip("no server here is built with TLS")
    files = tls_files(tmp_path_factory.mktemp("tls"))
    own = f"?ssl_ca_certs={files['ca']}&ssl_certfile={files['client_cert']}&ssl_keyfile={files['client_key']}"
    with RedisServer(chosen, tls=files, password=PASSWORD) as server:
        for url in (server.url, server.url.replace("127.0.0.1", "localhost")):
            server.command("FLUSHALL")
            with used(url + own) as app:
                check(app, hops)


def test_several_partitions_wake_an_idle_worker(hops: Hops) -> None:
    with RedisServer() as server, used(server.url, partitions=3) as app:
        check(app, hops)
        root = Layout(NAMESPACE).root
        server.command("DEL", f"{root}wake:default")
        come_to_block(app, hops)
        assert server.command("LLEN", f"{root}wake:default") >= 1
        assert server.command("TTL", f"{root}wake:default") > 0


@pytest.mark.parametrize("partitions", [1, 4])
def test_a_cluster_whose_slots_move(hops: Hops, partitions: int) -> None:
    with Cluster(password=PASSWORD) as cluster, used(cluster.url, partitions=partitions) as app:
        check(app, hops)
        for part in Layout(NAMESPACE, partitions).prefixes:
            slot = cluster.slot_of(part)
            target = next(node for node in cluster.masters if node is not cluster.node_of(slot))
            cluster.move_slot(slot, target)
        submit(app, id="moved")
        assert app.sync.get_task("moved").status == "ready"
        wait_until(lambda: hops.of(lambda: [submit(app) for _ in range(ENOUGH)]) == 0, "all partitions are found again")
        assert app.sync.audit() == []


def role_of(server: RedisServer) -> str:
    try:
        return server.info("replication")["role"]
    except (OSError, hiredis.HiredisError):  # it closes its connections when its role changes
        return "changing"


def test_sentinels_name_another_master(hops: Hops) -> None:
    with SentinelGroup(password=PASSWORD) as group, used(group.url) as app:
        check(app, hops)
        come_to_block(app, hops)
        old = group.master()
        group.sentinels[0].command("SENTINEL", "FAILOVER", "tick")
        wait_until(lambda: group.master() is not old, "the sentinels name another master")
        new = group.master()
        wait_until(lambda: role_of(new) == "master", "it is the master")
        wait_until(lambda: role_of(old) == "slave", "the old one follows it")
        submit(app, id="after")
        assert new.command("EXISTS", f"{Layout(NAMESPACE).root}task:after") == 1
        come_to_block(app, hops)
        submit(app, id="later")
        assert new.command("EXISTS", f"{Layout(NAMESPACE).root}task:later") == 1


def test_without_sentinels_the_background_thread_is_asked(hops: Hops, monkeypatch: pytest.MonkeyPatch) -> None:
    """A master that nobody confirms may have been replaced."""
    with SentinelGroup() as group, used(group.url) as app:
        come_to_block(app, hops)
        for sentinel in group.sentinels:
            sentinel.kill()
        monkeypatch.setattr(sockets, "CONFIRMED", 0.1)
        core = app._store.core  # type: ignore[attr-defined]
        wait_until(lambda: core._servers.find(core.layout.root) is None, "nobody confirms the master")
        assert hops.of(lambda: submit(app)) == 1
