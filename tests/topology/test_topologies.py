"""The whole product on every kind of Redis that it is said to work on."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hiredis
import pytest
from click.testing import CliRunner

from tests.support.redis import (
    KINDS,
    Client,
    Cluster,
    RedisServer,
    SentinelGroup,
    TlsFiles,
    binary,
    supports_tls,
    tls_files,
)
from tests.topology.shop import NAMESPACE, running, shop, work_through
from tickwork import Config, make_store
from tickwork.cli import commands
from tickwork.errors import StoreError, StoreUnavailable
from tickwork.model.policy import Policy
from tickwork.model.tasks import Spec
from tickwork.store.contract import NotPermitted
from tickwork.store.redis import RedisStore
from tickwork.store.redis.keys import Layout
from tickwork.store.redis.net.target import parse
from tickwork.store.redis.ops.acl import Purpose, acl_line

PASSWORD = "pa55-w0rd"


@pytest.fixture(scope="module")
def _guarded() -> Iterator[RedisServer]:
    with RedisServer(password=PASSWORD) as server:
        yield server


@pytest.fixture
def guarded(_guarded: RedisServer) -> RedisServer:
    _guarded.command("FLUSHALL")
    return _guarded


@pytest.fixture(scope="module")
def _cluster() -> Iterator[Cluster]:
    with Cluster(password=PASSWORD) as cluster:
        yield cluster


@pytest.fixture
def cluster(_cluster: Cluster) -> Cluster:
    for node in _cluster.masters:
        node.command("FLUSHALL")
    return _cluster


@pytest.fixture(autouse=True)
def nothing_tells_the_password(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.DEBUG)
    yield
    assert PASSWORD not in caplog.text


# --- one server


async def test_a_server_with_a_password(guarded: RedisServer) -> None:
    async with running(guarded.url) as app:
        await work_through(app, ticks=True)
        assert PASSWORD not in f"{app!r} {await app.status()}"


async def test_a_user_who_has_only_what_the_acl_line_gives(guarded: RedisServer) -> None:
    version = tuple(map(int, guarded.info("server")["redis_version"].split(".")))
    guarded.command(*acl_line(NAMESPACE, "clerk", PASSWORD, version).split())
    url = f"redis://clerk:{PASSWORD}@{guarded.host}:{guarded.port}/0"
    async with running(url) as app:
        await work_through(app, audit=False)
    other = shop(url, namespace="other")
    with pytest.raises(StoreError, match=r"NOPERM.*`tickwork acl` prints the rights"):
        await other.status()
    await other.close()
    with Client(guarded.host, guarded.port) as client:
        client.call("AUTH", "clerk", PASSWORD)
        for command in (("KEYS", "*"), ("FLUSHALL",), ("GET", "x"), ("CONFIG", "GET", "*"), ("PUBLISH", "x", "y")):
            with pytest.raises(hiredis.ReplyError, match=r"NOPERM"):
                client.call(*command)


async def test_another_database(guarded: RedisServer) -> None:
    async with running(guarded.url.removesuffix("/0") + "/5") as app:
        ids = await work_through(app)
        assert guarded.command("DBSIZE") == 0
        assert guarded.command("EXISTS", f"{Layout(NAMESPACE).root}task:{ids[0]}") == 0


async def test_two_namespaces_do_not_see_each_other(guarded: RedisServer) -> None:
    async with running(guarded.url, namespace="one") as one, running(guarded.url, namespace="two") as two:
        ids = await work_through(one)
        assert (await two.status()).tasks == {}
        assert [worker.id for worker in await two.list_workers()] != [worker.id for worker in await one.list_workers()]
        assert (await two.schedules.list()).items == []
        await two.submit("add", {"a": 1, "b": 1}, id=ids[0])
        assert await two.handle(ids[0]).result(10) == 2
        async with one.lock("till"), two.lock("till"):
            pass


# --- redis-py clients


@pytest.fixture
def redis() -> Any:
    return pytest.importorskip("redis")


async def test_a_redis_py_client_as_the_store(guarded: RedisServer, redis: Any) -> None:
    client = redis.Redis(host=guarded.host, port=guarded.port, password=PASSWORD, db=1)
    async with running(client) as app:
        await work_through(app)
        assert app.url == f"redis://{guarded.host}:{guarded.port}"
        assert client.dbsize() > 0
    client.close()


async def test_an_asyncio_redis_py_client_as_the_store(guarded: RedisServer, redis: Any) -> None:
    aio = pytest.importorskip("redis.asyncio")
    async with aio.from_url(guarded.url) as client, running(client) as app:
        await work_through(app)
        assert await client.dbsize() > 0, "the client itself stays usable"


async def test_a_redis_py_cluster_client_as_the_store(cluster: Cluster, redis: Any) -> None:
    node = cluster.masters[0]
    client = redis.RedisCluster(host=node.host, port=node.port, password=PASSWORD)
    async with running(client, partitions=2) as app:
        await work_through(app)
    client.close()


# --- TLS


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return tls_files(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def secured(files: TlsFiles) -> Iterator[RedisServer]:
    chosen = next((found for kind in KINDS if (found := binary(kind)) and supports_tls(found)), None)
    if chosen is None:
        pytest.skip("no server here is built with TLS")
    with RedisServer(chosen, tls=files, password=PASSWORD) as server:
        yield server


def own(files: TlsFiles, ca: Path | None = None) -> str:
    return f"?ssl_ca_certs={ca or files['ca']}&ssl_certfile={files['client_cert']}&ssl_keyfile={files['client_key']}"


async def test_tls_with_an_authority_and_a_certificate_of_ones_own(secured: RedisServer, files: TlsFiles) -> None:
    async with running(secured.url + own(files)) as app:
        await work_through(app)


async def test_replies_of_many_records_arrive_whole_over_tls(secured: RedisServer, files: TlsFiles) -> None:
    store = RedisStore(parse(secured.url + own(files)), "test", Policy())
    payload = random.Random(1).randbytes(600_000)
    try:
        await store.open()
        await store.tasks.submit([Spec(id="large", type="add", nonce="n", payload=payload)])
        for _ in range(5):
            record = await store.queries.get("large")
            assert record is not None
            assert record.spec.payload == payload
    finally:
        await store.close()


async def test_tls_by_name_is_checked(secured: RedisServer, files: TlsFiles) -> None:
    async with running(secured.url.replace("127.0.0.1", "localhost") + own(files)) as app:
        assert await (await app.submit("add", {"a": 1, "b": 1})).result(10) == 2


async def test_a_redis_py_client_with_tls_as_the_store(secured: RedisServer, files: TlsFiles, redis: Any) -> None:
    client = redis.from_url(secured.url + own(files))
    async with running(client) as app:
        assert await (await app.submit("add", {"a": 1, "b": 1})).result(10) == 2
    client.close()


async def refusal(url: str, **options: Any) -> StoreError:
    """What `open` says when it cannot; it is never the password."""
    target = parse(url)
    target = target._replace(access=target.access._replace(connect_timeout=0.5))
    store = RedisStore(target, NAMESPACE, Policy(), patience=0.3, **options)
    try:
        with pytest.raises(StoreError) as refused:
            await store.open()
    finally:
        await store.close()
    assert PASSWORD not in str(refused.value)
    assert PASSWORD not in repr(refused.value)
    return refused.value


async def test_a_server_of_another_authority_is_refused(secured: RedisServer, files: TlsFiles, tmp_path: Path) -> None:
    text = str(await refusal(secured.url + own(files, tls_files(tmp_path)["ca"])))
    assert text.startswith(f"TLS to 127.0.0.1:{secured.port} failed:")
    assert "CERTIFICATE_VERIFY_FAILED" in text


async def test_the_systems_authorities_do_not_know_a_private_one(secured: RedisServer) -> None:
    assert "CERTIFICATE_VERIFY_FAILED" in str(await refusal(secured.url))


async def test_skipping_verification_lets_any_server_in(secured: RedisServer, files: TlsFiles, tmp_path: Path) -> None:
    url = secured.url + own(files, tls_files(tmp_path)["ca"]) + "&insecure_skip_verify=true"
    async with running(url) as app:
        assert await app.audit() == []


async def test_without_a_certificate_the_server_refuses(secured: RedisServer, files: TlsFiles) -> None:
    assert "ssl_certfile" in str(await refusal(f"{secured.url}?ssl_ca_certs={files['ca']}")).partition("reached")[2]


async def test_plain_text_to_a_tls_port_says_so(secured: RedisServer) -> None:
    for url in (secured.url, secured.url.replace(f":{PASSWORD}@", "")):
        assert "does it require TLS (rediss://)" in str(await refusal(url.replace("rediss://", "redis://")))


async def test_tls_to_a_plain_port_says_so(guarded: RedisServer) -> None:
    error = await refusal(guarded.url.replace("redis://", "rediss://"))
    assert "is it a port without TLS (redis://)" in str(error)


# --- several servers


async def test_sentinels() -> None:
    with SentinelGroup(replicas=1, password=PASSWORD) as group:
        async with running(group.url) as app:
            await work_through(app, ticks=True)
            assert PASSWORD not in f"{app!r} {await app.status()}"
        error = await refusal(group.url.replace("/tick/", "/tack/"))
        assert isinstance(error, StoreUnavailable)
        assert "knows no service 'tack'" in str(error)
        redis = pytest.importorskip("redis.sentinel")
        places = [(sentinel.host, sentinel.port) for sentinel in group.sentinels]
        client = redis.Sentinel(places, password=PASSWORD).master_for("tick")
        async with running(client, namespace="client") as app:
            assert await (await app.submit("add", {"a": 1, "b": 1})).result(10) == 2
        client.close()


async def test_a_cluster_with_one_partition(cluster: Cluster) -> None:
    async with running(cluster.url) as app:
        await work_through(app)
    holders = [node for node in cluster.masters if node.command("DBSIZE")]
    assert len(holders) == 1, "one partition is one slot"


async def test_a_cluster_with_eight_partitions(cluster: Cluster) -> None:
    async with running(cluster.url, partitions=8) as app:
        ids = await work_through(app, 60, ticks=True)
    found: Counter[int] = Counter()
    for node in cluster.masters:
        keys = {key.decode().partition("task:")[2] for key in node.command("KEYS", "*:task:*")}
        found[node.port] = len(keys & set(ids))
    assert sum(found.values()) == 60
    assert all(found.values()), f"tasks are on all masters: {found}"


async def test_a_cluster_is_found_by_any_one_of_its_nodes(cluster: Cluster) -> None:
    node = cluster.masters[2]
    async with running(f"redis+cluster://:{PASSWORD}@{node.host}:{node.port}", partitions=8) as app:
        await work_through(app, 30)


async def test_a_cluster_under_an_acl_line(cluster: Cluster) -> None:
    version = tuple(map(int, cluster.nodes[0].info("server")["redis_version"].split(".")))
    for node in cluster.nodes:
        node.command(*acl_line(NAMESPACE, "clerk", PASSWORD, version, cluster=True).split())
    async with running(cluster.url.replace(f"://:{PASSWORD}", f"://clerk:{PASSWORD}"), partitions=8) as app:
        await work_through(app, 30, audit=False)


@pytest.mark.parametrize("partitions", [1, 8])
async def test_a_server_and_a_worker_of_a_cluster_under_their_acl_lines(cluster: Cluster, partitions: int) -> None:
    version = tuple(map(int, cluster.nodes[0].info("server")["redis_version"].split(".")))
    stores = []
    purposes: tuple[Purpose, ...] = ("server", "worker")
    for purpose in purposes:
        for node in cluster.nodes:
            node.command(*acl_line(NAMESPACE, f"a-{purpose}", PASSWORD, version, True, purpose).split())
        url = cluster.url.replace(f"://:{PASSWORD}", f"://a-{purpose}:{PASSWORD}")
        stores.append(make_store(url, Config(namespace=NAMESPACE, partitions=partitions)))
        await stores[-1].open()
    server, worker = (store.control for store in stores)
    assert await server.swap("token", "a", None, "x") is True
    assert [document.name for document in await server.page("token")] == ["a"]
    assert await server.append("audit", ["a"], 10) == 1
    assert len(await server.read("audit")) == 1
    for call in (worker.get("token", "a"), worker.swap("token", "a", "x", None), worker.append("audit", ["b"], 1)):
        with pytest.raises(NotPermitted, match="`tickwork acl --for server`"):
            await call
    assert await server.get("token", "a") == "x"
    for store in stores:
        await store.close()


async def test_a_node_of_a_cluster_is_no_server_alone(cluster: Cluster) -> None:
    """The slot of the namespace may be another node's: the answer is an error that says so, not a wait for ever."""
    slot = cluster.slot_of(Layout(NAMESPACE).root)
    stranger = next(node for node in cluster.masters if node is not cluster.node_of(slot))
    error = await refusal(stranger.url)
    assert "redis+cluster://" in str(error)


async def test_the_doctor_of_a_cluster(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TICKWORK_PARTITIONS", "8")
    args = ["doctor", "--json", "--store", cluster.url, "--namespace", NAMESPACE]
    async with running(cluster.url, partitions=8) as app:
        await work_through(app, 30)
        result = await asyncio.to_thread(CliRunner().invoke, commands, args)
    assert result.exit_code == 0, result.output
    texts = [found["text"] for found in json.loads(result.stdout)["findings"] if found["level"] == "ok"]
    assert any(text.endswith(", cluster") for text in texts)
    assert "the masters' clocks agree" in texts


async def test_every_node_of_a_cluster_that_holds_tasks_must_not_evict(cluster: Cluster) -> None:
    home = cluster.node_of(cluster.slot_of(Layout(NAMESPACE).root))
    other = next(node for node in cluster.masters if node is not home)
    other.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    try:
        assert "maxmemory-policy allkeys-lru" in str(await refusal(cluster.url, partitions=8))
    finally:
        other.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
